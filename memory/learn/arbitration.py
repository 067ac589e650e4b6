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

from memory.learn import change_words as words
from memory.learn.clauses import Clause, clauses_of, remainder, without_pinned_dates
from memory.learn.facts import Fact
from memory.learn.judging import Unfit
from memory.learn.prompting import Prompt, prompt_of, shipped_examples
from memory.learn.supersession import Verdict, compare, covers, speaks_of_others
from memory.learn.terms import terms
from memory.learn.values import differ_in_measure, values_of
from memory.model import Memory, MemoryStatus, Role, Trust, statement_key

ANSWER_TOKENS = 16
PAIRS_OF_ONE_FACT_MAX = 2  # the nearest; a fact that might change five others changes none of them for certain
TOPIC_SHARE_MIN = 0.5  # of the words of matter of the shorter statement, values aside

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"is": {"type": "string", "enum": ["same", "changes", "different"]}},
    "required": ["is"],
    "additionalProperties": False,
}

# Attributes that a person has one of, however they word it. Each pattern finds the words that tell it.
_SINGLE = (
    words.DIET,
    words.MANAGER,
    re.compile(
        r"\b(?:i|we)(?:['’](?:m|re|ve))? (?:\w+ )?(?:live|living|reside|based|moved|rent|renting)\b|"
        r"\b(?:ich|wir) (?:wohne|wohnen|lebe)\b|\b(?:wohne|lebe) ich\b|\b(?:vivo|vivimos)\b|"
        r"我们?(?:家)?(?:现在)?(?:住|在.{1,8}租)",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bi(?:['’]m| am)? (?:\w+ )?(?:work(?:ing)? (?:at|for)|employed (?:at|by)|hired by)\b|\bmy (?:job|employer)\b|"
        r"\bich (?:arbeite bei|bin bei)\b|\btrabajo (?:en|para)\b|我(?:现在)?在.{1,12}(?:上班|工作|任职)",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bmy (?:gym|dentist|gp|doctor|therapist|landlord|landlady|bank|phone|laptop|car|bike|email|e-mail|number|"
        r"birthday|height|weight|shoe size|favou?rite \w+|(?:line )?manager|boss|salary|rent)\b",
        re.IGNORECASE,
    ),
    re.compile(
        "我的?(?:车|手机|电脑|医生|牙医|房东|银行|邮箱|电话|生日|身高|体重|鞋码|工资|房租|健身房)(?:是|在|换|有)"
    ),
)
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
    if words.STEADY.search(said) or covers(known, said) or covers(said, known):
        return False
    return bool(_falling(said, known))


def _falling(said: str, known: str) -> list[Clause]:
    return [clause for clause in clauses_of(known) if _is_one_matter(said, clause.text)]


def _is_one_matter(said: str, clause: str) -> bool:
    if speaks_of_others(clause, said) or _kind(clause) != _kind(said):
        return False
    if any(single.search(said) and single.search(clause) for single in _SINGLE[:-2]):
        return True
    for single in _SINGLE[-2:]:  # these name the attribute: it has to be the same one
        old, new = single.search(clause), single.search(said)
        if old and new and old.group().casefold() == new.group().casefold():
            return True
    return _is_one_topic(said, clause)


def _kind(text: str) -> str:
    """Of several things of one sort: "my work phone" is another than "my phone"."""
    match = _QUALIFIED.search(text)
    return match["kind"].casefold() if match else ""


def _is_one_topic(said: str, clause: str) -> bool:
    """Most words shared, and no name or number on either side that could stand beside the other's."""
    new, old = values_of(said), values_of(clause)
    if new.names ^ old.names or differ_in_measure(new, old):
        return False
    return _nearness(said, clause) >= TOPIC_SHARE_MIN


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
