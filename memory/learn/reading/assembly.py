"""Assembles claims from units and the encoder's output: self-contained text, labels, values and dates.

The encoder decides what a unit means; this module only combines. A unit that depends on the one before it ("He is
three.") is joined to it. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log2

from memory.language import asks_to_erase, is_asked, is_denied, is_leaning, mentions_erasing
from memory.language.dates import period
from memory.learn.reading.judgements import Judgement
from memory.learn.reading.labels import IMPORTANCE, IMPORTANCE_ASKED, type_of
from memory.learn.reading.replies import answered, question_of
from memory.learn.reading.units import Unit
from memory.model import (
    EXPLICIT_ACTS,
    NO_ATTRIBUTE,
    STORED_ACTS,
    Act,
    Claim,
    Evidence,
    Relation,
    Turn,
    is_single_valued,
)

KEPT_SHARE_MIN = 0.55  # sum over the acts that leave a memory, in a message of one sentence
KEPT_SHARE_STEP = 0.1  # added each time the length of the message doubles: each sentence is one more chance of an error
KEPT_SHARE_MAX = 0.9  # these three balance precision and coverage on development data
QUESTION_SHARE_MIN = 0.75  # of a question that states something: "what did I say about my guitar?" names its topic
ASKED_SHARE_MIN = 0.5  # of an act that changes memories
FORGET_SHARE_MIN = 0.95  # deleting cannot be undone: without confirming words, the encoder has to be almost certain
INSTRUCT_SHARE_MIN = 0.12  # low on purpose: even a small share of an instruction injection taints the message
CONFIDENCE_AT_LEAST = 0.7  # of a claim at its threshold; equals the gate's minimum
PROPOSED_SHARE_MIN = 0.25  # below it a unit is not proposed at all, so that refusals can be counted
SINGLE_VALUED_SHARE_MIN = 0.8  # of an attribute that has one value at a time
LETTERS_MIN = 2  # letters, digits or characters that a unit needs to have content
TEXT_CHARACTERS_MAX = 600  # of a claim with the units joined to it
UNDATED = frozenset({"birthday", "age"})  # attributes whose dates do not say when a claim holds


@dataclass(frozen=True, slots=True)
class JudgedMessage:
    """One message, split into units and judged. `previous`: the turn whose answer it replies to, if any."""

    message: str
    units: Sequence[Unit]
    judgements: Sequence[Judgement]
    turn: Turn
    previous: Turn | None
    made_by: str


@dataclass(slots=True)
class _ClaimSpan:
    """Characters `start` to `end` of the message, with the claim that they make."""

    start: int
    end: int
    claim: Claim
    last: int  # index of its last unit


def claims_of(reading: JudgedMessage) -> list[Claim]:
    """In the order said."""
    parts: list[_ClaimSpan] = []
    kept_bar = _kept_bar(sum(unit.is_own for unit in reading.units))
    for index, (unit, judgement) in enumerate(zip(reading.units, reading.judgements, strict=True)):
        act, share, bar = _act_of(judgement, unit.text, kept_bar)
        is_word = sum(character.isalnum() for character in unit.text) >= LETTERS_MIN
        if not (unit.is_own and is_word) or share < min(bar, PROPOSED_SHARE_MIN):
            continue
        claim = _claim(reading, index, act, _confidence(share, bar))
        _add(parts, reading, index, claim)
    return [_placed(reading, part) for part in parts]


def _kept_bar(own_units: int) -> float:
    return min(KEPT_SHARE_MAX, KEPT_SHARE_MIN + KEPT_SHARE_STEP * log2(max(1, own_units)))


def _act_of(judgement: Judgement, text: str, kept_bar: float) -> tuple[Act, float, float]:
    """The most likely act other than none, its share, and the share that it needs."""
    acts = judgement.acts
    if acts[Act.INSTRUCT.value] >= INSTRUCT_SHARE_MIN:
        return Act.INSTRUCT, acts[Act.INSTRUCT.value], INSTRUCT_SHARE_MIN
    act = max(Act, key=lambda one: acts[one.value])
    if act in STORED_ACTS:
        # "Can you remember that …?" is a request, not a question.
        bar = max(kept_bar, QUESTION_SHARE_MIN) if act is Act.STATE and is_asked(text) else kept_bar
        return act, sum(acts[one.value] for one in STORED_ACTS), bar
    return act, acts[act.value], _forget_bar(text) if act is Act.FORGET else ASKED_SHARE_MIN


def _forget_bar(text: str) -> float:
    """A request to forget needs two signals: the encoder, and a phrase that asks for it in the position of a request.
    The same phrase elsewhere ("don't forget …") counts against it.
    """
    if asks_to_erase(text):
        return ASKED_SHARE_MIN
    return inf if mentions_erasing(text) else FORGET_SHARE_MIN


def _confidence(share: float, bar: float) -> float:
    """0..1; a share exactly at its threshold gives `CONFIDENCE_AT_LEAST`."""
    if share >= bar:
        return CONFIDENCE_AT_LEAST + (1.0 - CONFIDENCE_AT_LEAST) * (share - bar) / (1.0 - bar)
    return CONFIDENCE_AT_LEAST * share / bar


def _claim(reading: JudgedMessage, index: int, act: Act, confidence: float) -> Claim:
    unit, judgement, turn = reading.units[index], reading.judgements[index], reading.turn
    of_kind = {
        kind: tuple(unit.text[s.start : s.end] for s in judgement.stretches if s.kind == kind)
        for kind in ("value", "name")
    }
    holds_from, holds_until = (None, None) if judgement.attribute in UNDATED else period(unit.text, turn.at)
    attribute = _attribute_of(judgement)
    category = "correction" if act is Act.CORRECT else judgement.category
    return Claim(
        act=act,
        text=unit.text,
        evidence=Evidence(unit.text, turn.id),
        scope=turn.scope,
        said_at=turn.at,
        relation=Relation(judgement.relation),
        name=of_kind["name"][0] if of_kind["name"] else "",
        attribute=attribute,
        values=of_kind["value"],
        is_affirmed=not is_denied(unit.text),
        holds_from=holds_from,
        holds_until=holds_until,
        memory_type=type_of(act, attribute, category),
        category=category,
        confidence=confidence,
        importance=IMPORTANCE_ASKED if act in EXPLICIT_ACTS else IMPORTANCE[category],
        made_by=reading.made_by,
    )


def _attribute_of(judgement: Judgement) -> str:
    """None if a single-valued attribute is uncertain: a new value would supersede a memory."""
    is_sure = judgement.attribute_share >= SINGLE_VALUED_SHARE_MIN or not is_single_valued(judgement.attribute)
    return judgement.attribute if is_sure else NO_ATTRIBUTE


def _add(parts: list[_ClaimSpan], reading: JudgedMessage, index: int, claim: Claim) -> None:
    """As a claim of its own, or joined to the previous one if it depends on that."""
    unit = reading.units[index]
    before = parts[-1] if parts else None
    leans = claim.act in STORED_ACTS and index > 0 and _leans(reading, index)
    if leans and before is not None and _may_join(before, index, unit, claim):
        before.end, before.last = unit.end, index
        before.claim = replace(before.claim, values=(*before.claim.values, *claim.values))
        return
    start = unit.start
    if leans and not (before is not None and before.last == index - 1):
        earlier = reading.units[index - 1]
        if earlier.is_own and unit.end - earlier.start <= TEXT_CHARACTERS_MAX:
            start = earlier.start
    parts.append(_ClaimSpan(start, unit.end, claim, index))


def _may_join(before: _ClaimSpan, index: int, unit: Unit, claim: Claim) -> bool:
    is_kept = min(before.claim.confidence, claim.confidence) >= CONFIDENCE_AT_LEAST
    is_next = before.last == index - 1 and before.claim.act in STORED_ACTS
    return is_kept and is_next and unit.end - before.start <= TEXT_CHARACTERS_MAX


def _leans(reading: JudgedMessage, index: int) -> bool:
    gap = reading.message[reading.units[index - 1].end : reading.units[index].start]
    return gap.count("\n") < 2 and is_leaning(reading.units[index].text)


def _placed(reading: JudgedMessage, part: _ClaimSpan) -> Claim:
    text = reading.message[part.start : part.end]
    claim = replace(part.claim, text=text, evidence=replace(part.claim.evidence, quote=text))
    if len(reading.units) > 1 or reading.previous is None:
        return claim
    return answered(claim, question_of(reading.previous.answer), reading.previous.id)
