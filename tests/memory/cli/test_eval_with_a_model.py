"""`memproxy eval … --llm URL` as a user starts it: the model's whole way, on a scripted server that stands for it."""

from __future__ import annotations

import asyncio
import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from chat_server import FakeModelServer, running_chat_server
from scripted_model import scripted

SECONDS_MAX = 60.0
WANTED, UNWANTED = "I teach chemistry at a night school.", "I took the bus home."
RECORD = {
    "id": "own-llm-1",
    "lang": "en",
    "sessions": [
        {
            "at": "2025-03-04T09:00:00Z",
            "messages": [
                {"role": "user", "content": WANTED},
                {"role": "assistant", "content": "Good for you."},
                {"role": "user", "content": UNWANTED},
            ],
        }
    ],
    "expect": [{"ideal": "teaches chemistry", "all": ["chemistry"], "any": [], "evidence": WANTED}],
    "forbid": [],
}


async def scored(server: FakeModelServer, folder: Path, *options: object) -> dict[str, Any]:
    file, out = folder / "records.jsonl", folder / "out.json"
    file.write_text(json.dumps(RECORD))
    arguments = ("extraction", file, "--json", out, "--llm", server.url, *options)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "extproc", "eval", *map(str, arguments)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
    )
    async with asyncio.timeout(SECONDS_MAX):
        printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()
    written: dict[str, Any] = json.loads(out.read_text())
    return written


@pytest.mark.parametrize(("left_out", "precision"), [("", 0.5), (UNWANTED, 1.0)])
async def test_what_the_model_says_is_what_is_scored(tmp_path: Path, left_out: str, precision: float) -> None:
    async with running_chat_server() as server:
        server.says = scripted(without=lambda unit: unit == left_out)
        written = await scored(server, tmp_path)
    assert (written["recall"], written["precision"], written["evidence_accuracy"]) == (1.0, precision, 1.0)
    assert {body["model"] for body in server.asked} == {"scripted"}  # the first that the server lists


async def test_calls_tokens_and_seconds_are_reported_and_drawn(tmp_path: Path) -> None:
    drawn = tmp_path / "figures.svg"
    async with running_chat_server() as server:
        server.says, server.seconds = scripted(), 0.4
        written = await scored(server, tmp_path, "--model", "my-model", "--picture", drawn)
    assert {body["model"] for body in server.asked} == {"my-model"}
    assert written["turns"] == 2
    assert written["model_calls"] == len(server.asked) == 1  # the session as a whole
    assert written["prompt_tokens_per_turn"] == 50.0
    assert written["cached_tokens_per_turn"] == 45.0
    assert written["seconds"] >= 0.4
    assert ET.fromstring(drawn.read_text()).tag.endswith("svg")


async def test_the_trained_reader_can_be_named_and_asks_no_model(tmp_path: Path) -> None:
    async with running_chat_server() as server:
        written = await scored(server, tmp_path, "--reader", "trained")
        assert server.asked == []
    assert written["turns"] == 2
    assert "model_calls" not in written
