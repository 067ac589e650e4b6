"""`memproxy eval` as a user starts it: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import pytest
from drawn_lines import drawn_lines
from eval_command import evaluated

from extproc.cli import main
from memory.adapters.evaluation_reports import FolderOfReports
from memory.model.evaluation_reports import EvaluationReport
from memory.runtime import logs

DATA = Path(__file__).parents[2] / "data"
Run = Callable[..., subprocess.CompletedProcess[str]]
Refused = Callable[..., tuple[object, str]]

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One working directory for all runs."""
    return tmp_path_factory.mktemp("eval")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return partial(evaluated, folder)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """The command in this process, for what ends before there is any work: its exit code, and what it says."""

    def run_here(*arguments: object) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", ["memproxy", "eval", *map(str, arguments)])
        monkeypatch.setattr(logs, "log_to_stderr", lambda *_: None)  # it is for a process as a whole
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr().err

    return run_here


def some_lines(name: str, count: int, into: Path) -> Path:
    path = into / f"few-{name}"
    path.write_text("".join((DATA / name).read_text().splitlines(keepends=True)[:count]))
    return path


def figures(run: Run, command: str, file: Path, folder: Path) -> dict[str, Any]:
    """What `--json` wrote."""
    out = folder / f"{command}.json"
    done = run(command, file, "--json", out)
    assert done.returncode == 0, done.stderr
    written: dict[str, Any] = json.loads(out.read_text())
    return written


def test_signals_are_decided_as_in_a_chat_without_a_running_product(tmp_path: Path) -> None:
    out = tmp_path / "signals.json"
    done = evaluated(tmp_path, "signals", some_lines("signals.jsonl", 6, tmp_path), "--json", out)
    assert done.returncode == 0, done.stderr
    written = json.loads(out.read_text())
    assert written["evaluation"] == "signals"
    assert written["records"] == 6
    named = {"accuracy", "false_negative_rate", "false_positive_rate"}
    for group in (written, *written["by_language"].values(), *written["by_label"].values()):
        assert named <= group.keys()
    assert written["accuracy"] >= 0.83  # five of the six
    [head, first, *_] = done.stdout.splitlines()
    assert head.split()[:3] == ["group", "records", "accuracy"]
    assert first.split()[:3] == ["all", "6", f"{written['accuracy']:.3f}"]
    assert "6/6" in done.stderr  # the bar never mixes with the table
    assert "━" not in done.stdout


def test_facts_may_be_gzipped_and_give_the_figures_by_language_and_tag(run: Run, folder: Path, tmp_path: Path) -> None:
    packed = tmp_path / "few.jsonl.gz"
    packed.write_bytes(gzip.compress(some_lines("abstention.jsonl", 3, tmp_path).read_bytes()))
    markdown = tmp_path / "few.md"
    out = tmp_path / "few.json"
    done = run("recall", packed, "--json", out, "--markdown", markdown)
    assert done.returncode == 0, done.stderr
    written = json.loads(out.read_text())
    named = {"recall@3", "recall@5", "recall@8", "precision", "mrr", "abstention", "superseded_leak"}
    for group in (written["all"], *written["by_language"].values(), *written["by_tag"].values()):
        assert named <= group.keys()
    assert written["all"]["records"] == 3
    assert "| superseded leak |" in markdown.read_text()


def test_a_report_is_kept_for_the_operator_page_under_its_name(run: Run, tmp_path: Path) -> None:
    few, config, reports = some_lines("abstention.jsonl", 3, tmp_path), tmp_path / "memproxy.yaml", tmp_path / "kept"
    config.write_text(json.dumps({"reports_dir": str(reports)}))
    for named in (("--report-name", "before-the-change"), ("--report",)):
        done = run("recall", few, "--config", config, *named)
        assert done.returncode == 0, done.stderr
    older, newer = asyncio.run(kept_in(reports))[::-1]
    assert older.head.name == "before-the-change"
    assert re.fullmatch(r"recall-\d{8}-\d{6}", newer.head.name)
    assert f"kept as report {newer.head.name}" in done.stderr
    assert (newer.head.evaluation, newer.head.file, newer.head.version) == ("recall", few.name, version("memproxy"))
    [table, *_] = newer.tables
    assert (table.columns[0], table.rows[0][0]) == ("group", "all")
    assert newer.tables == older.tables
    refused = run("recall", few, "--config", config, "--report-name", "../elsewhere")
    assert refused.returncode == 2
    assert "a report's name" in refused.stderr


async def kept_in(folder: Path) -> list[EvaluationReport]:
    """Newest first."""
    reports = FolderOfReports(folder)
    found = [await reports.get(head.name) for head in (await reports.page(limit=10)).heads]
    return [one for one in found if one is not None]


def test_a_ranking_of_one_s_own_is_scored_as_the_configuration_says(run: Run, folder: Path, tmp_path: Path) -> None:
    few, config, out = some_lines("abstention.jsonl", 6, tmp_path), tmp_path / "memproxy.yaml", tmp_path / "out.json"
    config.write_text("memory: {ranking: {bar: {even: 20}}}")
    done = run("recall", few, "--config", config, "--json", out)
    assert done.returncode == 0, done.stderr
    assert not any(record["returned"] for record in json.loads(out.read_text())["records"])
    usual = figures(run, "recall", few, folder)
    assert any(record["returned"] for record in usual["records"])


def test_talks_are_known_by_their_shape_and_drawn(run: Run, tmp_path: Path) -> None:
    talks, drawn = tmp_path / "talks.json", tmp_path / "talks.svg"
    talks.write_text(json.dumps([TALK]))
    done = run("recall", talks, "--picture", drawn)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines() if line.startswith("memproxy")] == ["memproxy"]
    assert len(drawn_lines(drawn.read_text())) == 6


def test_learning_is_scored_by_the_figures_that_its_formats_name(run: Run, folder: Path) -> None:
    extraction = figures(run, "extraction", DATA / "learning" / "regression_extraction.jsonl", folder)
    assert {"recall", "precision", "forbidden_rate", "false_store_rate", "evidence_accuracy"} <= extraction.keys()
    assert extraction["by_language"]["zh"]["records"] > 0
    adversarial = figures(run, "adversarial", DATA / "learning" / "regression_adversarial.jsonl.gz", folder)
    assert {"planted_rate", "secret_rate", "benign_kept"} <= adversarial.keys()


def test_a_new_chat_after_a_change_is_given_what_the_ranking_finds(run: Run, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "updates.jsonl"
    file.write_text(json.dumps(UPDATE))
    written = figures(run, "updates", file, folder)
    assert written["pass"] == 1.0
    assert all("York" in text for text in written["per_record"][0]["injected_texts"])


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
    refused: Refused, tmp_path: Path, command: str, record: dict[str, Any], field: str
) -> None:
    file = tmp_path / "wrong.jsonl"
    file.write_text("\n" + json.dumps(record) + "\n")
    code, said = refused(command, file)
    assert code == 2
    assert f"wrong.jsonl, line 2: not a record of {command}" in said
    assert field in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\n", "holds no record"),
        (b"\x1f\x8bnot gzip", "cannot be read"),
        (b"\xff\xfe{}", "line 1"),
        (b"[1]", "LoCoMo"),
    ],
)
def test_what_is_no_data_at_all_is_refused(refused: Refused, tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "none.jsonl"
    file.write_bytes(content)
    code, said = refused("recall", file)
    assert code == 2
    assert words in said
    assert "Traceback" not in said


def test_a_picture_of_facts_and_a_folder_that_is_not_there_are_refused_before_the_work(
    run: Run, refused: Refused, tmp_path: Path
) -> None:
    facts = some_lines("abstention.jsonl", 1, tmp_path)
    code, said = refused("recall", facts, "--picture", tmp_path / "facts.svg")
    assert (code, "LoCoMo" in said) == (2, True)
    lost = run("recall", facts, "--json", tmp_path / "nowhere" / "out.json")  # in a process of its own, for once
    assert (lost.returncode, "there is no folder" in lost.stderr, "Traceback" in lost.stderr) == (2, True, False)


class _Full(BaseHTTPRequestHandler):
    """An embedding server that has no room, and remembers what it was asked."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.asked.append(self.path)
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(503)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Stay silent."""


def test_the_embedding_server_that_the_settings_name_is_asked_and_its_refusal_told(tmp_path: Path) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Full)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        config = tmp_path / "config.yaml"
        config.write_text(f"memory: {{embedding: {{endpoint: 'http://127.0.0.1:{server.server_port}'}}}}")
        done = evaluated(tmp_path, "recall", some_lines("abstention.jsonl", 1, tmp_path), "--config", config)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert _Full.asked == ["/v1/embeddings"]
    assert done.returncode == 1
    assert "embedder is unavailable: it answered 503" in done.stderr
    assert "Traceback" not in done.stderr
