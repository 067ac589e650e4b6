"""Reads memories of older releases again: rows that hold a whole sentence become one row for each fact in it.

Of such a row the evidence does not say which of its words are the fact. One fact keeps the row's id, history and use;
each row is done once, so that the work may stop anywhere. Writes nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from memory.model import STORED_ACTS, Claim, Evidence, Memory, MemoryStatus, Message, Role, Scope, Trust, Turn
from memory.model.identity import is_project_owner
from memory.ports import StatementReader

CONFIDENCE_MIN = 0.7  # as the gate requires

_IDS = uuid.UUID("5b7e0c52-93a4-5d0e-8a55-1c1f8a0f7d21")

Rows: TypeAlias = list[tuple[Memory | None, Memory]]
"""Rows before and after; None for new ones. They depend on each other, hence one write."""


async def split(memories: Iterable[Memory], reader: StatementReader, *, now: float, most: int) -> list[Rows]:
    """For each of the first `most` old rows what becomes of it. Raises `Unavailable`."""
    old = [memory for memory in memories if is_old(memory)][:most]
    return [_rows(memory, await reader.read([_turn(memory)], context=()), now) for memory in old]


def is_mark(before: Memory | None, after: Memory | None) -> bool:
    """Whether nothing has changed but that the row was read again."""
    if before is None or after is None or not is_old(before) or is_old(after):
        return False
    return (before.content, before.status) == (after.content, after.status)


def is_old(memory: Memory) -> bool:
    """Whether it is an active memory in the author's own words, of which nobody has said which of them are the fact."""
    if memory.status is not MemoryStatus.ACTIVE or memory.trust not in (Trust.INFERRED, Trust.EXPLICIT):
        return False
    if is_project_owner(memory.user_id):
        return False
    first = memory.evidence[0] if memory.evidence else Evidence("", "", Role.ASSISTANT)
    return first.role == Role.USER and not first.clause and memory.content == first.quote


def _turn(memory: Memory) -> Turn:
    scope = Scope(memory.user_id, memory.project_id, memory.session_id or memory.id, memory.agent_id)
    return Turn(memory.evidence[0].turn_id, scope, memory.said_at, (Message(Role.USER, memory.content),))


def _rows(memory: Memory, claims: Sequence[Claim], now: float) -> Rows:
    facts = list(
        {one.text: one for one in claims if one.act in STORED_ACTS and one.confidence >= CONFIDENCE_MIN}.values()
    )
    first, *repeated = memory.evidence
    if len(facts) < 2 or any(one.evidence.quote not in first.quote for one in facts):
        return [(memory, replace(memory, evidence=(replace(first, clause=first.quote), *repeated)))]
    stays = next((one for one in facts if one.attribute == memory.attribute), facts[0])
    rows: Rows = [(memory, _row(memory, stays, now))]
    for number, fact in enumerate(facts):
        if fact is not stays:
            new_id = str(uuid.uuid5(_IDS, f"{memory.id}\x1f{number}"))
            rows.append((None, replace(_row(memory, fact, now), id=new_id, metadata={})))
    return rows


def _row(memory: Memory, fact: Claim, now: float) -> Memory:
    own, repeated = fact.evidence.words, memory.evidence[1:]
    return replace(
        memory,
        content=fact.text,
        updated_at=now,
        valid_from=memory.said_at if fact.holds_from is None else fact.holds_from,
        expires_at=fact.holds_until,
        memory_type=fact.memory_type,
        category=memory.category if memory.category == "correction" else fact.category,
        subject=fact.relation.value,
        name=fact.name,
        attribute=fact.attribute,
        values=fact.values,
        is_affirmed=fact.is_affirmed,
        evidence=(fact.evidence, *(replace(one, clause=own) for one in repeated if own in one.quote)),
    )
