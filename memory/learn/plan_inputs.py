"""What a plan was computed from, stored with it, so that a later attempt can tell whether the plan is still valid.

A waiting plan becomes outdated when another session changes a memory that it touches, or stores one that it would have
been compared with. The same claims are then consolidated again, without asking a model. Other windows' content is kept
as digests only. Names and types of the fields are a stored format. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from memory.learn.consolidation import Pair
from memory.learn.feedback import Confirmation
from memory.model import Change, ChangeKind, Claim, Memory, MemoryStatus, statement_key
from memory.ports import PairRelation, PairVerdict

DIGEST_BYTES = 8

StoredVerdict: TypeAlias = tuple[int, str, PairRelation, float]  # the index of a claim, a memory, a `PairVerdict`


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """`revision`: the user's revision at planning. `claims`: in order, since row ids are derived from their index.

    `verdicts`: a reader's verdicts on pairs. `before`: the digest of each memory that the plan changes, by id. `done`:
    indexes of claims found forgotten or archived when the plan was made again.
    """

    revision: int
    claims: Sequence[Claim]
    confirmations: Sequence[Confirmation]
    verdicts: Sequence[StoredVerdict]
    before: Mapping[str, str]
    done: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """The state of an outdated plan. `done`: indexes of the claims that must not be written (again)."""

    is_begun: bool
    done: frozenset[int]


def memory_digest(memory: Memory) -> str:
    """A digest of a memory's content and status; usage counts are left out."""
    told = (
        memory.id,
        memory.content,
        memory.status.value,
        memory.superseded_by,
        memory.updated_at,
        memory.said_at,
        memory.confidence,
        memory.category,
        memory.trust.value,
        len(memory.evidence),
    )
    return hashlib.blake2b(repr(told).encode(errors="backslashreplace"), digest_size=DIGEST_BYTES).hexdigest()


def inputs_of(
    claims: Sequence[Claim],
    confirmations: Sequence[Confirmation],
    verdicts: Mapping[Pair, PairVerdict],
    known: Sequence[Memory],
    changes: Sequence[Change],
    *,
    revision: int,
) -> PlanInputs:
    """The inputs of the `changes` that were just planned from these arguments."""
    touched = {change.memory.id for change in changes}
    before = {memory.id: memory_digest(memory) for memory in known if memory.id in touched}
    told = tuple((place, memory_id, one.relation, one.confidence) for (place, memory_id), one in verdicts.items())
    return PlanInputs(revision, tuple(claims), tuple(confirmations), told, before)


def is_outdated(inputs: PlanInputs, revision: int) -> bool:
    """Whether anyone else wrote since planning. `revision`: under our lock, as `inputs.revision` was then.

    A lock under which memories were touched, or a plan with claims was stored, moves the revision by 2, any other not.
    """
    return revision not in (inputs.revision, inputs.revision + 2)


def depends_on_memories(inputs: PlanInputs | None) -> bool:
    """Whether the plan may change with the user's memories; one that only stores raw words does not."""
    return inputs is not None and bool(inputs.claims or inputs.confirmations)


def progress_of(
    inputs: PlanInputs,
    changes: Sequence[Change],
    *,
    stored: Mapping[str, Memory],
    forgotten: Collection[str],
    ids: Callable[[str], str],
) -> PlanProgress:
    """`stored`, `forgotten`: the current state of the rows that the plan writes."""
    created = [change.memory.id for change in changes if change.kind is ChangeKind.CREATE]
    if created:
        is_begun = any(memory_id in stored or memory_id in forgotten for memory_id in created)
    else:  # if rows were changed again, we cannot tell whether we had changed them: nothing is applied twice
        is_begun = any(
            memory_id in stored and memory_digest(stored[memory_id]) != state
            for memory_id, state in inputs.before.items()
        )
    return PlanProgress(is_begun, inputs.done | _done(inputs.claims, changes, stored, forgotten, ids))


def _done(
    claims: Sequence[Claim],
    changes: Sequence[Change],
    stored: Mapping[str, Memory],
    forgotten: Collection[str],
    ids: Callable[[str], str],
) -> frozenset[int]:
    """Claims that were forgotten since, or whose rows were written and then archived or superseded by others."""
    gone = {statement_key(change.memory.content) for change in changes if change.memory.id in forgotten}
    inactive = {memory.id for memory in stored.values() if memory.status is not MemoryStatus.ACTIVE}
    return frozenset(
        place
        for place, claim in enumerate(claims)
        if statement_key(claim.text) in gone or ids(str(place)) in inactive or ids(str(place)) in forgotten
    )


def stored_twice(known: Sequence[Memory], *, own: Collection[str]) -> list[str]:
    """Ids of our `own` rows that hold, and say what a row of somebody else's says too.

    The store knows no locks: what a killed process had sent may arrive when its successor has looked for it.
    """
    active = (row for row in known if row.status is MemoryStatus.ACTIVE)
    said = {row.id: (row.project_id, statement_key(row.content)) for row in active}
    others = {statement for row_id, statement in said.items() if row_id not in own}
    return [row_id for row_id, statement in said.items() if row_id in own and statement in others]


def valid_verdicts(
    inputs: PlanInputs, known: Sequence[Memory], *, ids: Callable[[str], str]
) -> dict[Pair, PairVerdict]:
    """The verdicts on memories that did not change since, and on claims whose rows still have the same content."""
    states = {memory.id: memory_digest(memory) for memory in known}
    contents = {memory.id: memory.content for memory in known}
    own = {ids(str(place)): claim.text for place, claim in enumerate(inputs.claims)}
    return {
        (place, memory_id): PairVerdict(relation, confidence)
        for place, memory_id, relation, confidence in inputs.verdicts
        if (memory_id in own and contents.get(memory_id, own[memory_id]) == own[memory_id])
        or states.get(memory_id, "") == inputs.before.get(memory_id)
    }
