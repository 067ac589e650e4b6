"""Which part of a sentence is a statement of the user about themselves and their world, and what kind it is.

When in doubt about a declarative sentence in the first person, keep it: a lost fact cannot be recalled, a needless one
only ranks low. Questions, requests, courtesies and talk about the talk are not statements. Whether the sentence is the
user's own, and meant, has been asked before (`own_words`). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from memory.learn.statements.passing import is_passing
from memory.learn.statements.presented_words import SPEECH_BEFORE_A_QUOTE
from memory.learn.statements.pronouns import Antecedent, antecedent_of_head, antecedent_of_there
from memory.learn.statements.remembering import asks_to_remember, form_of_address_asked, told_to_remember
from memory.learn.words import lexicon
from memory.learn.words.lexicon import Language, language_of
from memory.learn.words.sentences import Sentence

IGNORE_CASE = re.IGNORECASE

ROLE_PLAY_START_MAX = 12  # characters before the word, such as "please"
COURTESY_CHARACTERS_MAX = 80  # a longer sentence says more than thanks


class Voice(Enum):
    """Who speaks of whom, which decides how sure we are that it is about the user."""

    FIRST_PERSON = "first_person"
    WISH = "wish"  # a lasting wish about how to be served, given as a command
    THIRD_PERSON = "third_person"


@dataclass(frozen=True, slots=True)
class Statement:
    """`text` is an exact substring of the sentence it was taken from. `antecedent`: whom its pronoun stands for;
    `place`: where its "there" is."""

    text: str
    language: Language
    voice: Voice
    is_explicit: bool = False
    antecedent: Antecedent | None = None
    place: Antecedent | None = None


_CLAUSE_END = re.compile(
    r"(?<=[,;，；])(?!\d{3}\b)\s*|\s+[-–—]+\s+|\s+(?=(?:because|since)\s+(?:i|my|we|our)\b)", IGNORE_CASE
)
_CLAUSE_OF_ONES_OWN = re.compile(
    r"\s*(?:and |but |as |since |because |so |though )?(?:i(?:['’](?:m|ve|d|ll))?|we(?:['’](?:re|ve|ll))?|my|our|"
    r"she(?:['’]s)?|he(?:['’]s)?|"
    r"ich|wir|mein\w*|unser\w*|yo|mis?|soy|tengo|estoy|nuestr\w+)\s+\S+",
    IGNORE_CASE,
)
_SUBORDINATE = re.compile(
    r"\s*(?:and |but |so )?(?:if|when|whenever|while|once|unless|wenn|falls|si|cuando)\b|\s*(?:如果|当|要是)",
    IGNORE_CASE,
)
_ONLY_ASKS_FOR_WORDS = re.compile(
    r"\s*(?:please\s+)?(?:just\s+|only\s+)?(?:say|reply|answer|confirm|acknowledge|respond)\b.{0,40}$|"
    r"\s*(?:no need to|you don['’]t (?:need|have) to)\b.{0,40}$|\s*请?(?:回复|回答|只说|确认).{0,12}$",
    IGNORE_CASE,
)
_DIGIT = re.compile(r"\d")
_NAME_INSIDE = re.compile(r"(?<=[\w,;:'’)] )(?!I\b|I['’])[A-ZÀ-Þ][\wÀ-ÿ'’-]+")
_NAMED_SUBJECT = re.compile(
    r"\s*(?!(?:This|That|It|There|These|Those|They|He|She|Here|Everything|Something|Nothing|What|Who|Life|People|"
    r"Yes|No|Not|Too|Very)\b)"
    r"[A-ZÀ-Þ][\wÀ-ÿ'’-]+(?: [A-ZÀ-Þ][\wÀ-ÿ'’-]+)* (?:is|has|gets|likes|loves|lives|works|can|can['’]t|needs|was|"
    r"will|hates|eats|plays|"
    r"died|passed away|moved|married|graduated|broke|lost|won|got|had|started|finished|joined|left|retired|turned|"
    r"ist|hat|heißt|wohnt|mag|starb|es|tiene|vive|se llama|murió)\b"
)
_LIFE_EVENT_ZH = re.compile("(?:去世|过世|走|死|住院|出生|怀孕|受伤|骨折|结婚|订婚)了")
_OWN_ATTRIBUTE_ZH = re.compile(
    "(?:血型|身高|体重|生日|年龄|职业|星座|属相|籍贯|国籍|鞋码|衣服尺码|过敏原|母语)(?:是|为|：|:|\\d)[^，。？?什多几]"
)
_LATIN = re.compile(r"[A-Za-z]{2,}")
_STATES = re.compile(
    r"\b(?:is|are|was|were|has|have|will|lives?|stands?|sits?|hangs?|works?|belongs?|runs?|ist|sind|hat|haben|liegt|"
    r"steht|está|están|tiene|hay)\b",
    IGNORE_CASE,
)
_CALENDAR = re.compile(
    rf"{lexicon.WEEKDAYS.pattern}|\b\d{{1,2}}\.?(?: of| de)? {lexicon.MONTH_NAMES.pattern}|"
    rf"{lexicon.MONTH_NAMES.pattern} \d{{1,2}}\b|"
    r"\b\d{1,2}(?::\d\d)?\s?(?:am|pm|uhr)\b|\b\d{1,2}:\d\d\b|[一二三四五六七八九十\d]+月[一二三四五六七八九十\d]+[号日]|[一二三四五六七八九十\d]+点",
    IGNORE_CASE,
)
_VERSION = re.compile(r"\b[A-Za-z][\w.-]+ v?\d{1,3}\.\d+\b|\b[A-Z]\w+ \d{1,3}\b(?= since| as of)")
_OFF = re.compile(r"(?:off|cancell?ed|postponed|\d{1,2} (?:now|as of|since))\b", IGNORE_CASE)
_STEADY = re.compile(
    r"\b(?:same as (?:ever|always|before)|unchanged|is still on|wie gehabt|wie immer|igual|no change)\b|照旧|没变|"
    r"没动|照常|不变",
    IGNORE_CASE,
)


def is_question(text: str, language: Language) -> bool:
    """Whether the clause asks, with or without its mark."""
    if text.rstrip().endswith(("?", "？")) or lexicon.QUESTION_START[language].match(text):
        return True
    return bool(language == "zh" and lexicon.QUESTION_ZH.search(text) and not lexicon.QUESTION_ZH_DENIED.search(text))


def is_request(text: str, language: Language) -> bool:
    return bool(lexicon.REQUEST_START[language].match(text))


def is_wish(text: str, language: Language) -> bool:
    """Whether a command is meant to last: "never recommend pork", "以后都叫我…"."""
    if lexicon.FORM_OF_ADDRESS.match(text) or lexicon.STANDING.match(text):
        return True
    if not lexicon.LASTING.search(text):
        return False
    return is_request(text, language) or bool(lexicon.LASTING.match(text)) or language in ("zh", "de", "es")


def is_courtesy(text: str) -> bool:
    if len(text) > COURTESY_CHARACTERS_MAX:
        return False
    asks_for_words = _ONLY_ASKS_FOR_WORDS.match(text) and not lexicon.LASTING.search(text)
    return bool(lexicon.COURTESY.match(text) or lexicon.COURTESY_ZH.match(text) or asks_for_words)


def is_own_matter(sentence: Sentence) -> bool:
    """Whether the sentence only tells: it neither asks nor wants anything done now."""
    language = language_of(sentence.text)
    if is_courtesy(sentence.text) or asks_to_remember(sentence.text):
        return True
    return not any(
        is_question(c, language) or (is_request(c, language) and not is_wish(c, language))
        for c in _clauses(sentence.text)
    )


def statements(sentence: Sentence, *, is_telling: bool, before: Sequence[str] = ()) -> list[Statement]:
    """The statements in a sentence, in order. `is_telling`: the message it stands in tells, so names and numbers of
    others in it are told on purpose; without that, only what is in the first person counts, and what is told of
    somebody of the user's own. `before`: what the user said before it, oldest first."""
    text = sentence.text
    told = told_to_remember(text, is_marked_question=sentence.is_marked_question).strip("\"'“”‘’ ")
    if told:
        return [Statement(told, language_of(told), _voice_of_explicit(told), is_explicit=True)]
    address = form_of_address_asked(text)
    if address:
        return [Statement(address, language_of(address), Voice.WISH)]
    if is_courtesy(text) or _announces(sentence):
        return []
    filler = lexicon.LEADING_FILLER.match(text)
    text = text[filler.end() :] if filler else text
    if not any(c.isalnum() for c in text) or is_courtesy(text) or lexicon.ABOUT_THE_TALK.match(text):
        return []
    language = language_of(text)
    found: list[Statement] = []
    for run in _declarative_runs(text, language):
        said_before = [*before, text[: text.index(run)]]
        antecedent = antecedent_of_head(run, said_before)
        voice = _voice(run, language, is_telling=is_telling) or (Voice.THIRD_PERSON if antecedent else None)
        if voice is not None and not is_courtesy(run) and not is_beside_the_point(run):
            found.append(
                Statement(run, language, voice, antecedent=antecedent, place=antecedent_of_there(run, said_before))
            )
    return found


def is_beside_the_point(text: str) -> bool:
    """Whether it is about the talk, or so only for the moment."""
    return bool(lexicon.ABOUT_THE_TALK.match(text)) or is_passing(text)


def _announces(sentence: Sentence) -> bool:
    """Whether it only says who speaks in the foreign text behind it."""
    text = sentence.text
    return sentence.precedes_foreign and bool(text.endswith((":", "：")) or SPEECH_BEFORE_A_QUOTE.search(text))


def opens_role_play(sentence: Sentence) -> bool:
    """Whether from here on the user plays a part: nothing of the rest of the session is about them."""
    match = lexicon.ROLE_PLAY.search(sentence.text)
    if match is None:
        return False
    before = sentence.text[: match.start()]
    is_told = any(word.casefold() in ("i", "we", "my", "our", "我", "我们") for word in before.split())
    return not is_told and (len(before) < ROLE_PLAY_START_MAX or is_request(sentence.text, language_of(sentence.text)))


def _voice_of_explicit(text: str) -> Voice:
    language = language_of(text)
    if lexicon.FIRST_PERSON[language].search(text):
        return Voice.FIRST_PERSON
    return Voice.WISH if is_request(text, language) or is_wish(text, language) else Voice.THIRD_PERSON


def _clauses(text: str) -> list[str]:
    return [clause for clause in _CLAUSE_END.split(text) if clause.strip()]


def _declarative_runs(text: str, language: Language) -> Iterator[str]:
    """The longest stretches of `text` that neither ask nor request, each an exact substring of it."""
    asks = text.rstrip().endswith(("?", "？"))
    if not asks and (is_request(text, language) or lexicon.STANDING.match(text)) and is_wish(text, language):
        yield text
        return
    cut = language == "zh" or asks or is_question(text, language) or is_request(text, language)
    if not cut:
        yield text
        return
    yield from _runs_of_kept_clauses(text, language)


def _runs_of_kept_clauses(text: str, language: Language) -> Iterator[str]:
    start: int | None = None
    end = 0
    position = 0
    is_asked = False
    for index, clause in enumerate(_clauses(text)):
        begin = text.index(clause, position)
        position = begin + len(clause)
        if _is_kept_clause(clause, language, is_first=index == 0, is_asked=is_asked):
            start = begin if start is None else start
            end = position
        elif start is not None:
            yield _trimmed(text[start:end])
            start = None
        is_asked = is_asked or _asks(clause, language)
    if start is not None:
        yield _trimmed(text[start:end])


def _is_kept_clause(clause: str, language: Language, *, is_first: bool, is_asked: bool) -> bool:
    """`is_asked`: a clause before it asks or requests, so that the mark at its end may be that one's."""
    bare = clause.strip(" ,;，；。.!！")
    if not bare or (is_first and _SUBORDINATE.match(clause)):
        return False
    if language == "zh":
        return not is_courtesy(bare) and (is_wish(bare, language) or not _asks(bare, language))
    if bare.endswith(("?", "？")) and is_asked:
        bare = bare.rstrip(" ?？")
        return bool(_CLAUSE_OF_ONES_OWN.match(bare)) and _says_enough(bare) and not _asks(bare, language)
    if _asks(bare, language):
        return False
    if _CLAUSE_OF_ONES_OWN.match(bare):
        return True
    return is_first and (bool(lexicon.FIRST_PERSON[language].search(bare)) or _tells_a_value(bare))


def _asks(clause: str, language: Language) -> bool:
    return is_question(clause, language) or is_request(clause, language)


def _says_enough(clause: str) -> bool:
    return len(clause.split()) > 2 or bool(_DIGIT.search(clause))


def _trimmed(text: str) -> str:
    return text.strip(" ,;，；?？\t")


def _voice(text: str, language: Language, *, is_telling: bool) -> Voice | None:
    begins_as_one = lexicon.LASTING.match(text) or lexicon.STANDING.match(text)
    is_command = is_request(text, language) or begins_as_one or lexicon.FORM_OF_ADDRESS.search(text)
    if is_command and is_wish(text, language):
        return Voice.WISH
    if lexicon.FIRST_PERSON[language].search(text) or lexicon.FIRST_PERSON_UNSPACED.search(text):
        return Voice.FIRST_PERSON if len(text) >= 3 else None
    if lexicon.SUBJECTLESS_SURE.search(text):
        return Voice.FIRST_PERSON
    if language == "zh":
        return _voice_zh(text, is_telling=is_telling)
    says_no_more = _STEADY.search(text) and not lexicon.CHANGE_WORDS.search(text)
    if _tells_a_value(text):
        return Voice.THIRD_PERSON
    if is_telling and not says_no_more and len(text.split()) >= 3 and _is_specific(text):
        return Voice.THIRD_PERSON
    return None


def _tells_a_value(text: str) -> bool:
    """Whether it says when something is, which version it runs, or that it is off: somebody's plans, no knowledge."""
    told = lexicon.VALUE_TOLD.match(text)
    return told is not None and bool(
        _CALENDAR.search(text, told.end()) or _VERSION.search(text) or _OFF.match(text, told.end())
    )


def _voice_zh(text: str, *, is_telling: bool) -> Voice | None:
    if len(text) < 4:
        return None
    if lexicon.LASTING.search(text) and is_telling:
        return Voice.WISH
    if lexicon.RELATIONS_ZH.search(text) or lexicon.HOUSEHOLD_ZH.search(text) or _OWN_ATTRIBUTE_ZH.match(text):
        return Voice.FIRST_PERSON
    if lexicon.SUBJECTLESS_ZH.match(text):
        return Voice.FIRST_PERSON
    if lexicon.VALUE_TOLD_ZH.match(text) and (_CALENDAR.search(text) or _VERSION.search(text)):
        return Voice.THIRD_PERSON
    if not is_telling or (_STEADY.search(text) and not _DIGIT.search(text) and not lexicon.CHANGE_WORDS.search(text)):
        return None
    details = (
        lexicon.TIMES_ZH,
        lexicon.WEEKDAYS,
        lexicon.CHANGE_WORDS,
        lexicon.THIRD_PERSON_ZH,
        lexicon.STATES_ZH,
        _LIFE_EVENT_ZH,
    )
    is_detailed = any(detail.search(text) for detail in (*details, _LATIN, _DIGIT))
    return Voice.THIRD_PERSON if is_detailed else None


def _is_specific(text: str) -> bool:
    return bool(
        _DIGIT.search(text)
        or _NAME_INSIDE.search(text)
        or _NAMED_SUBJECT.match(text)
        or lexicon.MONTH_NAMES.search(text)
        or lexicon.WEEKDAYS.search(text)
        or lexicon.RELATIONS.search(text)
        or lexicon.CHANGE_WORDS.search(text)
        or lexicon.SUBJECTLESS.match(text)
        or (len(text.split()) >= 4 and _STATES.search(text))
    )
