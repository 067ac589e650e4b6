"""Erases a user of the running product, then looks for their id and words in every file, log and metric of it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from product import eventually, running_product
from upstream import RecordingUpstream
from whole_lives import live

from memory.adapters.file_scan import scanned

USER, OTHER = "user-who-leaves-7f3a", "user-who-stays-91cd"
WORD = "Quetzalbimxford"
OTHER_WORD = "Wombatlyxenham"


def rows_with(database: Path, words: list[str]) -> list[str]:
    """Tables with rows that hold one of them, as text."""
    found = []
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            rows = connection.execute(f'SELECT * FROM "{table}"').fetchall()
            found += [table for row in rows if any(word in repr(row) for word in words)]
    return sorted(set(found))


@pytest.mark.slow("a product of its own, three lives of users, and all their files read")
def test_of_an_erased_user_no_byte_is_left_in_any_file_and_others_keep_everything(
    tmp_path: Path, upstream: RecordingUpstream
) -> None:
    data, temporary = tmp_path / "data", tmp_path / "tmp"
    temporary.mkdir()
    with running_product(data, upstream=upstream.url) as product:
        live(product, OTHER, OTHER_WORD)
        live(product, USER, WORD)
        kept = sorted(product.memories(OTHER))
        assert len(kept) >= 2
        assert "turns" in rows_with(data / "turns.sqlite", [USER, WORD])
        assert any(name.startswith("milvus/") for name in scanned([data], [WORD])[2])

        program = str(Path(sys.executable).parent / "memproxy")
        told = subprocess.run(
            [program, "erase", "--user", USER, "--yes", "--wait", "--json", "--api", product.api],
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert told.returncode == 0, told.stdout + told.stderr + product.log()[-3000:]
        erasure = json.loads(told.stdout)
        assert erasure["state"] == "proven", erasure
        assert erasure["deleted"]["memories"] >= 2
        assert erasure["scan"]["files"] > 5
        assert [one["place"] for one in erasure["scan"]["places"]] == ["files"]
        assert USER not in json.dumps(erasure)

        assert rows_with(data / "turns.sqlite", [USER, WORD]) == []
        places = [data, product.log_file, product.ports_file]
        assert scanned(places, [USER, WORD, WORD.lower()])[2] == []
        metrics = httpx.get(f"http://127.0.0.1:{product.ports['metrics']}/metrics", timeout=30).text
        assert "memproxy_erasures_waiting_seconds" in metrics
        assert not [word for word in (USER, WORD) if word in metrics]
        assert product.memories(USER) == []

        product.ask("What is my parrot called?", USER, session_id="s-new")  # a filter that had their working set
        assert WORD.encode() not in upstream.received[-1].body
        product.chat("My cat is called Gloomsbury.", USER, session_id="s-new")
        product.flush(USER)
        back = product.memories(USER)
        assert any("Gloomsbury" in one for one in back), back
        assert not [one for one in back if WORD in one]
        assert sorted(product.memories(OTHER)) == kept
        eventually(lambda: scanned(places, [WORD])[2] == [])
