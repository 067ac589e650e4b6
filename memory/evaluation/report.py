"""Renders the figures of an evaluation as tables, in Markdown too.

Computes nothing: only figures of the result are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Table: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Column heads and rows."""

_GROUPS = ("by_language", "by_label", "by_tag")
_FURTHER_TABLES = (("source", "by_source"), ("type", "by_type"))  # whose names may equal those of a group
_TALK_TABLES = (("method", "methods"), ("talk", "by_talk"), ("category", "by_category"))


def markdown(result: Mapping[str, Any]) -> str:
    return "\n\n".join(_markdown_table(head, rows) for head, rows in tables(result)) + "\n"


def tables(result: Mapping[str, Any]) -> list[Table]:
    """The figures of a result, in total and by group; figures per record are in the JSON only."""
    if result.get("kind") == "talks":
        return [_table(name, result[key]) for name, key in _TALK_TABLES]
    figures = {name: value for name, value in result.items() if value is None or isinstance(value, int | float)}
    groups = [result[key] for key in _GROUPS if key in result]
    rows = {"all": result.get("all", figures)}
    for group in groups:
        rows |= {name or "(none)": row for name, row in group.items()}
    further = [_table(name, result[key]) for name, key in _FURTHER_TABLES if result.get(key)]
    return [_table("group", rows), *further]


def _table(first: str, rows: Mapping[str, Mapping[str, Any]]) -> Table:
    columns = list(next(iter(rows.values()), {}))
    head = [first, *(column.replace("_", " ") for column in columns)]  # spaces, so that a terminal can break the lines
    return head, [[name, *(_cell(row.get(column)) for column in columns)] for name, row in rows.items()]


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *([_escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(cell: str) -> str:
    """A group's name comes from a file: it must not break its cell."""
    return " ".join(cell.replace("|", "\\|").split())


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.3f}"
