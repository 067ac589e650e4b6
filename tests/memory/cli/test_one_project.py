"""`memproxy export` and `erase` of one project, through the real REST API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from library_parts import NOW, Parts
from served_library import served_library
from typer.testing import CliRunner, Result

from memory.cli import main
from memory.model import Memory


def run(*words: object, code: int = 0) -> Result:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main.commands, [str(one) for one in words])
    assert result.exit_code == code, result.output
    return result


async def filled(parts: Parts) -> None:
    for number, project in enumerate(("red", "blue", "")):
        content = f"The office of {project or 'nowhere'} is green"
        await parts.put(Memory(f"m{number}", "ann", content, NOW, NOW, NOW, project_id=project))


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[str]:
    with served_library(tmp_path, filled) as url:
        yield url


def test_an_export_of_one_project_has_nothing_of_others(rest: str, tmp_path: Path) -> None:
    file = tmp_path / "red.jsonl"
    words = ("export", "--user", "ann", "--project", "red", "--api", rest)
    shown = json.loads(run(*words, "--output", file, "--json").stdout)
    assert shown["memories"] == 1
    exported = file.read_text()
    assert run(*words).stdout == exported
    assert "office of red" in exported
    assert not [word for word in ("blue", "nowhere") if word in exported]
    assert "blue" in run("export", "--user", "ann", "--api", rest).stdout


def test_one_project_is_erased_and_its_state_shown(rest: str) -> None:
    words = ("erase", "--user", "ann", "--project", "red", "--api", rest)
    refused = CliRunner().invoke(main.commands, [*words], input="n\n")
    assert (refused.exit_code, "the project 'red' of 'ann'" in refused.output) == (1, True)
    assert "office of red" in run("export", "--user", "ann", "--api", rest).stdout
    erasure = json.loads(run(*words, "--yes", "--json").stdout)
    assert (erasure["state"], erasure["deleted"]) == ("deleted", {"memories": 1, "turns_withdrawn": 0})
    left = run("export", "--user", "ann", "--api", rest).stdout
    assert "office of red" not in left
    assert "office of blue" in left


@pytest.mark.parametrize("words", [("--scan", "tea"), ("--user", "ann")], ids=["of a look", "without a name"])
def test_a_project_is_erased_by_name_and_for_a_user(rest: str, words: tuple[str, str]) -> None:
    project = "" if "--user" in words else "red"
    run("erase", *words, "--project", project, "--yes", "--api", rest, code=2)
