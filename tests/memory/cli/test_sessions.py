"""`memproxy sessions`, against a real API over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from library_parts import NOW, Parts
from served_library import served_library
from typer.testing import CliRunner, Result

from memory.cli import main
from memory.errors import NotFound
from memory.model import Message, Party, PartyType, Scope
from memory.service.conversations import NewMessage

AGENTS = Party(PartyType.AGENT, "planner"), Party(PartyType.AGENT, "critic")
ODD = "s/2 ü"


async def two_sessions(parts: Parts) -> None:
    said = [Message("user", "My cat is [bold]Tom[/bold] \x1b[31m"), Message("assistant", "Nice")]
    await parts.library.append_turn(Scope("ann", session_id="s1"), said, at=NOW - 100)
    plan = NewMessage(*AGENTS, "the plan", at=NOW)
    await parts.library.conversations.add(Scope("ann", session_id=ODD), [plan])


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with served_library(tmp_path, two_sessions) as address:
        yield address


def run(url: str, *words: str, code: int = 0, answer: str | None = None) -> Result:
    options = ("--user", "ann", "--api", url)
    result = CliRunner(env={"COLUMNS": "200"}).invoke(
        main.commands, ["sessions", *words, *options], input=answer, catch_exceptions=False
    )
    assert result.exit_code == code, result.output
    return result


def ids(url: str, *words: str) -> list[str]:
    return [one["id"] for one in json.loads(run(url, "list", "--json", *words).stdout)["sessions"]]


def test_list_shows_the_latest_first(url: str) -> None:
    assert ids(url) == [ODD, "s1"]
    assert ids(url, "--limit", "1") == [ODD]
    head, first, second = run(url, "list").stdout.splitlines()
    assert head.split()[:2] == ["session", "status"]
    assert ("critic, planner" in first, "My cat is [bold]Tom[/bold]" in second) == (True, True)


def test_show_gives_what_is_needed_to_go_on(url: str) -> None:
    session = json.loads(run(url, "show", "s1", "--json").stdout)
    assert [(m["source_type"], m["content"]) for m in session["messages"]] == [
        ("user", "My cat is [bold]Tom[/bold] \x1b[31m"),
        ("model", "Nice"),
    ]
    assert (session["turns"], session["notes"], "next_cursor" in session) == (1, [], False)
    shown = run(url, "show", ODD).stdout
    assert "agent planner" in shown
    assert "the plan" in shown
    assert "\x1b" not in run(url, "show", "s1").stdout
    with pytest.raises(NotFound, match="no such session"):
        run(url, "show", "s3")


def test_export_writes_json_lines(url: str, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in run(url, "export").stdout.splitlines()]
    assert [line["content"] for line in lines] == ["My cat is [bold]Tom[/bold] \x1b[31m", "Nice", "the plan"]
    file = tmp_path / "one.jsonl"
    run(url, "export", ODD, "--out", str(file))
    assert [json.loads(line)["source"] for line in file.read_text().splitlines()] == ["planner"]
    assert run(url, "export", "--agent", "nobody").stdout == ""


def test_delete_asks_first(url: str) -> None:
    run(url, "delete", "s1", code=1, answer="n\n")
    assert len(ids(url)) == 2
    assert "deleted: 1 turns, 0 messages, 0 memories" in run(url, "delete", "s1", "--yes").stdout
    deleted = json.loads(run(url, "delete", ODD, "--yes", "--keep-memories", "--json").stdout)
    assert deleted == {"deleted": {"turns": 0, "messages": 1, "memories": 0}}
    assert ids(url) == []
