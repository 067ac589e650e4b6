"""`memproxy projects`, against a real API over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from library_parts import Parts
from served_library import served_library
from typer.testing import CliRunner, Result

from memory.cli import main, projects
from memory.errors import BadInput, NotFound
from memory.model import Scope
from memory.model.memories import MemoryVisibility
from memory.service.requests import NewMemory


async def one_project(parts: Parts) -> None:
    await parts.library.projects.membership.create("ann", "apollo")
    shared = [NewMemory(f"We deploy on day {day}", visibility=MemoryVisibility.MEMBERS) for day in range(3)]
    await parts.library.add(Scope("ann", "apollo"), shared)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with served_library(tmp_path, one_project) as address:
        yield address


def run(url: str, *words: str, user: str = "ann", code: int = 0, answer: str | None = None) -> Result:
    options = ("--user", user, "--api", url)
    result = CliRunner(env={"COLUMNS": "200"}).invoke(
        main.commands, ["projects", *words, *options], input=answer, catch_exceptions=False
    )
    assert result.exit_code == code, result.output
    return result


def told(url: str, *words: str, user: str = "ann") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(url, *words, "--json", user=user).stdout)
    return found


def test_a_project_is_created_shown_and_deleted(url: str) -> None:
    assert "owner" in run(url, "create", "b/2 ü").stdout
    assert {one["project_id"] for one in told(url, "list")["projects"]} == {"apollo", "b/2 ü"}
    shown = run(url, "show", "b/2 ü").stdout
    assert "ann is its owner" in shown
    run(url, "delete", "b/2 ü", code=1, answer="n\n")
    assert told(url, "delete", "b/2 ü", "--yes") == {"deleted": 1}
    assert [one["project_id"] for one in told(url, "list")["projects"]] == ["apollo"]
    with pytest.raises(NotFound):
        run(url, "show", "b/2 ü")


def test_members_see_its_memories_as_long_as_they_are_members(url: str) -> None:
    with pytest.raises(NotFound):
        run(url, "memories", "apollo", user="bob")
    assert "bob: viewer" in run(url, "add", "apollo", "bob").stdout
    assert len(told(url, "memories", "apollo", user="bob")["memories"]) == 3
    assert len(told(url, "memories", "apollo", "--limit", "2", user="bob")["memories"]) == 2
    shown = run(url, "memories", "apollo", user="bob").stdout
    assert "We deploy on day 1" in shown
    assert shown.splitlines()[0].split() == ["id", "said", "at", "type", "author", "content"]
    assert told(url, "add", "apollo", "bob", "--role", "editor")["role"] == "editor"
    assert [(one["user_id"], one["role"]) for one in told(url, "show", "apollo", user="bob")["members"]] == [
        ("ann", "owner"),
        ("bob", "editor"),
    ]
    run(url, "remove", "apollo", "bob", code=1, answer="n\n")
    assert "deleted: 1" in run(url, "remove", "apollo", "bob", "--yes").stdout
    with pytest.raises(NotFound):
        run(url, "memories", "apollo", user="bob")


def test_memories_are_shown_beyond_one_page_of_the_api(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "PAGE_MEMORIES", 2)
    found = told(url, "memories", "apollo")["memories"]
    assert len({one["id"] for one in found}) == 3


def test_what_the_api_refuses_is_an_error_that_says_why(url: str) -> None:
    run(url, "add", "apollo", "bob")
    with pytest.raises(BadInput, match="there is a shared project of this id"):
        run(url, "create", "apollo", user="bob")
    with pytest.raises(BadInput, match="your role in this project does not allow"):
        run(url, "add", "apollo", "eve", user="bob")
    with pytest.raises(BadInput, match="the owner cannot leave"):
        run(url, "remove", "apollo", "ann", "--yes")
    for words in (("show", ""), ("add", "apollo", ""), ("delete", "", "--yes")):
        assert "must not be empty" in run(url, *words, code=2).output


def test_roles_are_those_of_the_api(url: str) -> None:
    run(url, "add", "apollo", "bob", "--role", "admin")
    with pytest.raises((BadInput, NotFound)):
        run(url, "delete", "apollo", "--yes", user="bob")
    assert "admin" in run(url, "transfer", "apollo", "bob", "--yes").stdout
    assert told(url, "list", user="bob")["projects"][0]["role"] == "owner"
    assert run(url, "add", "apollo", "eve", "--role", "owner", code=2).stdout == ""
