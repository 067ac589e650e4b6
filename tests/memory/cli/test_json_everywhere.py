"""Every command prints JSON when asked to, and nothing else on standard output; progress is on standard error."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from library_parts import Parts
from prometheus_client import CollectorRegistry
from served_library import served_library
from turn_logs import a_turn
from typer.main import get_command
from typer.testing import CliRunner, Result

from extproc.cli import memproxy
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.turn_log import SqliteTurnLog
from memory.cli import erase
from memory.model import Scope, TurnStatus
from memory.ports import LearnDue
from memory.processes import composition
from memory.processes.composition import SYSTEM_CLOCK
from memory.service.requests import NewMemory

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
WITHOUT_JSON = {  # each with its reason; a command that has it must leave this list
    "up": "runs until it is stopped; its standard output is the line `ready`",
    "filter": "a part: runs until it is stopped, and prints nothing",
    "worker": "a part, likewise",
    "api": "a part, likewise",
    "milvus-lite": "a part, likewise",
    "model": "a part, likewise",
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


def test_the_json_of_every_command_is_read_by_a_test() -> None:
    shown = {path for path in all_commands() for words in (*DOCUMENTS, *LINES) if f"{words} ".startswith(f"{path} ")}
    assert set(all_commands()) - shown == {*WITHOUT_JSON, *TAKES_A_FILE, *ELSEWHERE}
    for path, file in ELSEWHERE.items():
        read = (ROOT / file).read_text()
        assert "--json" in read, (path, file)
        assert path.split()[-1] in read, (path, file)


@dataclass(frozen=True, slots=True)
class World:
    """An API, and a turn log with a dead letter beside it."""

    url: str
    folder: Path

    @property
    def config(self) -> str:
        return str(self.folder / "c.yaml")

    def run(self, words: str) -> Result:
        """In a terminal, as far as progress bars can tell, and with metrics of its own, as a process has them."""
        given = words.replace("API", f"--user ann --api {self.url}").replace("HERE", f"--config {self.config}")
        named = [word.replace("FOLDER", str(self.folder)).replace("DATA", str(DATA)) for word in given.split()]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(composition, "REGISTRY", CollectorRegistry())
            return CliRunner(env={"FORCE_COLOR": "1", "COLUMNS": "120"}).invoke(memproxy, named)


async def fill(parts: Parts) -> None:
    await parts.library.add(Scope("ann"), [NewMemory(f"I like tea number {number}") for number in range(4)])
    await parts.turn_log.append(replace(a_turn("t"), status=TurnStatus.CLOSED))
    await parts.library.projects.membership.create("ann", "apollo")


async def bury(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        log = SqliteTurnLog(database, clock=SYSTEM_CLOCK)
        await log.append(replace(a_turn("t"), status=TurnStatus.CLOSED))
        lease = await log.lease(now=SYSTEM_CLOCK() + 60, seconds=60.0, due=LearnDue())
        assert lease is not None
        await log.move_to_dead_letters(lease, now=SYSTEM_CLOCK(), reason="junk")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    (folder / "data").mkdir()
    (folder / "c.yaml").write_text(json.dumps({"data_dir": str(folder / "data"), "milvus_uri": "http://127.0.0.1:1"}))
    (folder / "rows.csv").write_text("email,name\nann,Ann\n")
    asyncio.run(bury(folder / "data" / "turns.sqlite"))
    (folder / "api").mkdir()
    with served_library(folder / "api", fill) as url:
        yield World(url, folder)


LINES = ["export API", "sessions export API"]
ELSEWHERE = {  # what needs more than an API and a turn log, with the tests that read its JSON
    "doctor": "tests/memory/cli/test_doctor.py",
    "restart": "tests/faults/test_rolling_restart.py",
    "reembed": "tests/extproc/supervisor/test_reembed.py",
    "migrate": "tests/memory/adapters/milvus/test_migration.py",
    "compact": "tests/extproc/supervisor/test_compact.py",
    **dict.fromkeys(
        ("upkeep all", "upkeep consolidate", "upkeep prune", "upkeep reflect"), "tests/memory/cli/test_upkeep.py"
    ),
}
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
    "projects add apollo eve API",
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
    "erase --scan absent-everywhere HERE",
    "eval holdout HERE",
    "prepare",
    "probe unix:/none",
]


def test_standard_output_is_one_document_and_progress_is_elsewhere(world: World) -> None:
    """One test: they follow upon each other."""
    for words in DOCUMENTS:
        result = world.run(f"{words.replace('URL', world.url)} --json")
        assert result.exit_code == int(words.startswith("probe")), f"{words}: {result.output} {result.exception!r}"
        assert isinstance(json.loads(result.stdout), dict), words
    for words in LINES:
        lines = world.run(f"{words} --json").stdout.splitlines()
        assert all(isinstance(json.loads(line), dict) for line in lines), words


@pytest.mark.parametrize(
    "words",
    [
        "import FOLDER/again.jsonl API",
        "export API --output FOLDER/again.jsonl",
        "forget id-000002 API --yes",
        "forget --all API --yes",
        "sessions export API",
    ],
)
def test_long_work_shows_its_progress_on_standard_error_only(tmp_path: Path, words: str) -> None:
    with served_library(tmp_path, fill) as url:
        world = World(url, tmp_path)
        world.run("export API --output FOLDER/again.jsonl")
        result = world.run(f"{words} --json")
    assert result.exit_code == 0, result.output
    assert "\x1b[" in result.stderr  # a bar, or a line that is renewed
    assert "\x1b[" not in result.stdout
    assert "━" not in result.stdout


def test_figures_of_an_evaluation_are_printed_where_the_file_is_a_dash(world: World) -> None:
    file = world.folder / "signals.jsonl"
    file.write_text((DATA / "signals.jsonl").read_text().splitlines()[0] + "\n")
    inherited = os.environ  # noqa: TID251 - what a shell would pass on
    ended = subprocess.run(
        [sys.executable, "-m", "memory", "eval", "signals", str(file), "--json", "-"],
        capture_output=True,
        text=True,
        env={**inherited, "FORCE_COLOR": "1"},
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["evaluation"] == "signals"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_an_erasure_that_is_waited_for_says_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    """Here no worker rewrites files: the wait ends before."""
    monkeypatch.setattr(erase, "WAIT_SECONDS_MAX", 3.0)
    environment = {"COLUMNS": "120", **({"FORCE_COLOR": "1"} if is_terminal else {})}
    with served_library(tmp_path, fill) as url:
        words = ["erase", "--user", "ann", "--api", url, "--yes", "--wait", "--json"]
        result = CliRunner(env=environment).invoke(memproxy, words, catch_exceptions=False)
    assert (result.exit_code, json.loads(result.stdout)["state"]) == (0, "deleted")
    assert is_terminal or "deleting rows" in result.stderr  # a terminal may be too late to see the first line
    assert "rewriting the files" in result.stderr
