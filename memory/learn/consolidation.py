"""Compares claims with existing memories, field by field, and plans the changes that combine both.

The same statement updates its row. An explicit correction, or another value of a single-valued attribute of the same
subject, supersedes the older row, unless the two hold at different times. A reader's verdict may decide that one
replaces the other, unless they are about two other people, or that both stand. Everything else is kept side by side,
dated. Similarity decides nothing, and no prose is parsed. A superseded row is kept, with the time, the reason and its
successor. Pure: clock and ids are arguments.

The result depends on when things were said, not on the order in which they are learnt: a row is superseded by the first
row said after it that changes its field, even if that one has itself been superseded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from math import inf
from typing import TypeAlias

from memory.learn.feedback import Confirmation, corrects_something, is_restated, raised
from memory.model import (
    Change,
    ChangeKind,
    Claim,
    Evidence,
    Memory,
    MemoryStatus,
    Relation,
    Role,
    Trust,
    is_single_valued,
    statement_key,
)
from memory.model.days import without_days
from memory.model.memories import CONFIDENCE_STEP, NO_ATTRIBUTE
from memory.ports import PairRelation, PairVerdict
from memory.service.carried_words import without_carried

EVIDENCE_MAX = 5  # per memory: the first and the latest; otherwise each repetition would add to it
NAME = "name"  # an attribute
REPLACES_MIN = 0.8  # confidence at which a verdict alone supersedes; a wrong supersession loses a fact
SAME_MIN = 0.8
UNRELATED_MIN = 0.8  # confidence at which a verdict keeps two values of one attribute side by side
BETWEEN_CLAIMS_SECONDS = 1e-6  # so that rows of one message have an order: what is said last is the newest
STATEMENT = "statement"  # the field name, where a confident verdict concerns two statements without an attribute
CORRECTED_CHARACTERS_MAX = 600  # of a statement with what corrects it

SEVERAL = frozenset({relation.value for relation in Relation} - {Relation.USER.value, Relation.PARTNER.value})
"""Subjects of which a user can have several at a time."""

Ids = Callable[[str], str]
"""Maps an ordinal ("0", "1") to the id of a new row; the same at every attempt."""

Pair: TypeAlias = tuple[int, str]
"""The index of a claim, and the id of a memory."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Judgements on known memories. `confirmations`: answers that the user called right, or corrected. `verdicts`: a
    reader's verdicts on pairs of a claim and a memory.
    """

    confirmations: Sequence[Confirmation] = ()
    verdicts: Mapping[Pair, PairVerdict] = field(default_factory=dict)


NOTHING_JUDGED = Judged()


class _Tense(Enum):
    """When a statement holds, relative to the time at which another one was said."""

    PAST = auto()
    PRESENT = auto()
    FUTURE = auto()


@dataclass(slots=True)
class _Draft:
    """The rows after all changes, and which of them are new or changed."""

    now: float
    rows: dict[str, Memory]
    changes: dict[str, ChangeKind] = field(default_factory=dict)
    _keys: dict[str, str] = field(default_factory=dict)  # by text: each claim is compared with all rows

    def key(self, text: str) -> str:
        """`statement_key`, computed once."""
        return self._keys.get(text) or self._keys.setdefault(text, statement_key(text))

    def put(self, row: Memory, kind: ChangeKind) -> None:
        self.rows[row.id] = row
        self.changes[row.id] = ChangeKind.CREATE if self.changes.get(row.id) is ChangeKind.CREATE else kind

    def known(self, project_id: str) -> list[Memory]:
        """Rows of exactly that project, including superseded ones."""
        return [row for row in self.rows.values() if row.project_id == project_id]

    def active(self, project_id: str) -> list[Memory]:
        return [row for row in self.known(project_id) if row.status is MemoryStatus.ACTIVE]


def consolidate(
    claims: Sequence[Claim],
    neighbours: Sequence[Memory],
    *,
    now: float,
    ids: Ids,
    judged: Judged = NOTHING_JUDGED,
    done: Collection[int] | None = None,
) -> list[Change]:
    """The changes to write, in order, each row once in its final state. The claims are of one user and leave a memory.

    `neighbours`: the user's memories that may say the same or be changed, and superseded ones that were said after a
    claim and may have changed what it says. `now`: Unix seconds. `done`: when a plan is repeated, indexes of the claims
    to leave out; rows that an earlier attempt wrote are compared with all others.
    """
    draft = _Draft(now, {memory.id: memory for memory in neighbours})
    for one in judged.confirmations:
        for memory in draft.active(one.scope.project_id) if one.is_right else ():
            surer = raised(memory, now=now) if is_restated(memory.content, memory.values, one.answer) else None
            if surer is not None and memory.said_at <= one.at:
                draft.put(surer, ChangeKind.UPDATE)
    corrected = {(one.scope, one.at): one.answer for one in judged.confirmations if not one.is_right}
    for index, claim in enumerate(claims):
        if done is None or index not in done:
            draft.now = now + index * BETWEEN_CLAIMS_SECONDS
            of_claim = {memory_id: verdict for (place, memory_id), verdict in judged.verdicts.items() if place == index}
            answer = corrected.get((claim.scope, claim.said_at), "")
            _absorb(draft, claim, ids(str(index)), of_claim, answer, is_repeat=done is not None)
    return [Change(kind, draft.rows[memory_id]) for memory_id, kind in draft.changes.items()]


def _absorb(
    draft: _Draft, claim: Claim, new_id: str, verdicts: Mapping[str, PairVerdict], answer: str, *, is_repeat: bool
) -> None:
    """`answer`: the assistant's, if the claim corrects something in it."""
    known = draft.known(claim.scope.project_id)
    standing = [row for row in known if claim.said_at < stood_until(row)]
    made = next((row for row in standing if claim.leans and claim.evidence in row.evidence), None)  # at an earlier try
    has_to_correct = corrects_something(claim) and made is None
    corrected = _corrected(claim, standing, verdicts, answer) if has_to_correct else None
    if has_to_correct and corrected is None:
        return  # it corrects nothing that is known, and says nothing alone
    stated = claim if corrected is None else _with_corrected(claim, corrected)
    same = made or _same(draft, stated, standing, verdicts)
    if same is not None:
        row = confirmed(same, stated.evidence, said_at=stated.said_at, now=draft.now)
        draft.put(row, ChangeKind.UPDATE)
        if not is_repeat and row.said_at == same.said_at:
            return  # already compared when it was said
    else:
        row = row_of(stated, new_id, draft.now)
        draft.put(row, ChangeKind.CREATE)
    if corrected is not None and corrected.id != row.id:
        draft.put(_superseded(corrected, row, STATEMENT, draft.now), ChangeKind.SUPERSEDE)
        _let_go(draft, corrected, row)
    for other in known:
        if other.id != row.id:
            _compare(draft, row.id, other.id, None if corrected is not None else verdicts.get(other.id))


def stood_until(row: Memory) -> float:
    """The time at which its successor was said, in Unix seconds; the row counts as valid until then."""
    if row.status is MemoryStatus.ACTIVE:
        return inf
    return -inf if row.invalid_at is None else row.invalid_at


def _same(draft: _Draft, claim: Claim, known: Sequence[Memory], verdicts: Mapping[str, PairVerdict]) -> Memory | None:
    """The row that already says this, in the same words, or with the same fields in other words."""
    key = draft.key(claim.text)
    exact = [row for row in known if draft.key(row.content) == key]
    if exact:
        return min(exact, key=stood_until)
    return next((row for row in known if _says_again(claim, row, verdicts.get(row.id))), None)


def _says_again(claim: Claim, row: Memory, verdict: PairVerdict | None) -> bool:
    if verdict is None or verdict.relation is not PairRelation.SAME or verdict.confidence < SAME_MIN:
        return False
    if (claim.attribute, claim.is_affirmed, claim.relation.value) != (row.attribute, row.is_affirmed, row.subject):
        return False
    return _folded(claim.values) <= _folded(row.values) and bool(claim.values) and not claim.is_explicit


def _corrected(
    claim: Claim, known: Sequence[Memory], verdicts: Mapping[str, PairVerdict], answer: str
) -> Memory | None:
    """The row that "No, Tuesday" corrects: one that it quotes, else the one that a reader is surest of, else the latest
    of its field, else the latest; first those that the assistant's answer restates, then those of its conversation.
    None if nothing can be meant.
    """
    before = [row for row in known if row.said_at <= claim.said_at and row.status is MemoryStatus.ACTIVE]
    quoted = [row for row in before if _quotes(claim, row)]
    named = [row for row in before if is_restated(row.content, (), answer)]
    judged = [row for row in named or before if _is_replaced(verdicts.get(row.id))]
    if judged and not quoted:
        return max(judged, key=lambda row: (verdicts[row.id].confidence, row.said_at))
    here = named or [row for row in before if claim.scope.session_id and row.session_id == claim.scope.session_id]
    of_field = [row for row in before if _is_of_field(claim.attribute, claim.relation.value, row)]
    of_attribute = [row for row in here if row.attribute == claim.attribute != NO_ATTRIBUTE]
    meant = quoted or of_attribute or here or (of_field if len(of_field) == 1 else [])
    return max(meant, key=lambda row: row.said_at, default=None)


def _quotes(claim: Claim, row: Memory) -> bool:
    return without_days(row.content) in claim.text


def _is_replaced(verdict: PairVerdict | None) -> bool:
    return verdict is not None and verdict.relation is PairRelation.REPLACES and verdict.confidence >= REPLACES_MIN


def _with_corrected(claim: Claim, row: Memory) -> Claim:
    """Both statements, as they were said: what the new one changes in the old one is left to whoever reads them."""
    text = (
        claim.text if _quotes(claim, row) else f"{row.content}{'. ' if row.content[-1:].isalnum() else ' '}{claim.text}"
    )
    if len(text) > CORRECTED_CHARACTERS_MAX:
        return claim
    is_of_field = claim.attribute == row.attribute and bool(claim.values)
    return replace(
        claim,
        text=text,
        name=claim.name or row.name,
        attribute=row.attribute,
        values=claim.values if is_of_field else row.values,
        relation=next((one for one in Relation if one.value == row.subject), claim.relation)
        if claim.relation is Relation.USER
        else claim.relation,
    )


def _compare(draft: _Draft, row_id: str, other_id: str, verdict: PairVerdict | None) -> None:
    """Let the later of two rows supersede the earlier one, if its fields change it. Later: said later."""
    row, other = draft.rows[row_id], draft.rows[other_id]
    newer, older = (row, other) if row.said_at >= other.said_at else (other, row)
    if newer.said_at >= stood_until(older) or not _outranks(newer, older):
        return
    if _turns_of(newer) & _turns_of(older) and newer.category != "correction":
        return  # both were said in one turn, so both hold
    why = replaced_field(newer, older, verdict)
    if not why:
        return
    is_first = older.status is MemoryStatus.ACTIVE
    changed = _superseded(older, newer, why, draft.now)
    draft.put(changed, ChangeKind.SUPERSEDE if is_first else ChangeKind.UPDATE)
    _let_go(draft, older, newer)


def _let_go(draft: _Draft, superseded: Memory, successor: Memory) -> None:
    """Facts of its turn that took its words along keep their own alone: what is over must not stand in what holds."""
    for row in draft.active(superseded.project_id):
        alone = without_carried(row, [superseded])
        if alone is not row and row.id != successor.id:
            draft.put(replace(alone, updated_at=draft.now), ChangeKind.UPDATE)


def replaced_field(newer: Memory, older: Memory, verdict: PairVerdict | None) -> str:
    """The field of `older` to which `newer` gives another value, or "" if both stand."""
    corrects_name = newer.category == "correction" and newer.attribute == older.attribute == NAME
    if not may_be_of_one(newer, older, corrects_name=corrects_name):
        return ""
    relation = verdict.relation if verdict is not None else None
    sure = verdict.confidence if verdict is not None else 0.0
    is_one_field = _is_of_field(newer.attribute, newer.subject, older)
    tense, was = _tense(newer, newer.said_at), _tense(older, newer.said_at)
    has_happened = tense is _Tense.PAST and newer.expires_at is not None and newer.expires_at > older.said_at
    if tense is not _Tense.PRESENT and tense is not was and not has_happened:
        return ""  # a future state, or a past one of before, says nothing about the present one
    if _is_replaced(verdict):
        return next((one for one in (older.attribute, newer.attribute) if one != NO_ATTRIBUTE), STATEMENT)
    if relation is PairRelation.REPLACES and newer.category == "correction" and is_one_field:
        return newer.attribute
    if not (is_one_field and is_single_valued(newer.attribute) and _is_surely_of_one(newer, older)):
        return ""
    is_kept_apart = relation is PairRelation.UNRELATED and sure >= UNRELATED_MIN and newer.category != "correction"
    has_other_value = bool(newer.values and older.values) and not _folded(newer.values) & _folded(older.values)
    if newer.category == "correction":  # "in Rome, not in Pisa" has both
        has_other_value = bool(older.values and _folded(newer.values) - _folded(older.values))
    is_asked_for = older.trust is Trust.EXPLICIT and newer.trust is not Trust.EXPLICIT
    if (
        tense is not was
        or is_kept_apart
        or not has_other_value
        or is_asked_for
        or not (newer.is_affirmed and older.is_affirmed)
    ):
        return ""
    return newer.attribute


def _tense(row: Memory, at: float) -> _Tense:
    """When it holds relative to `at`, as far as its own dates say."""
    if row.expires_at is not None and row.expires_at <= at:
        return _Tense.PAST
    return _Tense.FUTURE if row.valid_from is not None and row.valid_from > at else _Tense.PRESENT


def _is_of_field(attribute: str, subject: str, row: Memory) -> bool:
    return attribute != NO_ATTRIBUTE and attribute == row.attribute and subject == row.subject


def may_be_of_one(row: Memory, other: Memory, *, corrects_name: bool) -> bool:
    """Whether two statements may be about one person or pet: by their names, if both have one, unless a correction of
    the name is what tells them apart. Else a sentence about the user and somebody else has one label: it may be the
    user's or the other's.
    """
    if row.name and other.name and not corrects_name:
        return row.name.casefold() == other.name.casefold()
    return row.subject == other.subject or Relation.USER.value in (row.subject, other.subject)


def _is_surely_of_one(newer: Memory, older: Memory) -> bool:
    """Of subjects of which a user can have several, such as children, only a name shows that two rows are about one."""
    return newer.subject not in SEVERAL or bool(newer.name and newer.name.casefold() == older.name.casefold())


def _folded(values: Sequence[str]) -> frozenset[str]:
    return frozenset(statement_key(value) for value in values)


def _superseded(older: Memory, newer: Memory, why: str, now: float) -> Memory:
    return replace(
        older,
        status=MemoryStatus.SUPERSEDED,
        superseded_by=newer.id,
        superseded_at=now if older.superseded_at is None else older.superseded_at,
        updated_at=now,
        invalid_at=newer.said_at,
        metadata={**older.metadata, "superseded_field": why},
    )


def _outranks(newer: Memory, older: Memory) -> bool:
    """An inferred memory never changes one given by an application; a derived one changes nothing that was said."""
    if newer.trust is Trust.TOOL:
        return older.trust is Trust.TOOL
    return older.trust is not Trust.BOOTSTRAPPED or newer.trust in (Trust.BOOTSTRAPPED, Trust.EXPLICIT)


def _turns_of(row: Memory) -> frozenset[str]:
    return frozenset(evidence.turn_id for evidence in row.evidence)


def row_of(claim: Claim, memory_id: str, now: float) -> Memory:
    """The memory that the claim alone would be."""
    return Memory(
        id=memory_id,
        user_id=claim.scope.user_id,
        project_id=claim.scope.project_id,
        session_id=claim.scope.session_id,
        agent_id=claim.scope.agent_id,
        content=claim.text,
        created_at=now,
        updated_at=now,
        said_at=claim.said_at,
        valid_from=claim.said_at if claim.holds_from is None else claim.holds_from,
        expires_at=claim.holds_until,
        made_by=claim.made_by,
        trust=Trust.EXPLICIT if claim.is_explicit else Trust.INFERRED,
        memory_type=claim.memory_type,
        category=claim.category,
        importance=claim.importance,
        confidence=claim.confidence,
        subject=claim.relation.value,
        name=claim.name,
        attribute=claim.attribute,
        values=claim.values,
        is_affirmed=claim.is_affirmed,
        evidence=claim.sources,
        utc_offset=claim.utc_offset,
    )


def bounded(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The first and the latest."""
    return tuple(evidence if len(evidence) <= EVIDENCE_MAX else (evidence[0], *evidence[-(EVIDENCE_MAX - 1) :]))


def confirmed(row: Memory, evidence: Evidence, *, said_at: float, now: float) -> Memory:
    """The row, said once more. The same evidence again only moves `updated_at`; a question is not evidence of it."""
    if evidence in row.evidence or evidence.role == Role.ASSISTANT:
        return replace(row, updated_at=now)
    kept = (*row.evidence, evidence)
    return replace(
        row,
        updated_at=now,
        said_at=max(row.said_at, said_at),
        confidence=row.confidence + (1.0 - row.confidence) * CONFIDENCE_STEP,
        evidence=bounded(kept),
    )
