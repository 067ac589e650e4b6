"""Whether a wording that a model chose says no more, and nothing else, than the words that it stands on.

A model rewords a statement so that it stands alone, in the first person as all memories are. It may take names and
dates from around it; it may not add a name, a number or a day that nobody said, nor lose one, nor turn a "not" around,
nor a "perhaps" into a fact, nor move a statement from one person to another. Closed when in doubt: then the user's own
words stay. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from memory.learn.words.change_words import HEDGED, NEGATED
from memory.learn.words.dates import pinned
from memory.learn.words.lexicon import FIRST_PERSON, MONTH_NAMES, RELATIONS, RELATIONS_ZH, WEEKDAYS, language_of
from memory.learn.words.terms import terms
from memory.learn.words.values import names_of

CHARACTERS_MAX = 400
NEW_WORDS_MAX = 0.4  # of the words of matter, that neither the quote nor what stands around it has: "prefers", "owns"

_USER = re.compile(r"\b(?:the )?(?:user|nutzer(?:in)?|usuari[oa])(?:['’]?s)?\b|用户", re.IGNORECASE)
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff]")
_DIGITS = re.compile(r"\d+")
_ISO_DAY = re.compile(r"\b(\d{4})-(\d\d)(?:-(\d\d))?\b")
_NUMERALS_ZH = re.compile(r"[一二三四五六七八九十百千万两零半]+")
_NUMBER_WORDS = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand|half|"
    r"once|twice|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|"
    r"diez|doce)\b",
    re.IGNORECASE,
)
# Words that stand for something named before.
_POINTING = re.compile(
    r"\b(?:it|its|he|she|him|her|his|they|them|their|there|that|this|those|these|one|ones|so|both|same|"
    r"sie|er|es|ihn|ihm|ihr\w*|dort|dies\w*|das|ella|él|ellos|le|les|lo|la|allí|eso|esto)\b|[她他它那这]",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"\b(?:he|she|him|her|hers|his|they|them|their|sie|er|ihn|ihm|ihr\w*|ella|él|ellos|le|les|su|sus)\b|[她他]",
    re.IGNORECASE,
)
_AVERSE = re.compile(
    r"\b(?:hat(?:e|es|ed|ing)|dislik\w*|loath\w*|detest\w*|despis\w*|avoid\w*|allerg\w*|intoleran\w*|afraid|fear\w*|"
    r"hass(?:e|t|en)|vermeid\w*|odi(?:o|a|an)|detesta\w*|evit\w*|alérgic\w*)\b|讨厌|过敏|忌口|害怕|恨",
    re.IGNORECASE,
)
_SPOKEN_ZH = re.compile(r"(\d{1,2})月(?:(\d{1,2})[日号]?)?")
_DAY_BEFORE = re.compile(r"(?<!\d)(\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?$", re.IGNORECASE)
_DAY_AFTER = re.compile(r"^[a-zä.]*\s+(\d{1,2})(?!\d)", re.IGNORECASE)
_MONTH_NUMBER = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def objection(wording: str, quote: str, *, around: Sequence[str], said_at: float) -> str:
    """Why the wording cannot stand for the quote, in words that a model can mend it by; "" where it can.

    `around`: what else the user said in this chat, and the question that the quote answers.
    """
    if not wording.strip() or len(wording) > CHARACTERS_MAX or "\n" in wording.strip():
        return f"must be one sentence of at most {CHARACTERS_MAX} characters"
    if bool(_IDEOGRAPH.search(wording)) != bool(_IDEOGRAPH.search(quote)):
        return "must be in the language of the quote"
    if _USER.search(wording) and not _USER.search(quote):
        return "must be in the first person, as they would say it"
    source = "\n".join((quote, *around))
    return (
        _invented(wording, quote, source, said_at)
        or _lost(wording, quote, said_at)
        or _turned(wording, quote, source)
        or _wandered(wording, source)
    )


def _invented(wording: str, quote: str, source: str, said_at: float) -> str:
    known = source.casefold()
    if any(name not in known for name in names_of(wording)):
        return "names something that was not said"
    if not _POINTING.search(quote) and _is_about_the_speaker(quote) and not names_of(wording) <= _words(quote):
        return "names something that the quote does not speak of"
    meanings = " ".join(meaning for _, meaning in pinned(quote, said_at))
    dated = _dates_of(f"{source} {meanings}")
    if any(not _is_meant(match, dated, said_at) for match in _ISO_DAY.finditer(wording)):
        return "has a date that was not said"
    if not _numbers(_ISO_DAY.sub(" ", wording)) <= _numbers(source) | _date_numbers(quote, said_at):
        return "has a number that was not said"
    for kind in (_NUMBER_WORDS, WEEKDAYS, _NUMERALS_ZH):
        if any(match.group().casefold() not in known for match in kind.finditer(wording)):
            return "has a number or a day that was not said"
    months = {_month(match.group()) for match in MONTH_NAMES.finditer(wording) if match.group() != "may"}
    said_months = {_month(match.group()) for match in MONTH_NAMES.finditer(source)}
    if not months <= said_months | _dated_months(quote, said_at):
        return "has a month that was not said"
    return ""


def _words(text: str) -> set[str]:
    return set(re.findall(r"[\w-]+", text.casefold()))


def _is_about_the_speaker(quote: str) -> bool:
    return bool(FIRST_PERSON[language_of(quote)].search(quote))


def _numbers(text: str) -> set[str]:
    return {number.lstrip("0") or "0" for number in _DIGITS.findall(text)}


def _dates_of(text: str) -> set[str]:
    """Days and months as ISO writes them, with the year or, where none is said, without: "2025-03-14", "-03-14"."""
    found = {match.group() for match in _ISO_DAY.finditer(text)} | {
        match.group()[:7] for match in _ISO_DAY.finditer(text)
    }
    for month, day in _SPOKEN_ZH.findall(text):
        found |= {f"-{int(month):02d}", f"-{int(month):02d}-{int(day):02d}" if day else ""}
    for match in MONTH_NAMES.finditer(text):
        number = _MONTH_NUMBER.index(_month(match.group())) + 1 if _month(match.group()) in _MONTH_NUMBER else 0
        around = text[max(0, match.start() - 8) : match.start()], text[match.end() : match.end() + 8]
        days = [*_DAY_BEFORE.findall(around[0]), *_DAY_AFTER.findall(around[1])]
        found |= {f"-{number:02d}", *(f"-{number:02d}-{int(day):02d}" for day in days)}
    return found - {""}


def _is_meant(date: re.Match[str], dated: set[str], said_at: float) -> bool:
    """Whether that day or month was said; without a year it is one near the day of the talk."""
    year = datetime.fromtimestamp(said_at, UTC).year
    return date.group() in dated or (abs(int(date.group(1)) - year) <= 1 and date.group()[4:] in dated)


def _date_numbers(quote: str, said_at: float) -> set[str]:
    """The digits of the dates that the quote means, and the year that it was said in."""
    meanings = " ".join(meaning for _, meaning in pinned(quote, said_at))
    return _numbers(meanings) | {str(datetime.fromtimestamp(said_at, UTC).year)}


def _dated_months(quote: str, said_at: float) -> set[str]:
    found = (_ISO_DAY.search(meaning) for _, meaning in pinned(quote, said_at))
    return {_MONTH_NUMBER[int(match.group(2)) - 1] for match in found if match}


def _month(name: str) -> str:
    """The first letters, as in English: "März" and "marzo" are both "mar"."""
    folded = name.casefold()[:3].replace("ä", "a")
    return {"ene": "jan", "abr": "apr", "ago": "aug", "dic": "dec", "mai": "may", "okt": "oct", "dez": "dec"}.get(
        folded, folded
    )


def _lost(wording: str, quote: str, said_at: float) -> str:
    kept = wording.casefold()
    if any(name not in kept for name in names_of(quote)):
        return "leaves out a name of the quote"
    dated = " ".join(phrase for phrase, _ in pinned(quote, said_at))
    if not _numbers(quote) - _numbers(dated) <= _numbers(wording):
        return "leaves out a number of the quote"
    return ""


def _turned(wording: str, quote: str, source: str) -> str:
    if bool(NEGATED.search(wording)) != bool(NEGATED.search(quote)):
        return "turns a denial of the quote around"
    if bool(_AVERSE.search(wording)) != bool(_AVERSE.search(quote)):
        return "turns a dislike of the quote around"
    if HEDGED.search(quote) and not HEDGED.search(wording):
        return "makes certain what the quote leaves open"
    said, told = _relations(quote), _relations(wording)
    if not said <= told or not told <= _relations(source):
        return "speaks of another person than the quote"
    if told - said and _is_about_the_speaker(quote) and not _PERSON.search(quote):
        return "speaks of another person than the quote"
    return ""


def _relations(text: str) -> set[str]:
    english = {match.group().casefold().rstrip("s") for match in RELATIONS.finditer(text)}
    return english | {match.group() for match in RELATIONS_ZH.finditer(text)}


def _wandered(wording: str, source: str) -> str:
    words = {word for word in terms(wording) if not word[0].isdigit()}
    known = terms(source)
    new = {word for word in words - known if not any(_are_akin(word, one) for one in known)}
    if words and len(new) > NEW_WORDS_MAX * len(words):
        return "must use the words of the quote"
    return ""


def _are_akin(word: str, known: str) -> bool:
    """Whether both are forms of one word, as "flies" and "fly" are, as far as their beginnings tell."""
    shorter = min(len(word), len(known))
    same = next((i for i in range(shorter) if word[i] != known[i]), shorter)
    return same >= max(2, shorter - 1)


__all__ = ["objection"]
