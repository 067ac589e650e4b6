"""`memproxy token`: what it prints is what the API accepts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from api_parts import api_of
from library_parts import Parts, library_parts
from typer.testing import CliRunner

from memory.cli.main import commands
from memory.errors import BadInput
from memory.processes.from_settings import caller_rules
from memory.settings.loader import load


async def test_a_token_works_with_the_entry_that_is_printed_beside_it(tmp_path: Path) -> None:
    words = ["token", "importer", "--scope", "read", "--scope", "write", "--user", "ann", "--json"]
    printed = json.loads(CliRunner().invoke(commands, words, catch_exceptions=False).output)
    file = tmp_path / "settings.yaml"
    file.write_text(json.dumps({"identity": "header", "service_tokens": [printed["setting"]]}))
    assert printed["token"] not in file.read_text()
    rules = caller_rules(load(file, {}, {}))
    parts: Parts
    async with library_parts(tmp_path) as parts, api_of(parts, identity_mode="header", rules=rules) as api:
        api.headers["authorization"] = f"Bearer {printed['token']}"
        answer = await api.post("/v1/memory?user_id=ann", json={"memories": [{"content": "I like tea"}]})
        assert answer.status_code == 201
        assert (await api.get("/v1/memory?user_id=bob")).status_code == 403


def test_two_tokens_differ_and_lines_say_where_the_entry_goes() -> None:
    shown = [CliRunner().invoke(commands, ["token", "job", "--any-user"]).output for _ in range(2)]
    assert shown[0] != shown[1]
    assert all(lines.startswith("token: mpt_") and "add to service_tokens: {" in lines for lines in shown)


@pytest.mark.parametrize("words", [["job"], ["job", "--any-user", "--user", "ann"], ["A Job", "--any-user"]])
def test_a_token_for_nobody_or_with_a_strange_name_is_not_made(words: list[str]) -> None:
    with pytest.raises(BadInput):
        CliRunner().invoke(commands, ["token", *words], catch_exceptions=False)
