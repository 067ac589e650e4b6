"""What docs/privacy.md says remains of a user who was erased, and nothing else does."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from documents import ROOT
from product import Product, eventually
from upstream import RecordingUpstream

USER = "user-who-leaves-7f3a"
WORD = "Quetzalbimxford"
# Where bytes of deleted rows stay until the file is written anew.
NOT_OVERWRITTEN = ("milvus/", "turns.sqlite")
# Tables that keep the user's id, without text, so that nothing old is restored.
BOOKKEEPING = {
    "users",
    "changes",
    "forgotten",
    "uses",
    "notes_dropped",
    "compacted_states_dropped",
    "profiles_built",
    "receipts",  # one empty row: receipts from before it are not stored any more
}


def rows_with(database: Path, word: str) -> dict[str, list[str]]:
    """All rows that hold it, as text, by table."""
    found: dict[str, list[str]] = defaultdict(list)
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                if word in repr(row):
                    found[table].append(repr(row))
    return found


def files_with(folder: Path, word: str) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and word.encode() in path.read_bytes()
    ]


@pytest.mark.stack
def test_of_an_erased_user_no_row_has_words_and_only_files_that_are_named_have_bytes(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    data = shared_product.data_dir
    database = data / "turns.sqlite"
    shared_product.chat(f"My parrot is called {WORD}.", USER, session_id="s-1")
    shared_product.flush(USER)
    shared_product.ask("What is my parrot called?", USER, session_id="s-2")
    shared_product.flush(USER)
    assert rows_with(database, WORD)["turns"]
    assert files_with(data, WORD)

    answer = httpx.delete(f"{shared_product.api}/v1/memory", params={"user_id": USER}, timeout=60)
    assert answer.json()["deleted"] >= 1
    eventually(lambda: not rows_with(database, WORD), seconds=15)
    eventually(lambda: not rows_with(database, USER).keys() - BOOKKEEPING, seconds=15)
    eventually(lambda: not [one for one in files_with(data, WORD) if not one.startswith(NOT_OVERWRITTEN)], seconds=15)
    assert [one for one in files_with(data, USER) if not one.startswith(NOT_OVERWRITTEN)] == []
    assert WORD not in shared_product.log()
    assert USER not in shared_product.log()


def test_the_page_names_these_places() -> None:
    page = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
    table = page.split("## What remains")[1]
    assert [
        place
        for place in ("data_dir/milvus", "data_dir/turns.sqlite", "data_dir/turns.sqlite-wal")
        if place not in table
    ] == []
