"""Every command prints JSON when asked to, and nothing else on standard output; progress is on standard error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_worlds import run, settings_file
from eval_command import evaluated
from library_parts import Parts
from project_members import invited_to, let_in
from served_library import served_library
from turn_logs import START, leased, sqlite_deployment, tell
from typer.main import get_command
from typer.testing import Result

from extproc.cli import memproxy
from memory.cli import erase
from memory.model import Scope
from memory.model.projects import ProjectRole
from memory.service.requests import NewMemory

SIGNALS = Path(__file__).parents[2] / "data" / "signals.jsonl"
WITHOUT_JSON = {  # each with its reason; a command that has it must leave this list
    "up": "runs until it is stopped; its standard output is the line `ready`",
    **dict.fromkeys(("filter", "worker", "api", "milvus-lite", "model"), "a part: runs until stopped, prints nothing"),
    "envoy": "becomes Envoy, which has options of its own",
    "mcp": "its standard output is the protocol, which is JSON",
}
TAKES_A_FILE = {f"eval {name}" for name in ("recall", "signals", "extraction", "updates", "adversarial", "messages")}
TAKES_A_FILE |= {"eval history"}  # `--json FILE`, or `-`


def all_commands() -> dict[str, Any]:
    def below(command: Any, path: str) -> Iterator[tuple[str, Any]]:
        for name, one in getattr(command, "commands", {}).items():
            yield from below(one, f"{path} {name}".strip())
        if not getattr(command, "commands", {}):
            yield path, command

    return dict(below(get_command(memproxy), ""))


def test_every_command_has_the_option_or_a_reason() -> None:
    found = {path: [one for one in command.params if "--json" in one.opts] for path, command in all_commands().items()}
    assert {path for path, options in found.items() if not options} == set(WITHOUT_JSON)
    assert {path for path, options in found.items() if any(not one.is_flag for one in options)} == TAKES_A_FILE


@dataclass(frozen=True, slots=True)
class World:
    """An API, and a turn log with a dead letter beside it."""

    url: str
    folder: Path

    def run(self, words: str, *, code: int = 0) -> Result:
        """In a terminal, as far as progress bars can tell."""
        given = words.replace("API", f"--user ann --api {self.url}").replace("HERE", "--config FOLDER/c.yaml")
        named = given.replace("URL", self.url).replace("FOLDER", str(self.folder)).split()
        return run(*named, code=code, FORCE_COLOR="1", COLUMNS="120")


async def fill(parts: Parts) -> None:
    await parts.library.add(Scope("ann"), [NewMemory(f"I like tea number {number}") for number in range(4)])
    await tell(parts.turn_log, "t")
    membership = parts.library.projects.membership
    await membership.create("ann", "apollo")
    await let_in(membership, "ann", "apollo", "eve", ProjectRole.VIEWER)
    await invited_to(membership, "ann", "k1", "k2")


async def bury(folder: Path) -> None:
    async with sqlite_deployment(folder).start() as process:
        await tell(process.log, "t")
        await process.log.move_to_dead_letters(await leased(process.log, START + 1), now=START + 1, reason="junk")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    settings_file(folder)
    (folder / "files.yaml").write_text(f"data_dir: {folder / 'data'}")
    (folder / "rows.csv").write_text("email,name\nann,Ann\n")
    asyncio.run(bury(folder / "data"))
    (folder / "api").mkdir()
    with served_library(folder / "api", fill) as url:
        yield World(url, folder)


LINES = ["export API", "sessions export API"]
LONG = ("export API --output", "import", "forget", "sessions export")
DOCUMENTS = [  # in an order in which each finds what it needs
    "search tea API",
    "list API",
    "turns --user ann HERE",
    "dlq list HERE",
    "dlq replay --all HERE",
    "dlq drop --all --yes HERE",
    "sessions list API",
    "sessions show s1 API",
    "sessions delete s1 API --yes --keep-memories",
    "projects list API",
    "projects create zeus API",
    "projects show apollo API",
    "projects memories apollo API",
    "projects add apollo bob API",
    "projects remove apollo bob API --yes",
    "projects invitations API",
    "projects accept k1 API",
    "projects decline k2 API",
    "projects transfer apollo eve API --yes",
    "projects delete zeus API --yes",
    "export API --output FOLDER/ann.jsonl",
    "import FOLDER/ann.jsonl API",
    "bootstrap FOLDER/rows.csv --user-column email --content-template {name} --api URL",
    "opt-out API",
    "opt-in API",
    "token importer --any-user",
    "restore id-000003 API",
    "forget id-000000 id-000001 API --yes",
    "forget --all API --yes",
    "erase --verify absent-everywhere --config FOLDER/files.yaml",
    "eval holdout HERE",
    "prepare",
    "probe unix:/none",
]


def test_standard_output_is_one_document_and_progress_is_elsewhere(world: World) -> None:
    """One test: they follow upon each other."""
    for words in (*LINES, *DOCUMENTS):
        result = world.run(f"{words} --json", code=int(words.startswith(("probe", "dlq drop"))))
        printed = result.stdout.splitlines() if words in LINES else [result.stdout]
        assert all(isinstance(json.loads(one), dict) for one in printed), words
        assert "\x1b[" in result.stderr or not words.startswith(LONG), words  # a bar, or a line that is renewed
        assert "\x1b[" not in result.stdout
        assert "━" not in result.stdout


def test_figures_of_an_evaluation_are_printed_where_the_file_is_a_dash(world: World) -> None:
    """In a process of its own, as a shell starts it."""
    file = world.folder / "signals.jsonl"
    file.write_text(SIGNALS.read_text().splitlines()[0] + "\n")
    ended = evaluated(world.folder, "signals", file, "--json", "-", FORCE_COLOR="1")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["evaluation"] == "signals"


def test_an_erasure_that_is_waited_for_says_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here no worker rewrites files: the wait ends before, since each look at the clock is five minutes later."""
    time = SimpleNamespace(monotonic=count(step=300).__next__, sleep=lambda _: None)
    monkeypatch.setattr(erase, "time", time)
    with served_library(tmp_path, fill) as url:
        result = run("erase", "--user", "ann", "--api", url, "--yes", "--wait", "--json")
    assert json.loads(result.stdout)["state"] == "deleted"
    assert "deleting rows" in result.stderr
    assert "rewriting the files" in result.stderr
