"""Users of a running product who leave something in every place where it keeps anything, and who erase it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from product import Product, eventually
from upstream import RecordingUpstream
from words_left import files_with

PROJECT_USER = "user-of-two-projects-5d1e"
PROJECT_WORD, OTHER_PROJECT_WORD = "Quetzalbimxford", "Wombatlyxenham"


def call(product: Product, method: str, path: str, user: str, **more: Any) -> httpx.Response:
    params = {"user_id": user, **more.pop("params", {})}
    answer = httpx.request(method, f"{product.api}/v1/memory{path}", params=params, timeout=60, **more)
    assert answer.is_success, answer.text
    return answer


def live(product: Product, user: str, word: str) -> None:
    """Chats, streamed and not, with a tool; memories stated, superseded, added, corrected, forgotten; a profile line;
    an export and its import; sessions that ended; a call with an idempotency key.
    """
    product.chat(f"My parrot is called {word}.", user, session_id=f"s-{word}-1")
    product.chat(f"I live in {word} Street.", user, session_id=f"s-{word}-1", stream=True)
    product.flush(user)
    product.ask("What is my parrot called?", user, session_id=f"s-{word}-2")
    product.chat(f"I moved: I live in New {word} Road now.", user, session_id=f"s-{word}-2", stream=True)
    body = {
        "model": "m",
        "memory_context": {"user_id": user, "session_id": f"s-{word}-3"},
        "messages": [
            {"role": "user", "content": f"Look up {word}."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": f'"{word}"'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": f"{word} was found"},
        ],
    }
    httpx.post(f"{product.url}/v1/chat/completions", json=body, timeout=30)
    for text in (f"I first read {word} today.", f"And I like {word} tea."):
        answer = httpx.post(
            f"{product.url}/v1/responses",
            json={"model": "m", "input": text, "memory_context": {"user_id": user, "session_id": f"s-{word}-4"}},
            timeout=30,
        )
        assert answer.status_code < 500
    key = {"Idempotency-Key": f"k-{word}"}
    added = {"memories": [{"content": f"The user fears {word} storms."}, {"content": f"The user sells {word}s."}]}
    ids = call(product, "POST", "", user, json=added, headers=key).json()
    forgotten = json.dumps(ids)
    corrected = ids["ids"][1]
    call(product, "PATCH", f"/{corrected}", user, json={"content": "The user sells boats."})
    [earlier] = call(product, "GET", f"/{corrected}/history", user).json()["earlier"]
    assert word in earlier["content"]
    product.flush(user)
    memories = call(product, "GET", "", user, params={"status": "all"}).json()["memories"]
    assert any(word in one["content"] for one in memories), memories
    unwanted = next(one["id"] for one in memories if one["id"] != corrected)
    call(product, "DELETE", f"/{unwanted}", user)
    lines = call(product, "GET", "/export", user).content
    assert word in forgotten + lines.decode()
    call(product, "POST", f"/sessions/s-{word}-1/end", user)


def assert_a_project_is_erased(product: Product, upstream: RecordingUpstream, *, files: Sequence[Path]) -> None:
    """Nothing of it is left in any file, and the user's other project keeps everything. `files`: beside the data."""
    user, word, places = PROJECT_USER, PROJECT_WORD, [product.data_dir, product.log_file, *files]
    receipts = {"red": _work_on(product, "red", word), "blue": _work_on(product, "blue", OTHER_PROJECT_WORD)}
    eventually(lambda: all(_receipts_left(product, [*receipts["red"], *receipts["blue"]])))
    kept = sorted(one for one in product.memories(user) if OTHER_PROJECT_WORD in one)
    assert len(kept) >= 2
    assert files_with([product.data_dir], [word]) != []

    erasure = erased_by_command(product, "--user", user, "--project", "red")
    assert erasure["state"] == "rewritten", erasure
    assert erasure["deleted"]["memories"] >= 2

    eventually(lambda: files_with(places, [word, word.lower()]) == [])
    assert _receipts_left(product, receipts["red"]) == [False] * len(receipts["red"])
    assert _receipts_left(product, receipts["blue"]) == [True] * len(receipts["blue"])
    assert sorted(product.memories(user)) == kept
    exported = call(product, "GET", "/export", user).text
    assert (word in exported, exported.count(OTHER_PROJECT_WORD) >= 4) == (False, True)
    for project, known, is_told in (("red", word, False), ("blue", OTHER_PROJECT_WORD, True)):
        product.ask("What is my parrot called?", user, session_id="new", project_id=project)
        assert (known.encode() in upstream.last_chat().body) is is_told


def erased_by_command(product: Product, *words: str) -> dict[str, Any]:
    """The record of the erasure, once its files are rewritten."""
    return _erase(product, *words, "--yes", "--wait", "--api", product.api)


def verified_by_command(product: Product, user: str, config: Path, *, is_clean: bool = True) -> dict[str, Any]:
    """Each place that was looked through, by its name."""
    found = _erase(product, "--verify", user, "--config", str(config), code=0 if is_clean else 1)
    return {one["place"]: one for one in found["places"]}


def _erase(product: Product, *words: str, code: int = 0) -> dict[str, Any]:
    command = [str(Path(sys.executable).parent / "memproxy"), "erase", *words, "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == code, ended.stdout + ended.stderr + product.log()[-3000:]
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def _work_on(product: Product, project: str, word: str) -> list[str]:
    """Chats of the project, streamed and not, one that is not to be stored; what it taught, a profile line, and the end
    of a session. Returns the ids of the chats' receipts.
    """
    user, of_project = PROJECT_USER, {"project_id": project}
    chats = [
        product.chat(f"My parrot is called {word}.", user, session_id=f"{project}-1", **of_project),
        product.chat(f"I live in {word} Street.", user, session_id=f"{project}-1", stream=True, **of_project),
    ]
    product.flush(user)
    question = f"What is my parrot {word} called?"
    chats.append(product.ask(question, user, session_id=f"{project}-2", **of_project))
    unstored = {"memory_config": {"auto_store": False}}
    chats.append(product.ask(question, user, session_id=f"{project}-3", **of_project, **unstored))
    call(product, "POST", "", user, json={"memories": [{"content": f"The user sells {word}s.", **of_project}]})
    profile = {"user_id": user, **of_project}
    answer = httpx.put(f"{product.api}/v1/profile", params=profile, json={"pinned": [f"Say {word} first"]}, timeout=30)
    assert answer.is_success, answer.text
    call(product, "POST", f"/sessions/{project}-1/end", user)
    product.flush(user)
    return [one.headers["x-memory-receipt"] for one in chats]


def _receipts_left(product: Product, receipt_ids: list[str]) -> list[bool]:
    paths = [f"{product.api}/v1/memory/receipts/{one}" for one in receipt_ids]
    return [httpx.get(path, params={"user_id": PROJECT_USER}, timeout=30).status_code == 200 for path in paths]
