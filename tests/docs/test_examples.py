"""The examples of the documents do what they promise, on the whole product."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from curl_commands import Curl
from documents import ROOT, block, blocks, commands
from product import LATE_TIMES_MAX, Product, in_time
from upstream import RecordingUpstream

MEMPROXY = str(Path(sys.executable).parent / "memproxy")


def addressed(text: str, product: Product, user: str) -> str:
    """The example for this product's ports, and for a user whom no other test has."""
    text = text.replace("http://127.0.0.1:8080", product.url).replace("http://127.0.0.1:8081", product.api)
    return re.sub(r"\b(ada|grace)\b", user, text)


def call(words: list[str]) -> httpx.Response:
    """One that memory had time for, where it is a chat."""
    curl = Curl(words)
    assert curl.unknown == []
    answer = in_time(curl.send) if curl.url.endswith("/chat/completions") else curl.send()
    assert answer.is_success, answer.text
    return answer


@pytest.mark.stack
def test_the_quick_start_as_it_is_written(shared_product: Product, upstream: RecordingUpstream) -> None:
    page = [one for one in blocks("sh") if one.page.name == "quick-start.md"]
    lines = [words for one in page for words in commands(addressed(one.text, shared_product, "quick-ada"))]
    calls = [words for words in lines if words[0] == "curl"]
    told, flushed, asked, listed, found = (call(words) for words in calls[:5])
    assert told.json()["choices"][0]["message"]["content"]
    assert flushed.json() == {"pending": 0, "failed": 0}
    assert asked.headers["x-memory-status"] == "used"
    assert "$10,000" in upstream.last_chat().system_text()
    for answer in (listed, found):
        assert [one["content"] for one in answer.json()["memories"]] == ["My budget for the Hawaii trip is $10,000."]
    (tool,) = [words for words in lines if words[0] == ".venv/bin/memproxy" and "list" in words]
    shown = subprocess.run([MEMPROXY, *tool[1:], "--api", shared_product.api], cwd=ROOT, capture_output=True, text=True)
    assert "Hawaii" in shown.stdout, shown.stderr
    (forgotten,) = (call(words) for words in calls[5:])
    assert forgotten.json()["deleted"] >= 1
    assert shared_product.memories("quick-ada") == []


def calls_of(page: str, product: Product, user: str) -> list[list[str]]:
    scripts = [addressed(one.text, product, user) for one in blocks("sh") if one.page.name == page]
    return [words for script in scripts for words in commands(script) if words[0] == "curl"]


@pytest.mark.stack
def test_the_calls_of_clients_are_answered_and_leave_nothing_of_ours(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    calls = calls_of("clients.md", shared_product, "curl-ada")
    assert len(calls) >= 4
    for words in calls:
        answer = call(words)
        assert ("x-memory-status" in answer.headers) == ("authorization" not in Curl(words).headers)  # no mode jwt here
        assert "Which apple tree do I have in my garden?" in upstream.last_chat().body.decode()
        assert "memory_co" not in upstream.last_chat().body.decode()


@pytest.mark.stack
def test_an_imported_history_is_learnt(shared_product: Product, upstream: RecordingUpstream) -> None:
    imported, flushed = (call(words) for words in calls_of("migration.md", shared_product, "moved-ada"))
    assert imported.status_code == 202
    assert flushed.json() == {"pending": 0, "failed": 0}
    assert any("York" in memory for memory in shared_product.memories("moved-ada"))


@pytest.mark.stack
def test_the_program_with_the_openai_sdk(shared_product: Product, upstream: RecordingUpstream, tmp_path: Path) -> None:
    program = tmp_path / "example.py"
    program.write_text(block("clients.md", "python", holding="from openai import").replace('"grace"', '"sdk-grace"'))
    inherited = os.environ  # noqa: TID251 - what a shell would pass on
    environment = {**inherited, "OPENAI_BASE_URL": f"{shared_product.url}/v1"}

    def run() -> list[str]:
        done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert run()[-1] == "Noted."
    shared_product.flush("sdk-grace")
    for _ in range(LATE_TIMES_MAX):  # a busy machine may be too late for memory, and says so
        lines = run()
        if not any("unavailable" in line for line in lines):
            break
    status, receipt = lines[2].split()
    assert status == "used"
    assert "memory_context" not in upstream.last_chat().json()
    of_user = {"user_id": "sdk-grace"}
    shown = httpx.get(f"{shared_product.api}/v1/memory/receipts/{receipt}", params=of_user, timeout=30)
    assert "Boskoop" in shown.text
