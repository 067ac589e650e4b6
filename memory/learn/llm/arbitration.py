"""Which pairs of a new and an old statement rules leave open, and what is believed of a model's word on them.

Rules find a change by the user's words. Where no such word fell ("I train at Fitline", once "my gym is on Mill
Street"), a model is asked about the pair: the same, a change, or two different things. Its "change" counts only within
one subject and one attribute: statements about two people, or with two names or numbers that may both hold, stay two,
whatever it says; what else a statement says goes on. What the user asked to be remembered, or an application stored, no
model changes. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from memory.learn.changes.others import speaks_of_others
from memory.learn.changes.single_valued import tell_one_attribute
from memory.learn.changes.supersession import Verdict, compare, covers
from memory.learn.facts import Fact
from memory.learn.llm.judging import Unfit
from memory.learn.llm.prompting import Prompt, prompt_of, shipped_examples
from memory.learn.words import change_words as words
from memory.learn.words.clauses import Clause, clauses_of, remainder, without_pinned_dates
from memory.learn.words.terms import terms
from memory.learn.words.values import Values, differ_in_measure, values_of
from memory.model import Memory, MemoryStatus, Role, Trust, statement_key

ANSWER_TOKENS = 16
PAIRS_OF_ONE_FACT_MAX = 2  # the nearest; a fact that might change five others changes none of them for certain
OBJECT_WORDS_MAX = 3  # behind a word such as "sold": what ended
AMOUNT_SHARE_MIN = 0.6  # likewise, where both name an amount
TOPIC_SHARE_MIN = 0.5  # of the words of matter of the shorter statement, values aside

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"is": {"type": "string", "enum": ["same", "changes", "different"]}},
    "required": ["is"],
    "additionalProperties": False,
}

_PIECES = re.compile(r"\s*[,，;；]\s*")
_QUALIFIED = re.compile(
    r"\bmy (?P<kind>\w+) (?:gym|phone|laptop|car|bike|email|e-mail|number|doctor|bank)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class OpenPair:
    """A new fact, by its index, and the memory that it might change; both as texts, too."""

    index: int
    memory_id: str
    newer: str
    older: str


class _Answer(msgspec.Struct):
    is_: str = msgspec.field(name="is")


def open_pairs(facts: Sequence[Fact], known: Sequence[Memory]) -> list[OpenPair]:
    """The pairs that a model is worth asking about, each new fact's nearest ones only."""
    found: list[OpenPair] = []
    for index, fact in enumerate(facts):
        if fact.evidence.role != Role.USER or any(_says_the_same(fact, memory) for memory in known):
            continue
        near = [memory for memory in known if _is_open(fact, memory)]
        near.sort(key=lambda memory: (-_nearness(fact.content, memory.content), memory.id))
        found += [OpenPair(index, m.id, fact.content, m.content) for m in near[:PAIRS_OF_ONE_FACT_MAX]]
    return found


def _says_the_same(fact: Fact, memory: Memory) -> bool:
    is_here = memory.status is MemoryStatus.ACTIVE and memory.project_id == fact.scope.project_id
    return is_here and statement_key(memory.content) == statement_key(fact.content)


def _is_open(fact: Fact, memory: Memory) -> bool:
    if memory.status is not MemoryStatus.ACTIVE or memory.project_id != fact.scope.project_id:
        return False
    if memory.trust in (Trust.BOOTSTRAPPED, Trust.EXPLICIT) or memory.said_at >= fact.said_at:
        return False
    if any(evidence.turn_id == fact.evidence.turn_id for evidence in memory.evidence):
        return False  # one breath: what it says holds together
    return compare(fact.content, memory.content) is None and may_be_changed(fact.content, memory.content)


def may_be_changed(newer: str, older: str) -> bool:
    """Whether rules let a clause of `older` fall by `newer`, if somebody says that it does."""
    said, known = without_pinned_dates(newer), without_pinned_dates(older)
    return not covers(known, said) and bool(_falling(said, known))


def _falling(said: str, known: str) -> list[Clause]:
    whole = "，".join(piece for piece in _PIECES.split(said) if not words.STEADY.search(piece))
    parts = [whole, *(clause.text for clause in clauses_of(whole))]
    return [clause for clause in clauses_of(known) if any(_is_one_matter(part, clause.text) for part in parts)]


def _is_one_matter(said: str, clause: str) -> bool:
    if speaks_of_others(clause, said) or _kind(clause) != _kind(said) or covers(clause, said) or covers(said, clause):
        return False
    return tell_one_attribute(said, clause) or _is_one_topic(said, clause) or _ends(said, clause)


def _ends(said: str, clause: str) -> bool:
    """ "I'm learning Portuguese", "gave up Portuguese": an end is told of what the older one names."""
    told = (match for ending in (words.GONE, words.GIVEN_AWAY) for match in ending.finditer(said))
    objects = [terms(" ".join(said[match.end() :].split()[:OBJECT_WORDS_MAX])) for match in told]
    return any(thing & terms(clause) for thing in objects)


def _kind(text: str) -> str:
    """Of several things of one sort: "my work phone" is another than "my phone"."""
    match = _QUALIFIED.search(text)
    return match["kind"].casefold() if match else ""


def _is_one_topic(said: str, clause: str) -> bool:
    """Most words shared, and no name or number on either side that could stand beside the other's."""
    new, old = values_of(said), values_of(clause)
    if new.names ^ old.names:
        return False
    if differ_in_measure(new, old):
        return _is_one_amount(new, old)
    return len(terms(said) & terms(clause)) >= 2 and _nearness(said, clause) >= TOPIC_SHARE_MIN


def _is_one_amount(new: Values, old: Values) -> bool:
    """ "Metformin, 500 mg twice a day" and "1000 mg of metformin twice a day": all the same but for one number."""
    if (new.days or old.days) or not (new.weekdays == old.weekdays and new.times == old.times):
        return False
    shared = (new.topic & old.topic) - new.amounts.keys()  # "mg" is no matter
    return len(shared) >= 2 and len(shared) >= AMOUNT_SHARE_MIN * min(len(new.topic), len(old.topic))


def _nearness(said: str, known: str) -> float:
    first, second = terms(said), terms(known)
    return len(first & second) / max(1, min(len(first), len(second)))


@cache
def arbitrate_prompt() -> Prompt:
    pairs = [(_asked(one["older"], one["newer"]), {"is": one["is"]}) for one in shipped_examples("arbitrate")]
    return prompt_of("arbitrate", pairs)


def question(pair: OpenPair) -> str:
    return _asked(pair.older, pair.newer)


def _asked(older: str, newer: str) -> str:
    return f"Older: {older}\nNewer: {newer}"


def read(answer: str) -> str:
    """Raises `Unfit`."""
    try:
        word = msgspec.json.decode(answer, type=_Answer).is_.strip().casefold()
    except (msgspec.DecodeError, UnicodeError):
        raise Unfit('answer with {"is":"same"}, {"is":"changes"} or {"is":"different"} and nothing else') from None
    if word not in ("same", "changes", "different"):
        raise Unfit('"is" must be "same", "changes" or "different"')
    return word


def ruling(pair: OpenPair, word: str) -> Verdict | None:
    """What becomes of the older statement; None: both hold. The model proposes, rules dispose."""
    if word != "changes" or not may_be_changed(pair.newer, pair.older):
        return None
    known = without_pinned_dates(pair.older)
    return Verdict(remainder(known, _falling(without_pinned_dates(pair.newer), known)))


__all__ = ["OpenPair", "arbitrate_prompt", "may_be_changed", "open_pairs", "question", "read", "ruling"]
