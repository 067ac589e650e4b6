"""Extraction in one call for models that can do it (7 B and up): the chat as it is shown, and what is believed of it.

The model quotes and rewords; rules check every field. A quote must stand, word for word, in what the user typed
themselves and meant (`own_words`), and tell something; a wording that says more than its quote gives way to the user's
own words; a day has to be one that the words mean. What fails is told to the model once, then left out. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from memory.learn.facts import Fact
from memory.learn.llm.judging import Unfit
from memory.learn.llm.prompting import Example, Prompt, prompt_of, shipped_examples
from memory.learn.llm.wording import objection
from memory.learn.statements import replies, verbatim
from memory.learn.statements.labels import category_of, type_of
from memory.learn.statements.own_words import MESSAGE_CHARACTERS_MAX, meant_sentences, meant_text
from memory.learn.statements.remembering import asks_to_remember
from memory.learn.statements.salience import (
    Statement,
    Voice,
    is_beside_the_point,
    is_courtesy,
    is_question,
    is_request,
    is_wish,
)
from memory.learn.words.dates import pinned
from memory.learn.words.lexicon import FIRST_PERSON, Language, language_of
from memory.learn.words.sentences import Sentence
from memory.model import CATEGORIES, Evidence, Role, Turn

CHAT_CHARACTERS_MAX = 12_000  # of one call; a longer window takes several, or it would not fit beside its examples
ANSWER_CHARACTERS = 400  # of each of the assistant's, its end: enough to see what was replied to
FACTS_MAX = 30  # of one call
QUOTE_CHARACTERS_MAX = 400
DAY_SECONDS = 86_400.0
LEVELS = ("low", "medium", "high")
CONFIDENCE = {"high": 0.9, "medium": 0.8, "low": 0.5}
IMPORTANCE = {"high": 0.8, "medium": 0.5, "low": 0.3}
IMPLIED_COST = 0.05  # of confidence
OBJECTIONS_TOLD = 5

BROKEN_OFF = "the answer broke off; give the facts that come after the last whole one, in the same form"

_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_UNWANTED = re.compile(
    r"\s*(?:(?:please|bitte|por favor),?\s+)?(?:don['’]?t|do not|avoid|stop|skip|no|keine?)\b|\s*请?(?:别|不要)",
    re.IGNORECASE,
)
_FOR_THE_USER = re.compile(
    r"[帮给替为让]我|\b(?:for|to|with|tell|show|give|help|send|book|get|find) (?:me|us)\b", re.IGNORECASE
)
_OPENING = re.compile(r'\s*\{\s*"facts"\s*:\s*\[\s*')


class Drafted(msgspec.Struct):
    """One fact as the model wrote it."""

    quote: str
    text: str
    type: str = "semantic"
    category: str = "fact"
    subject: str = "user"
    told: str = "explicit"
    sure: str = "high"
    weight: str = "medium"
    starts: str = ""
    ends: str = ""


class _Answer(msgspec.Struct):
    facts: list[Drafted]


def _enum(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _line(characters: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": characters}


_FIELDS: dict[str, Any] = {
    "quote": _line(QUOTE_CHARACTERS_MAX),
    "text": _line(QUOTE_CHARACTERS_MAX),
    "type": _enum("semantic", "episodic", "procedural"),
    "category": _enum(*CATEGORIES),
    "subject": _line(40),
    "told": _enum("explicit", "implied"),
    "sure": _enum(*LEVELS),
    "weight": _enum(*LEVELS),
    "starts": _line(10),
    "ends": _line(10),
}
_FACT = {"type": "object", "properties": _FIELDS, "required": list(_FIELDS), "additionalProperties": False}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"facts": {"type": "array", "maxItems": FACTS_MAX, "items": _FACT}},
    "required": ["facts"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Part:
    """Turns that go into one call, and those before them, for context."""

    turns: tuple[Turn, ...]
    context: tuple[Turn, ...]


def parts_of(turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Part]:
    """One, unless the window is too long for one call."""
    found: list[Part] = []
    waiting: list[Turn] = []
    before, room = list(context), CHAT_CHARACTERS_MAX
    for turn in turns:
        size = sum(len(line) for line in _lines(turn))
        if waiting and size > room:
            found.append(Part(tuple(waiting), tuple(before[-1:])))
            before, waiting, room = [*before, *waiting], [], CHAT_CHARACTERS_MAX
        waiting.append(turn)
        room -= size
    return [*found, Part(tuple(waiting), tuple(before[-1:]))] if waiting else found


def draft_prompt(examples: Sequence[Example], topics: Sequence[str]) -> Prompt:
    pairs = [(one["chat"], {"facts": one["facts"]}) for one in shipped_examples("draft")]
    return prompt_of("draft", [*pairs, *(_pair(example) for example in examples)], topics=topics)


def _pair(example: Example) -> tuple[str, dict[str, Any]]:
    chat = "\n".join(filter(None, (example.before and f"assistant: {example.before}", f"user: {example.said}")))
    statement = Statement(example.said, language_of(example.said), Voice.FIRST_PERSON)
    drafted = Drafted(example.said, example.said, type_of(statement), category_of(statement))
    return chat, {"facts": [msgspec.to_builtins(drafted)] if example.keep else []}


def chat_of(part: Part) -> str:
    """The talk with its date, pasted and quoted text left out."""
    day = datetime.fromtimestamp(part.turns[0].at, UTC)
    before = [f"assistant: {_end(turn.answer)}" for turn in part.context if turn.answer]
    lines = [line for turn in part.turns for line in _lines(turn)]
    return "\n".join((f"Date: {day:%Y-%m-%d, %A}", *before, *lines))


def _lines(turn: Turn) -> Iterator[str]:
    for message in verbatim.user_messages(turn):
        if len(message.content) <= MESSAGE_CHARACTERS_MAX:
            shown = re.sub(r"\n{2,}", "\n[…]\n", meant_text(message.content).strip())
            yield f"user: {shown}"
    if turn.answer:
        yield f"assistant: {_end(turn.answer)}"


def _end(answer: str) -> str:
    shown = " ".join(answer.split())
    return shown if len(shown) <= ANSWER_CHARACTERS else f"…{shown[-ANSWER_CHARACTERS:]}"


def halves_of(part: Part) -> tuple[Part, ...]:
    """Two, or none of a single turn."""
    middle = len(part.turns) // 2
    if middle == 0:
        return ()
    first, second = part.turns[:middle], part.turns[middle:]
    return Part(first, part.context), Part(second, first[-1:])


@dataclass(frozen=True, slots=True)
class Draft:
    """The facts of a part as a model wrote them, all of them unless not `is_whole`."""

    facts: Sequence[Drafted]
    is_whole: bool = True


def encode(draft: Draft) -> str:
    """JSON in the form that is asked of a model; a mark tells a draft that is not whole. ASCII, as all that is kept."""
    mark = {} if draft.is_whole else {"is_whole": False}
    return json.dumps({"facts": msgspec.to_builtins(draft.facts), **mark})


def decode(kept: str) -> Draft | None:
    """What `encode` made; None for anything else."""
    try:
        fields = json.loads(kept)
        return Draft(msgspec.convert(fields, _Answer).facts, is_whole=fields.get("is_whole", True))
    except (ValueError, AttributeError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class Review:
    """What could be read of an answer, and what the model should mend in it, or ""."""

    facts: Sequence[Drafted]
    objections: str


def review(answer: str, part: Part) -> Review:
    """Never fails: an answer of which nothing can be read has no facts, and an objection."""
    try:
        facts = read(answer)
    except Unfit as unfit:
        begun = begun_facts(answer)
        return Review(begun, BROKEN_OFF if begun else str(unfit))
    return Review(facts, objections(facts, part))


def breaks_off(answer: str, *, is_cut: bool) -> bool:
    """Whether it is in the form that was asked for and ends before its end. `is_cut`: the server says so.

    Servers need not: then whole facts before what cannot be read tell it from junk.
    """
    return _OPENING.match(answer) is not None if is_cut else not is_readable(answer) and bool(begun_facts(answer))


def is_readable(answer: str) -> bool:
    try:
        read(answer)
    except Unfit:
        return False
    return True


def read(answer: str) -> list[Drafted]:
    """Raises `Unfit` for what is not the form that was asked for; its fields are checked one by one, later."""
    try:
        return msgspec.json.decode(answer, type=_Answer).facts[:FACTS_MAX]
    except (msgspec.DecodeError, UnicodeError):
        raise Unfit('answer with {"facts":[…]} as in the examples, complete, and nothing else') from None


def begun_facts(answer: str) -> list[Drafted]:
    """The whole facts of an answer, also of one that broke off for want of tokens."""
    opening = _OPENING.match(answer)
    if opening is None:
        return []
    rest = answer[opening.end() :]
    found: list[Drafted] = []
    while len(found) < FACTS_MAX:
        try:
            one, end = json.JSONDecoder().raw_decode(rest)
            found.append(msgspec.convert(one, Drafted))
        except (ValueError, RecursionError):
            break
        rest = rest[end:].lstrip(" \t\r\n,")
    return found


def objections(drafted: Sequence[Drafted], part: Part) -> str:
    """What a model could mend in its answer, or ""."""
    told = []
    for number, one in enumerate(drafted, 1):
        turn = source_of(one.quote, part)
        if turn is None:
            told.append(f"fact {number}: the quote must be copied exactly from one message of the user")
        elif reason := objection(one.text, one.quote, around=_around(part), said_at=turn.at):
            told.append(f"fact {number}: the text {reason}")
    return "; ".join(told[:OBJECTIONS_TOLD])


def facts_of(drafted: Sequence[Drafted], part: Part, *, made_by: str) -> list[Fact]:
    """Those that have a quote, each with its wording where that says no more than the quote. The rest is dropped."""
    found: dict[str, Fact] = {}
    for one in drafted:
        turn = source_of(one.quote, part)
        quote = one.quote.strip()
        if turn is None or quote in found or _tells_nothing(quote, turn):
            continue
        found[quote] = _fact(one, quote, turn, part, made_by)
    return verbatim.without_jests(list(found.values()), part.turns)


def _tells_nothing(quote: str, turn: Turn) -> bool:
    """Whether rules are sure that it says nothing of the user. What is uncertain is the model's to decide."""
    language = language_of(quote)
    if replies.YES.match(quote) or replies.NO.match(quote):
        return True  # that it answers a question, rules see, and mark
    if asks_to_remember(quote) or is_wish(quote, language):
        return False
    if is_question(quote, language) or is_courtesy(quote) or is_beside_the_point(quote):
        return True
    return any(sentence.text.startswith(quote) and _only_asks(quote, language) for sentence in _sentences(turn))


def _sentences(turn: Turn) -> Iterator[Sentence]:
    for message in verbatim.user_messages(turn):
        yield from meant_sentences(message.content)


def _only_asks(quote: str, language: Language) -> bool:
    """Whether it wants something done now. What it wants not done may be a lasting wish."""
    if not is_request(quote, language) or _UNWANTED.match(quote):
        return False
    return not FIRST_PERSON[language].search(_FOR_THE_USER.sub(" ", quote))


def source_of(quote: str, part: Part) -> Turn | None:
    """The turn in whose messages the user says so, in their own words; None: nobody does."""
    sought = quote.strip()
    if not any(character.isalnum() for character in sought):
        return None
    for turn in part.turns:
        typed = [m.content for m in verbatim.user_messages(turn) if _is_talk(m.content)]
        if any(sought in content and sought in meant_text(content) for content in typed):
            return turn
    return None


def _is_talk(content: str) -> bool:
    return len(content) <= MESSAGE_CHARACTERS_MAX


def _fact(one: Drafted, quote: str, turn: Turn, part: Part, made_by: str) -> Fact:
    statement = Statement(quote, language_of(quote), Voice.FIRST_PERSON)
    own = verbatim.fact_of(statement, turn)
    is_sound = not objection(one.text, quote, around=_around(part), said_at=turn.at)
    dates = own.content[len(quote) :]
    text = one.text.strip()
    content = text if not dates or _ISO_DAY.search(text) else f"{text}{dates}"
    confidence = CONFIDENCE.get(one.sure, CONFIDENCE["low"])
    return Fact(
        content=content if is_sound else own.content,
        evidence=Evidence(quote, turn.id, Role.USER),
        scope=turn.scope,
        said_at=turn.at,
        memory_type=one.type if one.type in ("semantic", "episodic", "procedural") else own.memory_type,
        category=one.category if one.category in CATEGORIES else own.category,
        confidence=confidence - (IMPLIED_COST if one.told == "implied" else 0.0),
        importance=IMPORTANCE.get(one.weight, own.importance),
        subject=_subject(one.subject, quote, own),
        valid_from=_day(one.starts, quote, turn.at),
        expires_at=_end_of(_day(one.ends, quote, turn.at)),
        made_by=made_by,
    )


def _subject(subject: str, quote: str, own: Fact) -> str:
    """The user, or a word of the quote."""
    plain = subject.strip()
    return plain if plain and len(plain) <= 40 and plain.casefold() in quote.casefold() else own.subject


def _day(day: str, quote: str, said_at: float) -> float | None:
    """The beginning of a day, in Unix seconds, if the quote means that very day."""
    if not _ISO_DAY.fullmatch(day):
        return None
    meant = {meaning for _, meaning in pinned(quote, said_at)} | set(_ISO_DAY.findall(quote))
    try:
        return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() if day in meant else None
    except ValueError:
        return None


def _end_of(day: float | None) -> float | None:
    return None if day is None else day + DAY_SECONDS


def _around(part: Part) -> list[str]:
    """What a wording may take names from: all that the user typed, and the questions of the assistant."""
    turns = (*part.context, *part.turns)
    typed = [meant_text(m.content) for t in turns for m in verbatim.user_messages(t) if _is_talk(m.content)]
    return [*typed, *(replies.question_asked(turn) for turn in turns)]


__all__ = [
    "BROKEN_OFF",
    "SCHEMA",
    "Draft",
    "Drafted",
    "Part",
    "begun_facts",
    "breaks_off",
    "chat_of",
    "decode",
    "draft_prompt",
    "encode",
    "facts_of",
    "halves_of",
    "is_readable",
    "objections",
    "parts_of",
    "read",
    "review",
]
