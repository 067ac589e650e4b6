"""The operator's tools, against a real API over HTTP: memories, settings, help, tokens, and looks for a text."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from api_parts import api_of
from command_worlds import NOBODY, memories_of, run, told
from library_parts import NOW, Parts, PlainSearch, library_parts
from rich.cells import cell_len
from served_library import served_library
from typer.main import get_command

from memory.cli import main
from memory.cli.api_client import answer_of
from memory.cli.options import PAGE_MEMORIES, MemoryTypeName
from memory.cli.tables import laid_out
from memory.errors import BadInput, BadSetting, NotFound, Unavailable
from memory.model import MEMORY_TYPES, Evidence, Memory, MemoryStatus, Scope
from memory.model.claim_filters import ClaimFilter
from memory.processes.from_settings import caller_rules
from memory.service.requests import NewMemory
from memory.settings.loader import load

SEEDED = [
    NewMemory("I like green tea", project_id="red", created_at=1_000.0),
    NewMemory("[bold]markup[/bold]", created_at=2_000.0),
    NewMemory("The car is blue", memory_type="episodic", created_at=3_000.0),
]
UNREAD = "broken"  # its first byte cannot be read, also not by root


def serving(folder: Path, *added: NewMemory, **options: str) -> AbstractContextManager[str]:
    """The API; ann has these memories, by default those of `SEEDED`."""

    async def fill(parts: Parts) -> None:
        await parts.library.add(Scope("ann"), added or SEEDED)

    return served_library(folder, fill, **options)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with serving(tmp_path) as address:
        yield address


def ids_of(url: str, *words: str) -> list[str]:
    return [memory["id"] for memory in memories_of(url, "ann", *words)]


def test_search_shows_the_best_first_and_list_filters_and_stops_at_its_limit(url: str) -> None:
    lines = run("search", "green tea", "--user", "ann", "--api", url).stdout.splitlines()
    assert lines[0].split() == ["id", "score", "said", "at", "type", "content"]
    assert "I like green tea" in lines[1]
    found = told("search", "green tea", "--user", "ann", "--api", url, "--limit", "1")
    assert [m["content"] for m in found["memories"]] == ["I like green tea"]
    newest_first = ["id-000002", "id-000001", "id-000000"]
    assert ids_of(url) == newest_first
    assert ids_of(url, "--limit", "2") == newest_first[:2]
    assert ids_of(url, "--type", "episodic") == ["id-000002"]
    assert ids_of(url, "--as-of", "2000") == newest_first[1:]


def test_list_and_search_choose_by_claims(tmp_path: Path) -> None:
    async def fill(parts: Parts) -> None:
        own = Memory("self", "ann", "I eat fish", NOW, NOW, NOW, attribute="food", values=("fish",))
        await parts.put(own, replace(own, id="cat", content="Tom eats fish", subject="pet", name="Tom"))
        searched.append(parts.searcher)

    searched: list[PlainSearch] = []
    with served_library(tmp_path, fill) as url:
        assert sorted(ids_of(url, "--value", "Fish")) == ["cat", "self"]
        assert ids_of(url, "--value", "fish", "--subject", "pet") == ["cat"]
        assert ids_of(url, "--name", "tom", "--attribute", "food") == ["cat"]
        assert ids_of(url, "--subject", "cat") == []
        claim = ("--subject", "pet", "--name", "Tom", "--attribute", "food", "--value", "fish")
        run("search", "what does it eat?", "--user", "ann", "--api", url, *claim)
    [(_, _, options, _)] = searched[0].asked
    assert options.claim == ClaimFilter("pet", "Tom", "food", "fish")


def test_what_a_memory_holds_is_text_and_nothing_else(tmp_path: Path) -> None:
    """Also what the API would refuse today: a chat's words, and rows of an earlier version."""
    kept = Memory("1", "ann", "[bold]markup[/bold] and \x1b[31mescape", NOW, NOW, NOW)
    with served_library(tmp_path, lambda parts: parts.put(kept)) as url:
        shown = run("list", "--user", "ann", "--api", url).stdout
    assert "[bold]markup[/bold] and \ufffd[31mescape" in shown
    assert "\x1b" not in shown


def test_forget_takes_ids_a_project_or_all_and_asks_first(url: str) -> None:
    ann = ("--user", "ann", "--api", url)
    run("forget", "--all", *ann, code=1, answer="n\n")
    run("forget", *ann, "--yes", code=2)
    run("forget", "id-000001", "--all", *ann, "--yes", code=2)
    assert len(ids_of(url)) == 3
    run("forget", "id-000001", *ann, "--yes")
    assert ids_of(url) == ["id-000002", "id-000000"]
    assert "deleted: 1" in run("forget", "--project", "red", *ann, "--yes").stdout
    assert ids_of(url) == ["id-000002"]
    run("forget", "--all", *ann, "--yes")
    assert ids_of(url) == []


def test_the_apis_own_words_reach_the_operator(url: str) -> None:
    with pytest.raises(NotFound, match="no such memory"):
        run("forget", "id-9?x=y#z", "--user", "ann", "--api", url, "--yes")
    with pytest.raises(BadInput, match="user_id"):
        run("list", "--user", " ann", "--api", url)
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1; is it running\? Name another with --api"):
        run("list", "--user", "ann", "--api", NOBODY)
    with pytest.raises(Unavailable, match="the store is down"):
        answer_of(httpx.Response(503, json={"error": {"code": "unavailable", "message": "the store is down"}}))


def test_outside_development_the_tools_send_the_edges_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path, identity_mode="header", edge_secret="s3cret") as url:
        with pytest.raises(BadInput, match="through the proxy"):
            ids_of(url)
        monkeypatch.setenv("MEMPROXY_EDGE_SECRET", "s3cret")
        assert len(ids_of(url)) == 3


def test_a_bad_setting_stops_every_command(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("prot: 1")
    for words in (["worker"], ["api"], ["dlq", "list"], ["list", "--user", "ann"]):
        with pytest.raises(BadSetting, match="did you mean port"):
            run(*words, "--config", file)


def test_every_command_and_option_has_its_help_and_offers_what_there_is() -> None:
    def complain(command: Any, path: str) -> list[str]:
        missing = [] if command.help else [path]
        missing += [f"{path} {parameter.name}" for parameter in command.params if not parameter.help]
        below = getattr(command, "commands", {}).items()
        return missing + [one for name, sub in below for one in complain(sub, f"{path} {name}")]

    assert complain(get_command(main.commands), "memproxy") == []
    assert "replay" in run("dlq", code=2).output  # a group without a command shows its own
    assert tuple(one.value for one in MemoryTypeName) == MEMORY_TYPES
    assert get_args(main.StatusName) == (*(one.value for one in MemoryStatus), "all")


SENTENCE = "On the weekend we keep bees and I dive."
SAID = [
    "I am allergic to penicillin, and my doctor is Dr. Llanfairpwllgwyngyll of Anglesey " * 3,
    "Le café coûte 3\u00a0€\nand comes\u200d with a [bold]biscuit[/bold]",
    "我住在北京市朝阳区建国路八十八号院十二号楼三单元四零二室隔壁是一家书店和一家茶馆",
]
IDS = ["0199f2b4-0b1c-7abc-8def-0123456789a" + str(number) for number in range(3)]
ROWS = [(memory_id, "semantic", content) for memory_id, content in zip(IDS, SAID, strict=True)]


def refuse_lost_words(lines: list[str], ids: list[str], columns: int) -> None:
    shown = "\n".join(lines)
    for memory_id, content in zip(ids, SAID, strict=True):
        assert "".join(content.split()) in "".join(shown.split())
        assert {memory_id, *content.split()} <= set(shown.split())
    assert all(cell_len(line) <= columns or " " not in line.strip() for line in lines)


@pytest.mark.parametrize("columns", [20, 40, 80, 200, None])
def test_rows_lose_no_word_at_any_width_or_in_a_pipe(columns: int | None) -> None:
    lines = list(laid_out(("id", "type", "content"), ROWS, width=columns))
    refuse_lost_words(lines, IDS, columns or 1_000)
    assert (len(lines) == 4) == (columns is None)
    assert list(laid_out(("id", "type"), [], width=columns)) == ["id  type"]


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_rows_of_one_heading_stand_below_it_without_a_lost_word(columns: int) -> None:
    lines = list(laid_out(("id", "type", "content"), ROWS, width=columns, headings=["", SENTENCE, SENTENCE]))
    refuse_lost_words(lines, IDS, columns)
    first, second, third = (next(n for n, line in enumerate(lines) if one in line) for one in IDS)
    heading = next(n for n, line in enumerate(lines) if line.startswith(SENTENCE[:12]))
    assert first < heading < second < third
    assert "".join(lines[heading:second]).replace(" ", "") == SENTENCE.replace(" ", "")
    assert [line.startswith("  ") for line in (lines[first], lines[second], lines[third])] == [False, True, True]


def test_list_shows_facts_below_their_sentence_across_pages_and_in_a_pipe_one_a_line(tmp_path: Path) -> None:
    quotes = [Evidence(SENTENCE, "t", clause=fact) for fact in ("we keep bees", "I dive")]
    bees, dive = (Memory(one.clause[-4:], "ann", one.clause, NOW, NOW, NOW, evidence=(one,)) for one in quotes)
    between = [Memory(f"m{n:03}", "ann", f"Fact {n}", NOW + n + 0.5, NOW, NOW) for n in range(PAGE_MEMORIES)]
    kept = [bees, *between, replace(dive, created_at=NOW + PAGE_MEMORIES)]
    with served_library(tmp_path, lambda parts: parts.put(*kept)) as url:
        ann = ("list", "--user", "ann", "--api", url, "--limit", "200")
        piped = run(*ann).stdout.splitlines()
        shown = in_terminal(80, *ann).splitlines()
        found = told(*ann)["memories"]
    assert len(piped) == 1 + len(kept)
    assert [line.split()[-2:] for line in piped[1:3]] == [["I", "dive"], ["keep", "bees"]]
    assert shown[1] == f'"{SENTENCE}"'
    assert [line[:6] for line in shown[2:5]] == ["  dive", "  bees", "m099  "]
    assert found[0]["sentence_id"] == found[1]["sentence_id"] is not None
    assert {one["sentence_id"] for one in found[2:]} == {None}


def test_list_and_search_know_the_width_of_their_terminal(tmp_path: Path) -> None:
    with serving(tmp_path, *map(NewMemory, SAID)) as url:
        for words in ("list",), ("search", "what am I allergic to?"):
            shown = in_terminal(40, *words, "--user", "ann", "--api", url)
            refuse_lost_words(shown.splitlines(), ids_of(url)[::-1], 40)


def in_terminal(columns: int, *words: str) -> str:
    """What the command prints in a terminal of so many columns."""
    command = ["env", "--unset=COLUMNS", sys.executable, "-m", "extproc", *words]
    ours, its = pty.openpty()
    termios.tcsetwinsize(its, (24, columns))
    process = subprocess.Popen(command, stdin=its, stdout=its)
    os.close(its)
    shown = b""
    with suppress(OSError):  # how a terminal ends
        while piece := os.read(ours, 65_536):
            shown += piece
    os.close(ours)
    assert process.wait() == 0
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (20, ["said twice", "  noted: 1.00", "    [0.95, 1.05]", "  held out: 0.5"]),
        (80, ["                        noted  held out", "said twice  1.00 [0.95, 1.05]       0.5"]),
    ],
)
def test_figures_stand_below_their_names_where_there_is_room(width: int, shown: list[str]) -> None:
    row = ("said twice", "1.00 [0.95, 1.05]", "0.5")
    assert list(laid_out(("", "noted", "held out"), [row], width=width, is_right=True)) == shown


def test_a_look_tells_which_files_hold_an_id_and_which_could_not_be_read(tmp_path: Path) -> None:
    data, config = tmp_path / "data", tmp_path / "settings.yaml"
    data.mkdir()
    (data / "log").write_text('{"of": "ada"}', encoding="utf-8")
    (data / "other").write_text("metadata of ada", encoding="utf-8")
    (data / UNREAD).symlink_to("/proc/self/mem")
    config.write_text(f"data_dir: {data}", encoding="utf-8")
    look = ("erase", "--config", config, "--verify")
    seen = told(*look, "ada", code=1)
    [files] = seen["places"]
    assert (seen["waiting"], files["place"], files["items"], files["found_in"]) == (0, "files", 2, ["log"])
    assert [reason.partition(":")[0] for reason in files["not_searched"]] == [UNREAD]
    missing = run(*look, "metadata").output
    assert "2: nothing" in missing
    assert f"files: not searched: {UNREAD}" in missing
    for wrong in ("", " ada"):
        with pytest.raises(BadInput):
            run(*look, wrong)
    config.write_text(f"data_dir: {tmp_path / 'another'}", encoding="utf-8")
    with pytest.raises(BadSetting, match="name the data_dir"):
        run(*look, "ada")


# Service tokens


async def test_a_token_works_with_the_entry_that_is_printed_beside_it(tmp_path: Path) -> None:
    words = ["token", "importer", "--scope", "read", "--scope", "write", "--user", "ann"]
    printed = told(*words)
    assert told(*words)["token"] != printed["token"]
    assert "add to service_tokens: {" in run("token", "job", "--any-user").stdout
    file = tmp_path / "settings.yaml"
    file.write_text(json.dumps({"identity": "header", "service_tokens": [printed["setting"]]}))
    assert printed["token"] not in file.read_text()
    rules = caller_rules(load(file, {}, {}))
    async with library_parts(tmp_path) as parts, api_of(parts, identity_mode="header", rules=rules) as api:
        api.headers["authorization"] = f"Bearer {printed['token']}"
        answer = await api.post("/v1/memory?user_id=ann", json={"memories": [{"content": "I like tea"}]})
        assert answer.status_code == 201
        assert (await api.get("/v1/memory?user_id=bob")).status_code == 403
    for nobody_or_strange in (["job"], ["job", "--any-user", "--user", "ann"], ["A Job", "--any-user"]):
        with pytest.raises(BadInput):
            run("token", *nobody_or_strange)
