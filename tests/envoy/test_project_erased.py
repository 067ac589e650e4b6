"""Erases one project of a user of the running product: nothing of it is left in any file, and all else stays."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from product import Product, eventually, running_product
from redis_server import own_redis_server
from upstream import RecordingUpstream
from whole_lives import call

from memory.adapters.file_scan import scanned

USER = "user-of-two-projects-5d1e"
WORD, OTHER_WORD = "Quetzalbimxford", "Wombatlyxenham"


def work_on(product: Product, project: str, word: str) -> list[str]:
    """Chats of the project, streamed and not, one that is not to be stored; what it taught, a profile line, and the end
    of a session. Returns the ids of the chats' receipts.
    """
    chats = [
        product.chat(f"My parrot is called {word}.", USER, session_id=f"{project}-1", project_id=project),
        product.chat(f"I live in {word} Street.", USER, session_id=f"{project}-1", project_id=project, stream=True),
    ]
    product.flush(USER)
    question = f"What is my parrot {word} called?"
    chats.append(product.ask(question, USER, session_id=f"{project}-2", project_id=project))
    unstored = {"memory_config": {"auto_store": False}}
    chats.append(product.ask(question, USER, session_id=f"{project}-3", project_id=project, **unstored))
    added = {"memories": [{"content": f"The user sells {word}s.", "project_id": project}]}
    call(product, "POST", "", USER, json=added)
    profile = {"user_id": USER, "project_id": project}
    answer = httpx.put(f"{product.api}/v1/profile", params=profile, json={"pinned": [f"Say {word} first"]}, timeout=30)
    assert answer.is_success, answer.text
    call(product, "POST", f"/sessions/{project}-1/end", USER)
    product.flush(USER)
    return [one.headers["x-memory-receipt"] for one in chats]


def receipts_left(product: Product, receipt_ids: list[str]) -> list[bool]:
    paths = [f"{product.api}/v1/memory/receipts/{one}" for one in receipt_ids]
    return [httpx.get(path, params={"user_id": USER}, timeout=30).status_code == 200 for path in paths]


@contextmanager
def state_in(kind: str, folder: Path) -> Iterator[tuple[list[str], list[Path]]]:
    """The words by which a product keeps its state there, and the files of that."""
    if kind == "files":
        yield [], []
        return
    folder.mkdir()
    with own_redis_server(folder) as server:
        yield ["--redis-url", server.url], [folder]


@pytest.mark.slow("a product of its own, the life of a user, and all its files read")
@pytest.mark.parametrize("kind", ["files", "redis"])
def test_of_an_erased_project_no_byte_is_left_and_the_other_project_keeps_everything(
    tmp_path: Path, upstream: RecordingUpstream, kind: str
) -> None:
    data = tmp_path / "data"
    with (
        state_in(kind, tmp_path / "redis") as (words_of_state, files),
        running_product(data, *words_of_state, upstream=upstream.url) as product,
    ):
        receipts = {name: work_on(product, name, word) for name, word in (("red", WORD), ("blue", OTHER_WORD))}
        eventually(lambda: all(receipts_left(product, [*receipts["red"], *receipts["blue"]])))
        kept = sorted(one for one in product.memories(USER) if OTHER_WORD in one)
        assert len(kept) >= 2
        assert scanned([data], [WORD])[2] != []

        program = str(Path(sys.executable).parent / "memproxy")
        words = ["--user", USER, "--project", "red", "--yes", "--wait", "--json", "--api", product.api]
        run = subprocess.run([program, "erase", *words], capture_output=True, text=True, timeout=180, check=False)
        assert run.returncode == 0, run.stdout + run.stderr + product.log()[-3000:]
        erasure = json.loads(run.stdout)
        assert erasure["state"] == "partly_proven", erasure
        [rows] = erasure["scan"]["places"]
        assert (rows["place"], rows["found_in"], rows["items"] > 0) == ("rows", [], True)
        assert "bytes of files" in rows["not_searched"][0]
        assert erasure["deleted"]["memories"] >= 2

        eventually(lambda: scanned([data, product.log_file, *files], [WORD, WORD.lower()])[2] == [])
        assert receipts_left(product, receipts["red"]) == [False] * 4
        assert receipts_left(product, receipts["blue"]) == [True] * 4
        assert sorted(product.memories(USER)) == kept
        exported = call(product, "GET", "/export", USER).text
        assert WORD not in exported
        assert exported.count(OTHER_WORD) >= 4
        product.ask("What is my parrot called?", USER, session_id="new", project_id="red")
        assert WORD.encode() not in upstream.received[-1].body
        product.ask("What is my parrot called?", USER, session_id="new", project_id="blue")
        assert OTHER_WORD.encode() in upstream.received[-1].body
