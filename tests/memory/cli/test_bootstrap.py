"""`memproxy bootstrap`: files of customers, against a real API over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_worlds import memories_of, run, told
from hypothesis import given
from hypothesis import strategies as st
from library_parts import Parts
from served_library import served_library

from memory.cli.customer_columns import ColumnOptions
from memory.cli.customer_rows import csv_rows, json_rows, memory_rows
from memory.cli.memory_rows import BATCH_BYTES_MAX, BATCH_ROWS_MAX, MemoryRow, RowProblems, batches
from memory.errors import BadInput
from memory.service.requests import NewMemory

CUSTOMERS = """email,full name,company,since,notes
ann@x.example,Ann,Acme,2024-03-01,"likes tea,
and long walks"
bob@x.example,Bob,Bolt,2024-04-01T10:00:00Z,none
ann@x.example,Ann,Bolt,1714557600,moved
"""
TEMPLATE = "{full name} works at {company}"
ANN = ("--user", "ann", "--content-template")
OF_PLANS = ("--user-column", "email", "--content-template", "Has plan {plan}")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    async def nothing(_: Parts) -> None: ...

    with served_library(tmp_path, nothing) as address:
        yield address


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "customers.csv"
    path.write_text(CUSTOMERS)
    return path


def started(file: Path, url: str, *words: object) -> dict[str, Any]:
    named = ("--user-column", "email", "--content-template", TEMPLATE, "--created-at-column", "since")
    return told("bootstrap", file, *named, "--api", url, *words)


def contents(url: str, user: str) -> list[str]:
    return [one["content"] for one in memories_of(url, user)]


def test_a_dry_run_stores_nothing_and_then_each_row_becomes_a_memory_of_its_user_once(file: Path, url: str) -> None:
    words = ("--memory-type", "episodic", "--metadata-column", "notes")
    shown = started(file, url, "--dry-run")
    assert (shown["valid"], shown["users"], shown["first"][0]["content"]) == (3, 2, "Ann works at Acme")
    lines = run("bootstrap", file, "--user", "ann", "--content-template", "{notes}", "--dry-run").stdout.splitlines()
    assert lines[-1] == "valid: 3, incomplete: 0, users: 1"
    assert contents(url, "ann@x.example") == []
    assert started(file, url, *words) == {"imported": 3, "skipped": 0, "opted_out": 0, "incomplete": 0, "users": 2}
    first = memories_of(url, "ann@x.example")[1]
    assert (first["content"], first["memory_type"]) == ("Ann works at Acme", "episodic")
    assert (first["said_at"], first["metadata"]["notes"]) == ("2024-03-01T00:00:00Z", "likes tea,\nand long walks")
    file.write_text(CUSTOMERS + "bob@x.example,Bob,Coil,2024-05-01,\n")
    assert started(file, url, *words) == {"imported": 1, "skipped": 3, "opted_out": 0, "incomplete": 0, "users": 2}
    assert contents(url, "bob@x.example") == ["Bob works at Coil", "Bob works at Bolt"]


def test_one_wrong_row_and_nothing_is_stored(file: Path, url: str) -> None:
    file.write_text(CUSTOMERS + "bob@x.example,Bob,Coil,yesterday,\nbob@x.example,,Coil,2024-05-01,\nbob@x.example,B\n")
    with pytest.raises(BadInput) as refused:
        started(file, url)
    for said in ("3 rows are wrong", "line 6: since must be ISO", "line 7: 'full name' is empty", "line 8: it has"):
        assert said in str(refused.value)
    assert contents(url, "ann@x.example") == []
    file.write_text(CUSTOMERS + "bob@x.example,,Coil,2024-05-01,\n")
    assert started(file, url, "--skip-incomplete")["incomplete"] == 1
    file.write_bytes(CUSTOMERS.encode() + b"bob@x.example,B\0b,Coil,2024-05-01,\n")
    with pytest.raises(BadInput, match=r"line 6: content has the control character U\+0000"):
        started(file, url, "--dry-run")


def test_rows_of_json_lines_are_the_same_as_of_csv(tmp_path: Path, url: str) -> None:
    rows = tmp_path / "customers.jsonl"
    rows.write_text('{"id": 7, "email": "ann", "plan": "gold"}\n\n{"id": 8, "email": "bob", "plan": null, "x": [1]}\n')
    words = ("bootstrap", rows, *OF_PLANS, "--id-column", "id", "--api", url)
    with pytest.raises(BadInput, match="line 3: 'plan' is empty"):
        run(*words)
    assert told(*words, "--skip-incomplete")["imported"] == 1
    rows.write_text('{"id": 7, "email": "ann", "plan": "silver"}\n')
    assert told(*words)["skipped"] == 1  # the id is the row, whatever it says by now


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1]", "line 1: this is not a JSON object"),
        ('{"email": "ann"}', "line 1: there is no 'plan'"),
        ('{"email": "ann", "plan": {"a": 1}}', "line 1: 'plan' is neither text nor a number"),
        ('{"email": " ann\\u0000", "plan": "gold"}', "line 1: user_id"),
        ('{"email": "ann", "plan": "' + "x" * 20_000 + '"}', "line 1: content must have"),
        ('{"email": "ann", "plan": "go\\u0000ld"}', r"line 1: content has the control character U\+0000"),
        ('{"email": "ann", "plan": "gold", "note": "\\u001b[2J"}', r"line 1: metadata has .* U\+001B"),
    ],
)
def test_a_row_that_cannot_be_a_memory_is_named(tmp_path: Path, line: str, said: str) -> None:
    rows = tmp_path / "customers.jsonl"
    rows.write_text(line)
    words = ("--metadata-column", "note") if '"note"' in line else ()
    with pytest.raises(BadInput, match=said):
        run("bootstrap", rows, *OF_PLANS, "--dry-run", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--user-column", "mail", "--content-template", "{company}"), "no column 'mail'; it has email, full name"),
        ((*ANN, "always the same"), "names no column"),
        ((*ANN, "{company.__class__}"), "no column 'company.__class__'"),
        ((*ANN, "{company!r}"), "give a column's name in braces"),
        ((*ANN, "{company"), "expected '}'"),
        ((*ANN, "{company}", "--category", "hobby"), "category must be one of"),
    ],
)
def test_a_column_map_that_cannot_be_is_refused(file: Path, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadInput) as refused:
        run("bootstrap", file, *words, "--dry-run")
    assert said in str(refused.value)


def test_it_has_to_be_said_whose_memories_they_are_and_what_the_file_is(file: Path) -> None:
    run("bootstrap", file, "--content-template", "{company}", code=2)
    run("bootstrap", file, *ANN, "{company}", "--user-column", "email", code=2)
    other = file.rename(file.with_suffix(".txt"))
    words = ("bootstrap", other, *ANN, "{company}")
    run(*words, code=2)
    run(*words, "--format", "csv", "--dry-run")
    other.write_bytes(b"company\n\xff\n")
    with pytest.raises(BadInput, match="is not UTF-8"):
        run(*words, "--format", "csv", "--dry-run")


def row(number: int, content: str) -> MemoryRow:
    return MemoryRow("ann", NewMemory(content), f"bootstrap:{number}", f"line {number}")


def test_batches_keep_the_order_and_the_limits_of_the_api() -> None:
    rows = [row(number, "x" * (number % 7) * 20_000) for number in range(500)]
    made = list(batches(rows))
    assert [one for batch in made for one in batch] == rows
    assert max(map(len, made)) <= BATCH_ROWS_MAX
    assert all(sum(len(one.memory.content) for one in batch) <= BATCH_BYTES_MAX for batch in made)
    assert [len(batch) for batch in batches([row(number, "tea") for number in range(401)])] == [200, 200, 1]


COLUMNS = ColumnOptions(content_template="{a}: {b}", user="ann", id_column="a", created_at_column="b")


@given(st.text())
def test_no_text_makes_it_fail_in_another_way_than_by_saying_what_is_wrong(text: str) -> None:
    for read in (csv_rows, json_rows):
        lines, problems = text.splitlines(keepends=True), RowProblems()
        try:
            found = list(memory_rows(read(lines, COLUMNS.needed(), problems), COLUMNS, problems))
        except BadInput:
            continue
        assert all(one.where.startswith("line ") for one in found)
        assert all(one.startswith("line ") for one in problems.found)
