"""50,000 arrays in one another, at every door: an error in words, no traceback, and the chat passes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from api_parts import ANN
from product import Product
from upstream import RecordingUpstream

from extproc.supervisor.log_lines import LogLines
from memory.sessions.summaries import prose

JSON = {"content-type": "application/json"}
DEEP = "[" * 50_000 + "]" * 50_000
MEMPROXY = str(Path(sys.executable).with_name("memproxy"))
COMMANDS = [
    ("list", "--user", "ann", "--config"),
    ("import", "--from", "mem0", "--user", "ann"),
    ("bootstrap", "--user", "ann", "--dry-run", "--content-template", "{a}"),
    ("eval", "recall"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_command_says_in_words_that_a_file_is_nested_too_deeply(command: Sequence[str], tmp_path: Path) -> None:
    file = tmp_path / "deep.jsonl"
    file.write_text(f'{{"a": {DEEP}}}\n')
    ended = subprocess.run([MEMPROXY, *command, str(file)], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert "nested too deeply" in ended.stderr
    assert "Traceback" not in ended.stderr


DOORS = {
    "/v1/memory": '{"memories": %s}',
    "/v1/memory/search": '{"query": %s}',
    "/v1/memory/turns": '{"session_id": "s", "messages": %s}',
    "/v1/memory/import": '{"memory": %s}',
    "/v1/memory/profile": "%s",
    "/v1/memory/mcp": '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "memory_save", '
    '"arguments": {"content": %s}}}',
    "/v1/memory/operator/erasures": "%s",
}
CHATS = {
    "/v1/chat/completions": '{"model": "m", "memory_context": %s, "messages": [{"role": "user", "content": "Hello"}]}',
    "/v1/responses": '{"model": "m", "memory_config": %s, "input": "Hello"}',
    "/v1/messages": '{"model": "m", "memory_config": %s, "messages": [{"role": "user", "content": "Hello"}]}',
    "/v1/completions": '{"model": "m", "memory_config": %s, "prompt": "Hello"}',
}


@pytest.mark.parametrize("door", DOORS)
def test_each_door_of_a_product_answers_in_words_and_goes_on(shared_product: Product, door: str) -> None:
    headers = {**ANN, "accept": "application/json, text/event-stream"}
    headers["content-type"] = "application/x-ndjson" if door.endswith("import") else "application/json"
    method = "PUT" if door.endswith("profile") else "POST"
    for base in (shared_product.url, shared_product.api):
        for body in (DEEP, DOORS[door] % DEEP):
            answer = httpx.request(method, base + door, content=body, headers=headers, timeout=60)
            assert answer.status_code == 400
            assert answer.json()["error"]["message"]
    assert "Traceback" not in shared_product.log()


@pytest.mark.parametrize("path", CHATS)
def test_each_chat_of_a_product_passes(shared_product: Product, upstream: RecordingUpstream, path: str) -> None:
    for body in (CHATS[path] % DEEP, CHATS[path] % '"x"', DEEP):
        before = len(upstream.received)
        httpx.post(shared_product.url + path, content=body, headers=JSON | ANN, timeout=60)
        assert len(upstream.received) == before + 1
    assert "Traceback" not in shared_product.log()


def test_what_a_model_or_a_part_says_is_unusable_and_no_fault_of_ours(capfd: pytest.CaptureFixture[str]) -> None:
    assert prose.checked(f'{{"title": "x", "summary": {DEEP}}}', []) is None
    log = LogLines(2, as_json=True)
    log.write("filter-0", DEEP)
    log.close()
    assert json.loads(capfd.readouterr().err) == {"part": "filter-0", "event": DEEP}
