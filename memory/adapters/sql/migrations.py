"""The version of the tables, their statements, and what leads from an older version to this one."""

from __future__ import annotations

from importlib.resources import files

from memory.adapters.sql.dialect import without_comments

VERSION, OLDEST_VERSION = 4, 3


def schema() -> list[str]:
    """The statements that make the tables of this version, one by one."""
    return _statements_in("schema")


def steps_from(version: int) -> list[str]:
    """`version`: `OLDEST_VERSION` or later."""
    return [statement for step in range(version, VERSION) for statement in _statements_in(f"schema_from_{step}")]


def _statements_in(name: str) -> list[str]:
    text = files("memory.adapters.sql").joinpath(f"{name}.sql").read_text(encoding="utf-8")
    return [one.strip().removesuffix(";") for one in without_comments(text).split(";\n") if one.strip()]
