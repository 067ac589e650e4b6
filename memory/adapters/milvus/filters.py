"""Converts a `MemoryFilter` to a Milvus expression.

The only place that writes text into expressions. External values are either checked against a short list or written as
string literals with quotes and backslashes escaped, which Milvus and Milvus Lite parse alike. Invalid ids (control
characters, too long) never get here: `Scope` and `Memory` refuse them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from memory.adapters.pages import spellings
from memory.model import MEMORY_TYPES, MemoryStatus
from memory.model.identity import is_valid_owner
from memory.model.memories import TIME_MAX
from memory.ports import MemoryFilter


def expression(where: MemoryFilter) -> str:
    """Always limited to one user. Raises AssertionError for a filter with invalid values."""
    assert is_valid_owner(where.user_id), "a filter without a user would match all users"
    terms = [f"user_id == {literal(where.user_id)}"]
    if where.exact_project:
        terms.append(one_of("project_id", (where.project_id,)))
    elif where.project_id:
        terms.append(one_of("project_id", ("", where.project_id)))
    if where.agent_id:
        terms.append(one_of("agent_id", ("", where.agent_id)))
    if where.memory_types:
        terms.append(one_of("memory_type", [kind for kind in where.memory_types if kind in MEMORY_TYPES] or ["none"]))
    if where.status is not None:
        terms.append(f"status == {literal(MemoryStatus(where.status).value)}")
    if not where.with_archived:
        terms.append(f"status != {literal(MemoryStatus.ARCHIVED.value)}")
    if where.status is None and not where.with_raw:
        terms.append(f"status != {literal(MemoryStatus.RAW.value)}")
    if where.source:
        terms.append(f"source == {literal(where.source)}")
    if where.other_source:
        terms.append(f"source != {literal(where.other_source)}")
    said = [f"(said_at >= {_finite(start)!r} and said_at < {_finite(end)!r})" for start, end in where.said_within]
    return " and ".join([*terms, f"({' or '.join(said)})"] if said else terms)


def holding(where: MemoryFilter, words: Collection[str]) -> str:
    """Those whose content contains one of the words; all if there are none."""
    likes = [f"content like {literal(f'%{one}%')}" for word in words for one in spellings(word)]
    return f"{expression(where)} and ({' or '.join(likes)})" if likes else expression(where)


def owned(user_id: str, memory_ids: Sequence[str]) -> str:
    return among(MemoryFilter(user_id, status=None, with_raw=True), memory_ids)


def among(where: MemoryFilter, memory_ids: Sequence[str]) -> str:
    return f"{expression(where)} and {one_of('id', memory_ids)}"


def one_of(field: str, values: Iterable[str]) -> str:
    return f"{field} in [{', '.join(literal(value) for value in values)}]"


def _finite(at: float) -> float:
    return max(-TIME_MAX, min(float(at), TIME_MAX))


def literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
