"""`memproxy sessions` and `projects`, and `export` and `erase` of one project, against a real API over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import command_worlds
import pytest
from command_worlds import run
from library_parts import NOW, Parts
from served_library import served_library
from typer.testing import Result

from memory.cli import projects
from memory.errors import NotFound
from memory.model import Memory, Message, Party, PartyType, Scope
from memory.model.memories import MemoryVisibility
from memory.service.conversations import NewMessage
from memory.service.requests import NewMemory

ODD = "s/2 ü"


async def fill(parts: Parts) -> None:
    """Two sessions, a shared project, and a memory in each of two private projects and in none."""
    said = [Message("user", "My cat is [bold]Tom[/bold] \x1b[31m"), Message("assistant", "Nice")]
    await parts.library.append_turn(Scope("ann", session_id="s1"), said, at=NOW - 100)
    plan = NewMessage(Party(PartyType.AGENT, "planner"), Party(PartyType.AGENT, "critic"), "the plan", at=NOW)
    await parts.library.conversations.add(Scope("ann", session_id=ODD), [plan])
    await parts.library.projects.membership.create("ann", "apollo")
    shared = [NewMemory(f"We deploy on day {day}", visibility=MemoryVisibility.MEMBERS) for day in range(3)]
    await parts.library.add(Scope("ann", "apollo"), shared)
    for number, project in enumerate(("red", "blue", "")):
        content = f"The office of {project or 'nowhere'} is green"
        await parts.put(Memory(f"m{number}", "ann", content, NOW, NOW, NOW, project_id=project))


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with served_library(tmp_path, fill) as address:
        yield address


def ask(url: str, *words: object, user: str = "ann", code: int = 0, answer: str | None = None) -> Result:
    return run(*words, "--user", user, "--api", url, code=code, answer=answer)


def told(url: str, *words: object, user: str = "ann") -> dict[str, Any]:
    return command_worlds.told(*words, "--user", user, "--api", url)


# Sessions


def sessions(url: str, *words: str) -> list[str]:
    return [one["id"] for one in told(url, "sessions", "list", *words)["sessions"]]


def test_sessions_are_listed_latest_first_and_shown_with_what_is_needed_to_go_on(url: str) -> None:
    assert sessions(url) == [ODD, "s1"]
    assert sessions(url, "--limit", "1") == [ODD]
    head, first, second = ask(url, "sessions", "list").stdout.splitlines()
    assert head.split()[:2] == ["session", "status"]
    assert ("critic, planner" in first, "My cat is [bold]Tom[/bold]" in second) == (True, True)
    session = told(url, "sessions", "show", "s1")
    said = [("user", "My cat is [bold]Tom[/bold] \x1b[31m"), ("model", "Nice")]
    assert [(m["source_type"], m["content"]) for m in session["messages"]] == said
    assert (session["turns"], session["notes"], "next_cursor" in session) == (1, [], False)
    shown = ask(url, "sessions", "show", ODD).stdout
    assert ("agent planner" in shown, "the plan" in shown) == (True, True)
    assert "\x1b" not in ask(url, "sessions", "show", "s1").stdout
    with pytest.raises(NotFound, match="no such session"):
        ask(url, "sessions", "show", "s3")


def test_sessions_are_exported_as_json_lines_and_deleted_once_that_is_confirmed(url: str, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in ask(url, "sessions", "export").stdout.splitlines()]
    assert [line["content"] for line in lines] == ["My cat is [bold]Tom[/bold] \x1b[31m", "Nice", "the plan"]
    file = tmp_path / "one.jsonl"
    ask(url, "sessions", "export", ODD, "--out", file)
    assert [json.loads(line)["source"] for line in file.read_text().splitlines()] == ["planner"]
    assert ask(url, "sessions", "export", "--agent", "nobody").stdout == ""
    ask(url, "sessions", "delete", "s1", code=1, answer="n\n")
    assert len(sessions(url)) == 2
    assert "deleted: 1 turns, 0 messages, 0 memories" in ask(url, "sessions", "delete", "s1", "--yes").stdout
    deleted = told(url, "sessions", "delete", ODD, "--yes", "--keep-memories")
    assert deleted == {"deleted": {"turns": 0, "messages": 1, "memories": 0}}
    assert sessions(url) == []


# Shared projects


def test_a_project_is_created_shown_and_deleted_and_has_to_be_named(url: str) -> None:
    assert "owner" in ask(url, "projects", "create", "b/2 ü").stdout
    assert {one["project_id"] for one in told(url, "projects", "list")["projects"]} == {"apollo", "b/2 ü"}
    assert "ann is its owner" in ask(url, "projects", "show", "b/2 ü").stdout
    ask(url, "projects", "delete", "b/2 ü", code=1, answer="n\n")
    assert told(url, "projects", "delete", "b/2 ü", "--yes") == {"deleted": 1}
    assert [one["project_id"] for one in told(url, "projects", "list")["projects"]] == ["apollo"]
    with pytest.raises(NotFound):
        ask(url, "projects", "show", "b/2 ü")
    for words in (("show", ""), ("add", "apollo", ""), ("delete", "", "--yes")):
        assert "must not be empty" in ask(url, "projects", *words, code=2).output


def let_in(url: str, user: str, role: str = "viewer") -> None:
    assert f"{user}: invited as {role}" in ask(url, "projects", "add", "apollo", user, "--role", role).stdout
    [invitation] = told(url, "projects", "invitations", user=user)["invitations"]
    shown = ask(url, "projects", "invitations", user=user).stdout
    assert [word for word in (invitation["id"], "apollo", role, "ann") if word not in shown] == []
    assert role in ask(url, "projects", "accept", invitation["id"], user=user).stdout


def test_an_invitation_is_shown_declined_and_withdrawn(url: str) -> None:
    for user in ("bob", "cid"):
        ask(url, "projects", "add", "apollo", user)
    assert "invited at" in ask(url, "projects", "show", "apollo").stdout
    [invitation] = told(url, "projects", "invitations", user="bob")["invitations"]
    for command, who in (("accept", "eve"), ("decline", "eve"), ("accept", "ann")):
        with pytest.raises(NotFound, match="no such invitation"):
            ask(url, "projects", command, invitation["id"], user=who)
    assert told(url, "projects", "decline", invitation["id"], user="bob") == {"deleted": 1}
    assert "deleted: 1" in ask(url, "projects", "remove", "apollo", "cid", "--yes").stdout
    assert [told(url, "projects", "invitations", user=user)["invitations"] for user in ("bob", "cid")] == [[], []]
    assert told(url, "projects", "show", "apollo")["invited"] == []


def test_members_see_its_memories_as_long_as_they_are_members(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    memories = ("projects", "memories", "apollo")
    with pytest.raises(NotFound):
        ask(url, *memories, user="bob")
    let_in(url, "bob")
    assert len(told(url, *memories, "--limit", "2", user="bob")["memories"]) == 2
    with monkeypatch.context() as patch:
        patch.setattr(projects, "PAGE_MEMORIES", 2)  # beyond one page of the API
        assert len({one["id"] for one in told(url, *memories, user="bob")["memories"]}) == 3
    shown = ask(url, *memories, user="bob").stdout
    assert "We deploy on day 1" in shown
    assert shown.splitlines()[0].split() == ["id", "said", "at", "type", "author", "content"]
    ask(url, "projects", "remove", "apollo", "bob", code=1, answer="n\n")
    assert "deleted: 1" in ask(url, "projects", "remove", "apollo", "bob", "--yes").stdout
    with pytest.raises(NotFound):
        ask(url, *memories, user="bob")


def test_a_role_is_changed_and_a_project_handed_over(url: str) -> None:
    let_in(url, "bob")
    assert "bob: admin" in ask(url, "projects", "add", "apollo", "bob", "--role", "admin").stdout
    members = told(url, "projects", "show", "apollo", user="bob")["members"]
    assert [(one["user_id"], one["role"]) for one in members] == [("ann", "owner"), ("bob", "admin")]
    assert "admin" in ask(url, "projects", "transfer", "apollo", "bob", "--yes").stdout
    assert told(url, "projects", "list", user="bob")["projects"][0]["role"] == "owner"
    assert ask(url, "projects", "add", "apollo", "eve", "--role", "owner", code=2).stdout == ""


# One project of a user


def exported(url: str, *words: object) -> set[str]:
    """Which of the offices are in it."""
    shown = ask(url, "export", *words).stdout
    return {name for name in ("red", "blue", "nowhere") if f"office of {name}" in shown}


def test_one_project_is_exported_and_erased_and_nothing_of_others(url: str, tmp_path: Path) -> None:
    file = tmp_path / "red.jsonl"
    assert told(url, "export", "--project", "red", "--output", file)["memories"] == 1
    assert ask(url, "export", "--project", "red").stdout == file.read_text()
    assert exported(url, "--project", "red") == {"red"}
    assert not [word for word in ("blue", "nowhere") if word in file.read_text()]
    refused = ask(url, "erase", "--project", "red", code=1, answer="n\n").output
    assert "the project 'red' of 'ann'" in refused
    assert exported(url) == {"red", "blue", "nowhere"}
    erasure = told(url, "erase", "--project", "red", "--yes")
    assert (erasure["state"], erasure["deleted"]) == ("deleted", {"memories": 1, "turns_withdrawn": 0})
    assert exported(url) == {"blue", "nowhere"}
    ask(url, "erase", "--project", "", "--yes", code=2)
    run("erase", "--verify", "tea", "--project", "red", "--yes", "--api", url, code=2)
