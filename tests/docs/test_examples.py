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


def test_calls_of_clients_are_answered_without_our_fields(shared_product: Product, upstream: RecordingUpstream) -> None:
    calls = calls_of("clients.md", shared_product, "curl-ada")
    chats = [words for words in calls if shared_product.url in " ".join(words)]
    assert len(chats) >= 4
    for words in chats:
        answer = call(words)
        assert ("x-memory-status" in answer.headers) == ("authorization" not in Curl(words).headers)  # no mode jwt here
        assert "Which apple tree do I have in my garden?" in upstream.last_chat().body.decode()
        assert "memory_co" not in upstream.last_chat().body.decode()


def test_the_calls_about_a_profile_are_answered(shared_product: Product) -> None:
    calls = calls_of("clients.md", shared_product, "pinned-ada")
    shown, pinned, switched_off = (words for words in calls if "/v1/profile" in " ".join(words))
    assert call(pinned).json()["pinned"] == ["Answer in German"]
    assert "Answer in German" in call(shown).text
    assert call(switched_off).json()["enabled"] is False


def test_an_imported_history_is_learnt(shared_product: Product, upstream: RecordingUpstream) -> None:
    imported, flushed = (call(words) for words in calls_of("migration.md", shared_product, "moved-ada"))
    assert imported.status_code == 202
    assert flushed.json() == {"pending": 0, "failed": 0}
    assert any("York" in memory for memory in shared_product.memories("moved-ada"))


class Program:
    """A program of the documents, in a process of its own."""

    def __init__(self, folder: Path, text: str, **environment: str) -> None:
        self._file = folder / "example.py"
        self._file.write_text(text)
        inherited = os.environ  # noqa: TID251 - what a shell would pass on
        self._environment = {**inherited, **environment}

    def run(self) -> list[str]:
        """The lines that it prints."""
        command = [sys.executable, self._file]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def run_in_time(self) -> list[str]:
        """Run again while it prints that memory was too late, as it may be on a busy machine."""
        lines = self.run()
        for _ in range(LATE_TIMES_MAX - 1):
            if not any("unavailable" in line for line in lines):
                break
            lines = self.run()
        return lines


def test_the_program_with_the_openai_sdk(shared_product: Product, upstream: RecordingUpstream, tmp_path: Path) -> None:
    text = block("clients.md", "python", holding="from openai import").replace('"grace"', '"sdk-grace"')
    program = Program(tmp_path, text, OPENAI_BASE_URL=f"{shared_product.url}/v1")
    assert program.run()[-1] == "Noted."
    shared_product.flush("sdk-grace")
    lines = program.run_in_time()
    status, receipt = lines[2].split()
    assert status == "used"
    assert "memory_context" not in upstream.last_chat().json()
    of_user = {"user_id": "sdk-grace"}
    shown = httpx.get(f"{shared_product.api}/v1/memory/receipts/{receipt}", params=of_user, timeout=30)
    assert "Boskoop" in shown.text


def test_the_program_with_anthropic_s_sdk(shared_product: Product, upstream: RecordingUpstream, tmp_path: Path) -> None:
    text = block("clients.md", "python", holding="import anthropic")
    [line] = Program(tmp_path, addressed(text, shared_product, "claude-grace")).run()
    assert "Noted." in line
    assert "memory_context" not in upstream.last_chat().json()


@pytest.mark.full("starts three programs, each of which imports LangChain")
def test_the_programs_with_langchain(shared_product: Product, upstream: RecordingUpstream, tmp_path: Path) -> None:
    def program(holding: str) -> Program:
        text = block("clients.md", "python", holding=holding).replace("http://127.0.0.1:8080", shared_product.url)
        return Program(tmp_path, text.replace('"grace"', '"chain-grace"').replace('"ada"', '"chain-ada"'))

    assert program('"session_id": "monday"').run() == ["Noted."]
    shared_product.flush("chain-grace")
    before = len(upstream.received)
    of_both = ["chain-ada empty Noted."] * 2 + ["chain-grace used Noted."] * 2
    assert program("include_response_headers").run_in_time() == of_both
    notes = ["Boskoop" in one.body.decode() for one in upstream.received[before:]]
    assert sorted(notes[-4:]) == [False, False, True, True]  # the two programs ask at once
    assert program("default_headers").run() == ["Noted."]
    last = upstream.last_chat()
    assert b"Boskoop" not in last.body
    assert b"memory_context" not in last.body
    assert "x-memory" not in last.headers
