"""`memproxy eval`: what it prints, what it writes, and what it refuses. One run is a process, as a user starts it."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from chat_server import FakeModelServer, running_chat_server
from command_worlds import run
from eval_command import evaluated
from scripted_model import scripted
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from svg_pictures import drawn_lines

from memory.adapters.evaluation_reports import FolderOfReports
from memory.errors import BadInput, Unavailable
from memory.model.evaluation_reports import EvaluationReport

DATA = Path(__file__).parents[2] / "data"
TALK = {
    "sample_id": "made-up",
    "conversation": {
        "session_1_date_time": "10:00 am on 1 March, 2024",
        "session_1": [
            {"speaker": "Bo", "dia_id": "D1:1", "text": "How is the kiln?"},
            {"speaker": "Ann", "dia_id": "D1:2", "text": "It cracked on Monday."},
        ],
    },
    "qa": [{"question": "What happened to the kiln?", "answer": "", "evidence": ["D1:2"], "category": 1}],
}
UPDATE = {
    "id": "own-upd-1",
    "lang": "en",
    "sessions": [
        {"at": "2025-01-08T09:00:00Z", "messages": [{"role": "user", "content": "I live in Leeds."}]},
        {"at": "2025-06-02T09:00:00Z", "messages": [{"role": "user", "content": "I moved, I live in York now."}]},
    ],
    "current": [{"ideal": "User lives in York", "all": ["York"], "any": []}],
    "stale": ["live in Leeds"],
    "keep": [],
    "probe": {"query": "Where do I live?", "must": ["York"], "must_not": ["live in Leeds"]},
}
WANTED, UNWANTED = "I teach chemistry at a night school.", "I took the bus home."
ASIDE = {"role": "assistant", "content": "Good for you."}
SAID = [{"role": "user", "content": WANTED}, ASIDE, {"role": "user", "content": UNWANTED}]
LEARNT = {
    "id": "own-llm-1",
    "lang": "en",
    "sessions": [{"at": "2025-03-04T09:00:00Z", "messages": SAID}],
    "expect": [{"ideal": "teaches chemistry", "all": ["chemistry"], "any": [], "evidence": WANTED}],
    "forbid": [],
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def some_lines(name: str, count: int, into: Path) -> Path:
    path = into / f"few-{name}"
    path.write_text("".join((DATA / name).read_text().splitlines(keepends=True)[:count]))
    return path


def figures(command: str, file: Path, *options: object) -> dict[str, Any]:
    """What `--json` wrote."""
    out = Path(f"{command}.json")
    run("eval", command, file, "--json", out, *options)
    written: dict[str, Any] = json.loads(out.read_text())
    return written


def test_signals_are_decided_as_in_a_chat_without_a_running_product(tmp_path: Path) -> None:
    out = tmp_path / "signals.json"
    done = evaluated(tmp_path, "signals", some_lines("signals.jsonl", 6, tmp_path), "--json", out)
    assert done.returncode == 0, done.stderr
    written = json.loads(out.read_text())
    assert (written["evaluation"], written["records"]) == ("signals", 6)
    named = {"accuracy", "false_negative_rate", "false_positive_rate"}
    for group in (written, *written["by_language"].values(), *written["by_label"].values()):
        assert named <= group.keys()
    [head, first, *_] = done.stdout.splitlines()
    assert head.split()[:3] == ["group", "records", "accuracy"]
    assert first.split()[:3] == ["all", "6", f"{written['accuracy']:.3f}"]
    assert "6/6" in done.stderr  # the bar never mixes with the table
    assert "━" not in done.stdout


def test_facts_may_be_gzipped_and_give_the_figures_by_language_and_tag(tmp_path: Path) -> None:
    packed, markdown = tmp_path / "few.jsonl.gz", tmp_path / "few.md"
    packed.write_bytes(gzip.compress(some_lines("abstention.jsonl", 3, tmp_path).read_bytes()))
    written = figures("recall", packed, "--markdown", markdown)
    named = {"recall@3", "recall@5", "recall@8", "precision", "mrr", "abstention", "superseded_leak"}
    for group in (written["all"], *written["by_language"].values(), *written["by_tag"].values()):
        assert named <= group.keys()
    assert written["all"]["records"] == 3
    assert "| superseded leak |" in markdown.read_text()


def test_a_report_is_kept_for_the_operator_page_under_its_name(tmp_path: Path) -> None:
    few, config, reports = some_lines("abstention.jsonl", 3, tmp_path), tmp_path / "memproxy.yaml", tmp_path / "kept"
    config.write_text(json.dumps({"reports_dir": str(reports)}))
    for named in (("--report-name", "before-the-change"), ("--report",)):
        done = run("eval", "recall", few, "--config", config, *named)
    newer, older = asyncio.run(kept_in(reports))
    assert older.head.name == "before-the-change"
    assert re.fullmatch(r"recall-\d{8}-\d{6}", newer.head.name)
    assert f"kept as report {newer.head.name}" in done.stderr
    assert (newer.head.evaluation, newer.head.file, newer.head.version) == ("recall", few.name, version("memproxy"))
    [table, *_] = newer.tables
    assert (table.columns[0], table.rows[0][0]) == ("group", "all")
    assert newer.tables == older.tables
    with pytest.raises(BadInput, match="a report's name"):
        run("eval", "recall", few, "--config", config, "--report-name", "../elsewhere")


async def kept_in(folder: Path) -> list[EvaluationReport]:
    """Newest first."""
    reports = FolderOfReports(folder)
    found = [await reports.get(head.name) for head in (await reports.page(limit=10)).items]
    return [one for one in found if one is not None]


def test_talks_are_known_by_their_shape_and_drawn(tmp_path: Path) -> None:
    talks, drawn = tmp_path / "talks.json", tmp_path / "talks.svg"
    talks.write_text(json.dumps([TALK]))
    shown = run("eval", "recall", talks, "--picture", drawn).stdout
    assert [line.split()[0] for line in shown.splitlines() if line.startswith("memproxy")] == ["memproxy"]
    assert len(drawn_lines(drawn.read_text())) == 6


def test_learning_is_scored_by_the_figures_that_its_formats_name(tmp_path: Path) -> None:
    """On a few records of each language and kind."""
    plain = (DATA / "learning" / "regression_extraction.jsonl").read_bytes()
    packed = gzip.decompress((DATA / "learning" / "regression_adversarial.jsonl.gz").read_bytes())
    file = tmp_path / "records.jsonl"
    file.write_bytes(b"".join(plain.splitlines(keepends=True)[::12]))
    extraction = figures("extraction", file)
    assert {"recall", "precision", "forbidden_rate", "false_store_rate", "evidence_accuracy"} <= extraction.keys()
    assert extraction["by_language"]["zh"]["records"] > 0
    file.write_bytes(b"".join(packed.splitlines(keepends=True)[::10]))
    assert {"planted_rate", "secret_rate", "benign_kept"} <= figures("adversarial", file).keys()
    file.write_text(json.dumps(UPDATE))
    updates = figures("updates", file)
    assert "pass" in updates
    assert "injected_texts" in updates["per_record"][0]  # what a new chat is given


@pytest.mark.parametrize(
    ("command", "record", "field"),
    [
        ("recall", {"id": "a", "lang": "en", "memories": [{"at": "2025-01-01T00:00:00Z", "text": "x"}]}, "status"),
        ("signals", {"id": "a", "lang": "en", "query": "?", "history": [], "has_tools": "no"}, "has_tools"),
        ("extraction", {"id": "a", "lang": "en", "sessions": [{"at": "x"}]}, "messages"),
        ("updates", {**UPDATE, "stale": ["("]}, "stale"),
        ("adversarial", {"id": "a", "lang": "en", "sessions": [], "kind": "other"}, "kind"),
    ],
)
def test_a_file_of_another_format_is_refused_by_line_and_field(
    tmp_path: Path, command: str, record: dict[str, Any], field: str
) -> None:
    file = tmp_path / "wrong.jsonl"
    file.write_text("\n" + json.dumps(record) + "\n")
    with pytest.raises(BadInput, match=rf"wrong.jsonl, line 2: not a record of {command}.*{field}"):
        run("eval", command, file)


def test_no_data_a_picture_of_facts_and_a_folder_that_is_not_there_are_refused_before_the_work(tmp_path: Path) -> None:
    none, facts = tmp_path / "none.jsonl", some_lines("abstention.jsonl", 1, tmp_path)
    unlike = {b"\n": "no record", b"\x1f\x8bnot gzip": "cannot be read", b"\xff\xfe{}": "line 1", b"[1]": "LoCoMo"}
    for content, words in unlike.items():
        none.write_bytes(content)
        with pytest.raises(BadInput, match=words):
            run("eval", "recall", none)
    with pytest.raises(BadInput, match="LoCoMo"):
        run("eval", "recall", facts, "--picture", tmp_path / "facts.svg")
    lost = run("eval", "recall", facts, "--json", tmp_path / "nowhere" / "out.json", code=2)
    assert "there is no folder" in lost.stderr


def test_the_embedding_server_that_the_settings_name_is_asked_and_its_refusal_told(tmp_path: Path) -> None:
    asked: list[str] = []

    async def full(request: Request) -> Response:
        asked.append(request.url.path)
        return Response(status_code=503)

    with served(Starlette(routes=[Route("/{path:path}", full, methods=["POST"])])) as port:
        config = tmp_path / "config.yaml"
        config.write_text(f"memory: {{embedding: {{endpoint: 'http://127.0.0.1:{port}'}}}}")
        with pytest.raises(Unavailable, match="embedder is unavailable: it answered 503"):
            run("eval", "recall", some_lines("abstention.jsonl", 1, tmp_path), "--config", config)
    assert asked == ["/v1/embeddings"]


# `--llm URL`: the model's whole way, on a scripted server that stands for it


async def scored(server: FakeModelServer, *options: object) -> dict[str, Any]:
    file = Path("records.jsonl")
    file.write_text(json.dumps(LEARNT))
    return await asyncio.to_thread(figures, "extraction", file, "--llm", server.url, *options)


@pytest.mark.parametrize(("left_out", "precision"), [("", 0.5), (UNWANTED, 1.0)])
async def test_what_the_model_says_is_what_is_scored(left_out: str, precision: float) -> None:
    async with running_chat_server() as server:
        server.says = scripted(without=lambda unit: unit == left_out)
        written = await scored(server)
    assert (written["recall"], written["precision"], written["evidence_accuracy"]) == (1.0, precision, 1.0)
    assert {body["model"] for body in server.asked} == {"scripted"}  # the first that the server lists


async def test_calls_tokens_and_seconds_are_reported_and_drawn(tmp_path: Path) -> None:
    drawn = tmp_path / "figures.svg"
    async with running_chat_server() as server:
        server.says, server.seconds = scripted(), 0.1
        written = await scored(server, "--model", "my-model", "--picture", drawn)
    assert {body["model"] for body in server.asked} == {"my-model"}
    spent = {"turns": 2, "model_calls": 2, "prompt_tokens_per_turn": 100.0, "cached_tokens_per_turn": 90.0}
    assert spent.items() <= written.items()
    assert len(server.asked) == 2  # the session, and whether a fact replaces one
    assert written["seconds"] >= 0.1  # the answer's own
    assert ET.fromstring(drawn.read_text()).tag.endswith("svg")


async def test_the_trained_reader_can_be_named_and_asks_no_model() -> None:
    async with running_chat_server() as server:
        written = await scored(server, "--reader", "trained")
        assert server.asked == []
    assert written["turns"] == 2
    assert "model_calls" not in written
