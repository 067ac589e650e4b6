"""Whether a wording that a model chose says no more, and nothing else, than the words that it stands on.

A model rewords a statement so that it stands alone. It may take names and dates from around it; it may not add a name,
a number or a day that nobody said, nor lose one, nor turn a "not" around, nor a "perhaps" into a fact, nor move a
statement from one person to another. Closed when in doubt: then the user's own words stay. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from memory.learn.change_words import NEGATED
from memory.learn.dates import pinned
from memory.learn.lexicon import MONTH_NAMES, RELATIONS, RELATIONS_ZH, WEEKDAYS
from memory.learn.terms import terms
from memory.learn.values import names_of

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
_HEDGED = re.compile(
    r"\b(?:might|may(?= \w+ )|maybe|perhaps|possibly|probably|considering|thinking (?:of|about)|not sure|wonder\w*|"
    r"vielleicht|eventuell|überlege\w*|quizás?|tal vez|a lo mejor|pensando en)\b|可能|也许|大概|或许|考虑|说不定",
    re.IGNORECASE,
)
_MONTH_NUMBER = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def objection(wording: str, quote: str, *, around: Sequence[str], said_at: float) -> str:
    """Why the wording cannot stand for the quote, in words that a model can mend it by; "" where it can.

    `around`: what else the user said in this chat, and the question that the quote answers.
    """
    if not wording.strip() or len(wording) > CHARACTERS_MAX or "\n" in wording.strip():
        return f"must be one sentence of at most {CHARACTERS_MAX} characters"
    if bool(_IDEOGRAPH.search(wording)) != bool(_IDEOGRAPH.search(quote)):
        return "must be in the language of the quote"
    source = "\n".join((quote, *around))
    return (
        _invented(wording, quote, source, said_at)
        or _lost(wording, quote, said_at)
        or _turned(wording, quote, source)
        or _wandered(wording, source)
    )


def _invented(wording: str, quote: str, source: str, said_at: float) -> str:
    known = source.casefold()
    plain = _USER.sub(" ", wording)
    new_names = [name for name in names_of(plain) if name not in known]
    if new_names:
        return "names something that was not said"
    if not _numbers(plain) <= _numbers(source) | _date_numbers(quote, said_at):
        return "has a number or a date that was not said"
    for kind in (_NUMBER_WORDS, WEEKDAYS, _NUMERALS_ZH):
        if any(match.group().casefold() not in known for match in kind.finditer(plain)):
            return "has a number or a day that was not said"
    months = {_month(match.group()) for match in MONTH_NAMES.finditer(plain)}
    said_months = {_month(match.group()) for match in MONTH_NAMES.finditer(source)}
    if not months <= said_months | _dated_months(quote, said_at):
        return "has a month that was not said"
    return ""


def _numbers(text: str) -> set[str]:
    return {number.lstrip("0") or "0" for number in _DIGITS.findall(text)}


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
    if _HEDGED.search(quote) and not _HEDGED.search(wording):
        return "makes certain what the quote leaves open"
    said, told = _relations(quote), _relations(wording)
    if not said <= told or not told <= _relations(source):
        return "speaks of another person than the quote"
    return ""


def _relations(text: str) -> set[str]:
    english = {match.group().casefold().rstrip("s") for match in RELATIONS.finditer(text)}
    return english | {match.group() for match in RELATIONS_ZH.finditer(text)}


def _wandered(wording: str, source: str) -> str:
    words = {word for word in terms(_USER.sub(" ", wording)) if not word[0].isdigit()}
    new = words - terms(source)
    if words and len(new) > NEW_WORDS_MAX * len(words):
        return "must use the words of the quote"
    return ""


__all__ = ["objection"]
