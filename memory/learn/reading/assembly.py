"""Assembles claims from units and the encoder's output: one for each fact, with text that can be understood alone.

The encoder decides what a unit means, where its clauses begin, and which lean on what was said before ("He is three.");
this module only combines. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from memory.language import bare_reply, is_asked, is_denied
from memory.language.dates import period
from memory.learn.reading.judgements import (
    BEFORE_UNITS_MAX,
    PROPOSED_SHARE_MIN,
    JudgedClause,
    Judgement,
    Leaning,
    RequestSpan,
)
from memory.learn.reading.labels import IMPORTANCE, IMPORTANCE_ASKED, type_of
from memory.learn.reading.replies import answered, asking_clause, question_of, size_of
from memory.learn.reading.units import Unit, unwrapped
from memory.model import NO_ATTRIBUTE, Act, Claim, Evidence, Relation, Turn, is_single_valued
from memory.model.claims import EXPLICIT_ACTS, ORDERS, STORED_ACTS

KEPT_SHARE_MIN = 0.58  # sum over the acts that leave a memory; balances precision and coverage on development data
ONLY_ASKS_MIN = 0.5  # of a question that states nothing: "what is my sister's number?"
ORDERS_NOTHING_MIN = 0.75  # of one that looks like an order, which is worse to miss: "do you remember her number?"
ASKED_SHARE_MIN = 0.5  # of an act that changes memories
CORRECT_SHARE_MIN = 0.15  # of a correction that the encoder takes for a reply, and that names another value
ORDER_SHARE_MIN = 0.35  # of an order to forget or not to store: it does nothing unless it means something known
INSTRUCT_SHARE_MIN = 0.12  # low on purpose: even a small share of an instruction injection taints the message
CONFIDENCE_AT_LEAST = 0.7  # of a claim at its threshold; equals the gate's minimum
ORDER_ATTRIBUTE_MIN = 0.6  # of such an attribute, named in an order to forget
SINGLE_VALUED_SHARE_MIN = 0.8  # of an attribute that has one value at a time
CLAUSE_SIZE_MIN = 20  # letters of one that names nothing: of shorter facts nearly all have a value or a name
AFFIRMED_MIN = 0.8  # confidence of a reply that affirms the assistant's question: "Sure, go on" may be meant
LETTERS_MIN = 2  # letters, digits or characters that a unit needs to have content, unless it is a reply: "네"
LEANING_SHARE_MIN = 0.5  # from which a fact takes along what was said before it
LOST_SHARE_MIN, LOST_CONFIDENCE = 0.9, 0.5  # of one that leans on nothing that was said: nobody could understand it
OPENING_LEANING_MAX = 0.4  # of a fact with the opening of the clause that it leans on
CORRECTION_LEANING_MIN = 0.3  # of a correction: "Sorry, I meant my son" says nothing alone
ELLIPSIS = "…"
_KINDS = ("value", "name")
_SEEMS_TO = frozenset({Act.STATE, *EXPLICIT_ACTS, *ORDERS})  # what a question that only asks is taken for
TEXT_CHARACTERS_MAX = 600  # of a claim with the units joined to it
UNDATED = frozenset({"birthday", "age"})  # attributes whose dates do not say when a claim holds


@dataclass(frozen=True, slots=True)
class JudgedMessage:
    """One message, split into units and judged. `previous`: the turn whose answer it replies to, if any.

    `leaning`: how likely texts that are put together here cannot be understood alone.
    """

    message: str
    units: Sequence[Unit]
    judgements: Sequence[Judgement]
    turn: Turn
    previous: Turn | None
    made_by: str
    leaning: Leaning


@dataclass(frozen=True, slots=True)
class _Part:
    """Characters `start` to `end` of unit `index`, which say one fact, and what the encoder makes of them."""

    index: int
    start: int
    end: int
    labels: Judgement | JudgedClause
    most: float = 1.0  # its share cannot exceed that of its unit

    @property
    def leans(self) -> bool:
        return self.labels.leaning_share >= LEANING_SHARE_MIN


def claims_of(reading: JudgedMessage) -> list[Claim]:
    """In the order said."""
    found: list[Claim] = []
    for index, unit in enumerate(reading.units):
        is_word = sum(character.isalnum() for character in unit.text) >= LETTERS_MIN or bare_reply(unit.text)
        parts = _parts(reading, index) if unit.is_own and is_word else []
        for number, part in enumerate(parts):
            has_value = any(
                part.start <= one.start and one.end <= part.end for one in reading.judgements[index].stretches
            )
            act, share, bar = _act_of(part.labels, has_value=has_value)
            share = share if act is Act.INSTRUCT else min(share, part.most)
            if share >= min(bar, PROPOSED_SHARE_MIN) and not _only_asks(unit, reading.judgements[index], act):
                claim = _claim(reading, part, act, _confidence(share, bar))
                found += _with_what_it_affirms(reading, _understandable(reading, parts, number, claim))
    return found


def _with_what_it_affirms(reading: JudgedMessage, claim: Claim) -> list[Claim]:
    """The claim, and, of a reply that affirms a question in words of its own ("Yes, both of them"), what it states."""
    is_stated = claim.act is Act.CONFIRM and claim.confidence >= AFFIRMED_MIN and is_asked(claim.question)
    if not is_stated or reading.leaning([claim.text])[0] >= LEANING_SHARE_MIN:
        return [claim]
    return [
        claim,
        replace(claim, act=Act.STATE, leans=False, memory_type=type_of(Act.STATE, claim.attribute, claim.category)),
    ]


def _parts(reading: JudgedMessage, index: int) -> list[_Part]:
    """The clauses of a unit that says several facts; otherwise the unit."""
    unit, judgement = reading.units[index], reading.judgements[index]
    corrects = max(judgement.acts, key=lambda act: judgement.acts[act]) == Act.CORRECT
    is_fragment = corrects and judgement.leaning_share >= CORRECTION_LEANING_MIN  # "Sorry, I meant my son" is one thing
    if len(judgement.clauses) < 2 or is_fragment or judgement.acts[Act.INSTRUCT.value] >= INSTRUCT_SHARE_MIN:
        return [_Part(index, 0, len(unit.text), judgement)]
    parts = [_Part(index, one.start, one.end, one, 1.0 - judgement.acts["none"]) for one in judgement.clauses]
    return [one for one in parts if _says_something(unit.text, one, judgement.stretches)]


def _says_something(text: str, part: _Part, stretches: Sequence[RequestSpan]) -> bool:
    """Whether what states a fact is more than "my area" or "it's been", which a longer sentence may be cut into."""
    acts = part.labels.acts
    is_stated = max(acts, key=lambda one: acts[one]) == Act.STATE
    names_something = any(one.start < part.end and part.start < one.end for one in stretches)
    return not is_stated or names_something or size_of(text[part.start : part.end]) >= CLAUSE_SIZE_MIN


def _understandable(reading: JudgedMessage, parts: Sequence[_Part], number: int, claim: Claim) -> Claim:
    """The claim with the words that it leans on, of its sentence, of the one before, or of the question before it."""
    part = parts[number]
    is_reply = len(reading.units) == len(parts) == 1 and reading.previous is not None
    if is_reply and reading.previous is not None and (claim.act is not Act.CORRECT or bare_reply(claim.text)):
        told = answered(claim, question_of(reading.previous.answer), reading.previous.id, leans=part.leans)
    else:
        told = _with_words_before(reading, parts, number, claim)
    return judged_alone(told, part.labels.leaning_share)


def judged_alone(claim: Claim, share: float) -> Claim:
    """The claim, or, if it is in its own words alone, with what `share` says: how likely nobody could understand those.

    The words of a question that they do not lean on are left out.
    """
    own = unwrapped(claim.evidence.words)
    if claim.question and share < LEANING_SHARE_MIN:
        claim = replace(claim, text=own, question="")
    if claim.text != own:
        return claim
    is_lost = share >= LOST_SHARE_MIN and claim.act is Act.STATE
    leans = share >= (CORRECTION_LEANING_MIN if claim.act is Act.CORRECT else LEANING_SHARE_MIN)
    return replace(claim, leans=leans, confidence=claim.confidence * (LOST_CONFIDENCE if is_lost else 1.0))


def _with_words_before(reading: JudgedMessage, parts: Sequence[_Part], number: int, claim: Claim) -> Claim:
    part = parts[number]
    if not part.leans or claim.act not in STORED_ACTS:
        return claim
    standing = next((one for one in reversed(parts[:number]) if not one.leans), parts[0])  # names whom it is about
    told = sentence = _sentence_before(reading, part.index) if standing.leans else ""
    if number:
        end = part.start if standing is parts[number - 1] else standing.end
        told = f"{told} {_clause_before(reading, standing, end, claim.text)}".strip()
    text = f"{told} {claim.text}".strip()
    claim = replace(claim, text=text) if len(text) <= TEXT_CHARACTERS_MAX else claim
    return _with_question(reading, part, claim) if standing.leans and not sentence else claim


def _with_question(reading: JudgedMessage, part: _Part, claim: Claim) -> Claim:
    """With the question that the message replies to, and its words since, if none of those stand by themselves, and if
    that helps: what was lost is not, what leans does not.
    """
    before = reading.units[: part.index]
    leans = all(one.leaning_share >= LEANING_SHARE_MIN for one in reading.judgements[: part.index])
    is_reply = leans and all(unit.is_own for unit in before) and claim.act is not Act.CORRECT
    if reading.previous is None or not is_reply or bare_reply(claim.text):
        return claim
    asked = asking_clause(question_of(reading.previous.answer))
    text = " ".join([asked, *(unwrapped(unit.text) for unit in before), claim.text])
    most = LOST_SHARE_MIN if part.labels.leaning_share >= LOST_SHARE_MIN else LEANING_SHARE_MIN
    helps = asked and len(text) <= TEXT_CHARACTERS_MAX and reading.leaning([text])[0] < most
    return replace(claim, text=text, question=asked) if helps else claim


def _clause_before(reading: JudgedMessage, standing: _Part, end: int, said: str) -> str:
    """The words of the standing clause before its first value ("My sister Ana lives in …"), so that this fact outlives
    the other; all of them up to `end` where that cannot be understood ("I got a …, which my dog ate").
    """
    text, stretches = reading.units[standing.index].text, reading.judgements[standing.index].stretches
    values = [one.start for one in stretches if one.kind == "value" and standing.start <= one.start < standing.end]
    opening = f"{unwrapped(text[standing.start : min(values)]).rstrip()} {ELLIPSIS}" if values else ""
    if opening and reading.leaning([f"{opening} {said}"])[0] < OPENING_LEANING_MAX:
        return opening
    return unwrapped(text[standing.start : end]).rstrip()


def _sentence_before(reading: JudgedMessage, index: int) -> str:
    """The nearest sentence of the author before this one that does not lean itself, in the same paragraph; or ""."""
    for earlier in range(index - 1, max(-1, index - 1 - BEFORE_UNITS_MAX), -1):
        unit, judgement = reading.units[earlier], reading.judgements[earlier]
        gap = reading.message[unit.end : reading.units[earlier + 1].start]
        if not unit.is_own or gap.count("\n") > 1:
            return ""
        if judgement.leaning_share < LEANING_SHARE_MIN:
            return unwrapped(unit.text)
    return ""


def _only_asks(unit: Unit, judgement: Judgement, act: Act) -> bool:
    """Whether the unit is a question that neither states nor orders anything, though it looks like such an act."""
    if act not in _SEEMS_TO or not is_asked(unit.text):
        return False
    return judgement.asked.get("asks", 0.0) >= (ONLY_ASKS_MIN if act is Act.STATE else ORDERS_NOTHING_MIN)


def _act_of(labels: Judgement | JudgedClause, *, has_value: bool) -> tuple[Act, float, float]:
    """The most likely act other than none, its share, and the share that it needs."""
    acts = labels.acts
    if acts[Act.INSTRUCT.value] >= INSTRUCT_SHARE_MIN:
        return Act.INSTRUCT, acts[Act.INSTRUCT.value], INSTRUCT_SHARE_MIN
    act = max(Act, key=lambda one: acts[one.value])
    if act is Act.CONFIRM and has_value and acts[Act.CORRECT.value] >= CORRECT_SHARE_MIN:  # "No, on Tuesday"
        return Act.CORRECT, acts[Act.CONFIRM.value] + acts[Act.CORRECT.value], ASKED_SHARE_MIN
    if act in EXPLICIT_ACTS:
        return act, sum(acts[one.value] for one in STORED_ACTS), ASKED_SHARE_MIN
    if act in STORED_ACTS:
        return act, sum(acts[one.value] for one in STORED_ACTS), KEPT_SHARE_MIN
    if act in ORDERS:
        return act, sum(acts[one.value] for one in ORDERS), ORDER_SHARE_MIN
    return act, acts[act.value], ASKED_SHARE_MIN


def _confidence(share: float, bar: float) -> float:
    """0..1; a share exactly at its threshold gives `CONFIDENCE_AT_LEAST`."""
    if share >= bar:
        return CONFIDENCE_AT_LEAST + (1.0 - CONFIDENCE_AT_LEAST) * (share - bar) / (1.0 - bar)
    return CONFIDENCE_AT_LEAST * share / bar


def _claim(reading: JudgedMessage, part: _Part, act: Act, confidence: float) -> Claim:
    unit, labels, turn = reading.units[part.index], part.labels, reading.turn
    said = unit.text[part.start : part.end]
    text = unwrapped(said)
    stretches = reading.judgements[part.index].stretches
    within = [one for one in stretches if part.start <= one.start and one.end <= part.end]
    denied = _denied(unit.text, [one for one in within if one.kind == "value"])
    values, names = (
        [unwrapped(unit.text[one.start : one.end]) for one in within if one.kind == kind and one not in denied]
        for kind in _KINDS
    )
    holds_from, holds_until = (None, None) if labels.attribute in UNDATED else period(text, turn.local_at)
    attribute = _attribute_of(labels, ORDER_ATTRIBUTE_MIN if act in ORDERS else SINGLE_VALUED_SHARE_MIN)
    category = "correction" if act is Act.CORRECT else labels.category
    return Claim(
        act=act,
        text=text,
        evidence=Evidence(unit.text, turn.id, clause=said),
        scope=turn.scope,
        said_at=turn.at,
        relation=Relation(labels.relation),
        name=names[0] if names else "",
        attribute=attribute,
        values=tuple(values),
        is_affirmed=not is_denied(text) or bool(denied) or (act is Act.CORRECT and len(values) > 1),
        holds_from=holds_from,
        holds_until=holds_until,
        memory_type=type_of(act, attribute, category),
        category=category,
        confidence=confidence,
        importance=IMPORTANCE_ASKED if act in EXPLICIT_ACTS else IMPORTANCE[category],
        made_by=reading.made_by,
        leans=labels.leaning_share >= (CORRECTION_LEANING_MIN if act is Act.CORRECT else LEANING_SHARE_MIN),
        utc_offset=turn.utc_offset,
    )


def _denied(text: str, values: Sequence[RequestSpan]) -> Sequence[RequestSpan]:
    """The values that stand behind one and are denied, unlike it: "in Rome, not in Berlin or Bonn"."""
    for number, (before, one) in enumerate(pairwise(values), 1):
        if is_denied(text[before.end : one.end]) and not is_denied(text[: before.end]):
            return values[number:]
    return ()


def _attribute_of(labels: Judgement | JudgedClause, share_min: float) -> str:
    """None if a single-valued attribute is uncertain: a new value would supersede a memory."""
    is_sure = labels.attribute_share >= share_min or not is_single_valued(labels.attribute)
    return labels.attribute if is_sure else NO_ATTRIBUTE
