"""An id is found where it is a whole value, in any file that a deployment writes, and nowhere as a part of another."""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
import uuid
from collections.abc import Callable
from contextlib import closing
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.adapters import whole_ids
from memory.adapters.file_scan import files_scanned
from memory.adapters.whole_ids import WholeId
from memory.recall.ranking.snapshot import BODY_FROM, MAGIC

# An id, and others that hold it, or are like it, with words that hold it.
IDS = {
    "42": ["1426", "142", "421", "4 2", "42 ", "42-a", "a.42", "４２"],
    "ada": ["adam", "metadata", "Ada", "ada.lovelace", "ada@example.com", "tamada"],
    "ann-7f3a": ["ann-7f3a1", "joann-7f3a", "ann", "ANN-7F3A"],
    "köln/1": ["köln/12", "köln", "kölnköln/1x"],
    "猫": ["山猫", "猫2"],
    'o"neil': ['o"neill', "o", "neil"],
}
PAIRS = [pytest.param(wanted, others, id=f"of {len(wanted)} {others[0]}") for wanted, others in IDS.items()]


def rows_of_sqlite(path: Path, values: list[str]) -> None:
    """As columns side by side, which nothing delimits in the bytes of the file, and as keys."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE turns (id TEXT, user_id TEXT, project_id TEXT)")
        connection.execute("CREATE TABLE owners (name TEXT PRIMARY KEY) WITHOUT ROWID")
        connection.executemany("INSERT OR IGNORE INTO owners VALUES (?)", [(one,) for one in values])
        rows = [(uuid.uuid4().hex, one, "red") for one in values]
        connection.executemany("INSERT INTO turns VALUES (?, ?, ?)", rows)


def parquet(path: Path, values: list[str]) -> None:
    columns = {"user_id": values, "embedding": [np.ones(4, dtype=np.float32).tolist()] * len(values)}
    pq.write_table(pa.table(columns), path)


def arrow(path: Path, values: list[str]) -> None:
    """As the log of Milvus Lite, which does not end while it runs."""
    batch = pa.record_batch({"user_id": values, "number": list(range(len(values)))})
    with pa.OSFile(str(path), "wb") as sink:
        writer = pa.ipc.new_stream(sink, batch.schema)
        writer.write_batch(batch)
        sink.write(b"torn")


def snapshot(path: Path, values: list[str]) -> None:
    texts = [values[-1], values, b"".join(map(whole_ids.msgspec.msgpack.encode, values))]
    chance = "".join(IDS).encode() * 9  # vectors may hold any bytes
    body = whole_ids.msgspec.msgpack.encode([*texts, [chance, whole_ids.msgspec.msgpack.encode(list(IDS))]])
    path.write_bytes(MAGIC + bytes(BODY_FROM - len(MAGIC)) + body)


def json_lines(path: Path, values: list[str]) -> None:
    path.write_text("".join(json.dumps({"user_id": one, "text": f"said by {one} today"}) + "\n" for one in values))


def nested_json(path: Path, values: list[str]) -> None:
    """What is escaped twice is not found."""
    path.write_text(json.dumps([one if '"' in one else json.dumps({"of": one}, ensure_ascii=False) for one in values]))


def quoted(path: Path, values: list[str], *, coded: str) -> None:
    path.write_bytes(",".join(f'"{one}"' for one in values).encode(coded))


WRITERS: dict[str, Callable[[Path, list[str]], object]] = {
    "turns.sqlite": rows_of_sqlite,
    "data.parquet": parquet,
    "wal.arrow": arrow,
    "snapshot": snapshot,
    "export.jsonl": json_lines,
    "export.json": lambda path, values: path.write_text(json.dumps(values, ensure_ascii=False)),
    "nested.json": nested_json,
    "list.txt": lambda path, values: path.write_text("\n".join(values)),
    "table.csv": lambda path, values: path.write_text("\n".join(f"x,{one},\ty" for one in values)),
    "little.txt": partial(quoted, coded="utf-16-le"),
    "big.txt": partial(quoted, coded="utf-16-be"),
    "lines.jsonl.gz": lambda path, values: path.write_bytes(gzip.compress(json.dumps(values).encode())),
    "coded.txt": lambda path, values: path.write_bytes(b"\n".join(base64.b64encode(v.encode()) for v in values)),
}


def found_in(folder: Path, wanted: str) -> tuple[str, ...]:
    report = files_scanned([folder], WholeId(wanted))
    assert (report.items, report.not_searched) == (1, ())
    return report.found_in


@pytest.mark.parametrize(("wanted", "others"), PAIRS)
@pytest.mark.parametrize("name", WRITERS)
def test_a_whole_id_is_found_and_others_that_hold_it_are_not(
    tmp_path: Path, name: str, wanted: str, others: list[str]
) -> None:
    WRITERS[name](tmp_path / name, others)
    assert found_in(tmp_path, wanted) == ()
    (tmp_path / name).unlink()
    WRITERS[name](tmp_path / name, [*others, wanted])
    assert found_in(tmp_path, wanted) == (name,)


def test_words_of_a_text_are_no_ids(tmp_path: Path) -> None:
    said = ["I am 42 years old", "My aunt Ada (ada) said so", "the bus 42."]
    rows_of_sqlite(tmp_path / "turns.sqlite", said)
    assert (found_in(tmp_path, "42"), found_in(tmp_path, "ada")) == ((), ())


def test_what_is_in_the_log_of_a_database_only_is_found(tmp_path: Path) -> None:
    path = tmp_path / "turns.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        rows_of_sqlite(path, ["1426", "42"])
        assert "turns.sqlite" in files_scanned([tmp_path], WholeId("42")).found_in
        assert files_scanned([tmp_path], WholeId("142")).found_in == ()


@pytest.mark.parametrize("before", range(9))
def test_an_id_in_quotation_marks_is_found_in_base64_wherever_it_begins(before: int) -> None:
    coded = base64.b64encode(b"x" * before + b'{"user_id": "ann-7f3a"}')
    assert WholeId("ann-7f3a").is_in(b'{"url": "data:' + coded + b'"}')
    other = base64.b64encode(b"x" * before + b'{"user_id": "joann-7f3a1"}')
    assert not WholeId("ann-7f3a").is_in(b'{"url": "data:' + other + b'"}')


@settings(max_examples=40)
@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=30), st.integers(1, 80)
)
def test_it_is_found_across_the_ends_of_pieces(wanted: str, size: int) -> None:
    for coded in ("utf-8", "utf-16-le", "utf-16-be"):
        held = json.dumps(["x" * size, wanted, "y"], ensure_ascii=False).encode(coded)
        if json.dumps(wanted, ensure_ascii=False)[1:-1] == wanted:
            assert in_pieces(held, WholeId(wanted), size)
            assert not in_pieces(held.replace(wanted.encode(coded), f"{wanted}é".encode(coded)), WholeId(wanted), size)


def in_pieces(held: bytes, wanted: WholeId, size: int) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_ids, "PIECE_BYTES", size)
        return wanted.is_in_file(BytesIO(held))
