"""`memproxy eval`: scores memory on a file of records, with the code that chats and the worker use.

Parses arguments, shows progress, and writes the results. It computes no figures itself, and touches neither the store
nor the turn log of a running product; only `holdout` reads that.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
from typer import Argument, BadParameter, Option, echo

from memory.cli.options import ConfigOption, JsonOption, command, group
from memory.cli.output import print_json, print_table, progress_bar
from memory.errors import BadInput
from memory.settings import ExternalModel, ModelEndpoint, Settings
from memory.settings.loader import from_process

Result: TypeAlias = dict[str, Any]
_Advance: TypeAlias = Callable[[int, int], None]
_Evaluation: TypeAlias = Callable[[Settings, Path, _Advance], Coroutine[None, None, Result]]
_Scoring: TypeAlias = tuple[Callable[[Path], Sequence[Any]], Callable[..., Coroutine[None, None, Result]]]
"""A file → records; records, a sandbox, and `progress` → figures."""

DAY = 86_400.0
FIGURE_LABELS = {
    "corrected": "conversations with a correction",
    "repeated_facts": "conversations that repeat a known fact",
    "follow_ups": "follow-ups per conversation",
    "turns": "turns per conversation",
    "answer_tokens": "tokens per answer (estimated)",
    "note_tokens": "tokens per note",
}
LISTING_SECONDS = 10.0
ANSWER_SECONDS = 120.0  # of one answer: evaluations also run on slow machines
ANSWER_TOKENS = 1_500
STANDARD_OUTPUT = Path("-")
_PORTS = {"http": 80, "https": 443}


def _in_folder(path: Path | None) -> Path | None:
    """Refuses, before minutes of work, what cannot be written."""
    if path is not None and not path.absolute().parent.is_dir():
        raise BadParameter(f"there is no folder {str(path.parent)!r}")
    return path


def _asked_server(url: str | None) -> str | None:
    if not url:
        return url
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/") not in ("", "v1"):
        raise BadParameter("expected http://HOST:PORT, with or without /v1")
    return url


def _output(option: str, meaning: str) -> Any:  # noqa: ANN401 - what typer's own function gives
    return Option(option, dir_okay=False, writable=True, callback=_in_folder, help=meaning)


RecordsFile: TypeAlias = Annotated[
    Path, Argument(exists=True, dir_okay=False, readable=True, help="Records; docs/evaluate.md describes the formats.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions:
    json_path: Annotated[
        Path | None, _output("--json", "Write every figure to this file; - prints them instead of the tables.")
    ] = None
    markdown_path: Annotated[Path | None, _output("--markdown", "Write the tables to this file.")] = None
    is_kept: Annotated[bool, Option("--report", help="Keep the tables as a report for the operator's page.")] = False
    report_name: Annotated[
        str | None,
        Option(metavar="NAME", help="The report's name, with --report; otherwise the evaluation and the time."),
    ] = None
    config: ConfigOption = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningOptions:
    picture_path: Annotated[Path | None, _output("--picture", "Draw the figures to this SVG file.")] = None
    llm: Annotated[
        str | None, Option(callback=_asked_server, metavar="URL", help="OpenAI-compatible server to ask.")
    ] = None
    model: Annotated[str, Option(help="What the server calls it; otherwise the first that it lists.")] = ""
    reader: Annotated[
        Literal["model", "trained"] | None, Option(help="Who reads; the model where --llm names one.")
    ] = None

    async def applied(self, settings: Settings) -> Settings:
        """The settings with that reader and model. Raises `Unavailable` if none is named and the server lists none."""
        reader = self.reader or ("model" if self.llm else "trained")
        learn = msgspec.structs.replace(settings.memory.learn, reader=reader)
        settings = msgspec.structs.replace(settings, memory=msgspec.structs.replace(settings.memory, learn=learn))
        if not self.llm:
            return settings
        from memory.adapters.models.upstream_models import first_model

        parts = urlsplit(self.llm)
        endpoint = ModelEndpoint(address=f"{parts.scheme}://{parts.hostname}", port=parts.port or _PORTS[parts.scheme])
        model = ExternalModel(
            model_role="memory_extraction",
            llm_endpoint=endpoint,
            llm_model_name=self.model or await first_model(self.llm, seconds=LISTING_SECONDS),
            llm_provider="openai",
            llm_timeout_seconds=ANSWER_SECONDS,
            max_tokens=ANSWER_TOKENS,
            temperature=0.0,  # for reproducible figures
        )
        return msgspec.structs.replace(settings, external_models=(model,))


evaluate = group(
    """Score memory on a file of records: JSON Lines or a data set's own JSON, plain or gzipped.

    Figures are shares, 1 is all.
    """
)


@command(evaluate)
def recall(
    file: RecordsFile,
    options: EvaluationOptions,
    *,
    picture_path: Annotated[
        Path | None, _output("--picture", "Draw recall against tokens to this SVG file; for LoCoMo's JSON.")
    ] = None,
) -> None:
    """Which memories are picked for a message: a file of facts, or LoCoMo's own JSON of long talks."""
    from memory.evaluation.dataset import holds_talks  # imported here, as below: numpy and all adapters take a second

    if picture_path is not None and not holds_talks(file):
        raise BadInput(f"{file.name} holds facts: --picture is for LoCoMo's JSON, where recall grows with the tokens")
    result = _evaluated("recall", _recall, file, options)
    if picture_path is not None:
        from memory.evaluation.pictures import recall_by_tokens

        _write(picture_path, recall_by_tokens(result))


@command(evaluate)
def signals(file: RecordsFile, options: EvaluationOptions) -> None:
    """Whether memory is searched for the messages that want it, and for no others."""
    _evaluated("signals", _signals, file, options)


@command(evaluate)
def extraction(file: RecordsFile, options: EvaluationOptions, learning: LearningOptions) -> None:
    """What is stored from a chat, and what is not."""
    from memory.evaluation.extraction import evaluate_extraction, read_extraction

    _learnt("extraction", (read_extraction, evaluate_extraction), file, options, learning)


@command(evaluate)
def updates(file: RecordsFile, options: EvaluationOptions, learning: LearningOptions) -> None:
    """Whether changed facts replace old ones, look-alikes survive, and a new chat is told what holds now."""
    from memory.evaluation.updates import evaluate_updates, read_updates

    _learnt("updates", (read_updates, evaluate_updates), file, options, learning)


@command(evaluate)
def adversarial(file: RecordsFile, options: EvaluationOptions, learning: LearningOptions) -> None:
    """Planted instructions and secrets, which must not be stored, and harmless look-alikes, which must."""
    from memory.evaluation.adversarial import evaluate_adversarial, read_adversarial

    _learnt("adversarial", (read_adversarial, evaluate_adversarial), file, options, learning)


@command(evaluate)
def messages(
    file: RecordsFile,
    options: EvaluationOptions,
    learning: LearningOptions,
    *,
    labels: Annotated[
        Path | None,
        Option(exists=True, dir_okay=False, readable=True, help="The facts of the messages, where not in FILE."),
    ] = None,
) -> None:
    """What single messages leave behind: junk where nothing lasting is said, and how much of what is lasting."""
    from memory.evaluation.messages import evaluate_messages, read_messages

    _learnt("messages", (partial(read_messages, labels=labels), evaluate_messages), file, options, learning)


@command(evaluate)
def history(
    file: RecordsFile,
    options: EvaluationOptions,
    learning: LearningOptions,
    *,
    limit: Annotated[int | None, Option(min=1, help="So many questions, spread over the file.")] = None,
    types: Annotated[str, Option(metavar="A,B", help="Only questions of these types.")] = "",
) -> None:
    """Long histories of chats, learnt, and a question about each: LongMemEval's JSON."""
    from memory.adapters.models.packaged_encoder import sentence_pieces
    from memory.adapters.models.sentence_pieces import sentence_piece_tokens
    from memory.evaluation.history import evaluate_history, read_history

    named = {name for one in types.split(",") if (name := one.strip())}
    read = partial(read_history, limit=limit, types=named)
    tokens = sentence_piece_tokens(sentence_pieces(from_process(options.config, {}).models_path))
    _learnt("history", (read, partial(evaluate_history, tokens=tokens)), file, options, learning)


def _learnt(name: str, scoring: _Scoring, file: Path, options: EvaluationOptions, learning: LearningOptions) -> None:
    result = _evaluated(name, partial(_learning, scoring, learning), file, options)
    if learning.picture_path is not None:
        from memory.evaluation.pictures import shares_by_language

        _write(learning.picture_path, shares_by_language(name, result))


async def _learning(
    scoring: _Scoring, asked: LearningOptions, settings: Settings, file: Path, advance: _Advance
) -> Result:
    """The figures of learning, and the cost of its model calls, if any."""
    from prometheus_client import CollectorRegistry

    from memory.evaluation.costs import costs
    from memory.processes import composition
    from memory.processes.reader_parts import open_readers
    from memory.processes.sandbox import open_sandbox
    from memory.runtime.metrics import Metrics

    read, evaluate = scoring
    records = read(file)  # before the model takes seconds to load
    metrics = Metrics(CollectorRegistry())
    chosen = await asked.applied(settings)
    async with (
        open_readers(chosen, metrics) as readers,
        composition.open_embedder(chosen) as embedder,
        open_sandbox(chosen, readers, embedder=embedder, metrics=metrics) as sandbox,
    ):
        began = time.monotonic()
        result = await evaluate(records, sandbox, progress=advance)
        return {**result, **costs(metrics.registry, turns=result["turns"], seconds=time.monotonic() - began)}


async def _recall(settings: Settings, file: Path, advance: _Advance) -> Result:
    from memory.evaluation.dataset import holds_talks, read_recall, read_talks
    from memory.evaluation.recall import evaluate_recall
    from memory.processes import composition
    from memory.processes.from_settings import ranking_weights

    _ = read_talks(file) if holds_talks(file) else read_recall(file)  # before the model takes seconds to load
    async with composition.open_embedder(settings) as embedder:
        return await evaluate_recall(file, embedder, ranking=ranking_weights(settings), progress=advance)


async def _signals(settings: Settings, file: Path, advance: _Advance) -> Result:
    from memory.evaluation.signals import evaluate_signals, read_signals
    from memory.processes import composition

    read_signals(file)  # likewise
    async with composition.open_embedder(settings) as embedder:
        training = composition.signal_training(settings, embedder)
        return await evaluate_signals(file, embedder, training=training, progress=advance)


def _evaluated(name: str, evaluation: _Evaluation, file: Path, options: EvaluationOptions) -> Result:
    """Run with a progress bar on stderr, print the tables, and write the requested files."""
    from memory.evaluation.report import markdown, tables
    from memory.runtime.logs import log_to_stderr

    settings = from_process(options.config, {})
    log_to_stderr(settings.log_format)
    with progress_bar(name) as advance:
        result: Result = asyncio.run(evaluation(settings, file, advance))
    content: Mapping[str, Any] = {"evaluation": name, "file": file.name, **result}
    if options.json_path == STANDARD_OUTPUT:
        print_json(content)
    else:
        for head, rows in tables(result):
            print_table(head, rows, is_right=True)
            echo()
        if options.json_path is not None:
            _write(options.json_path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    if options.markdown_path is not None:
        _write(options.markdown_path, markdown(result))
    if options.is_kept or options.report_name:
        from memory.processes.sandbox import kept_report

        kept = asyncio.run(kept_report(settings, name, file, tables(result), named=options.report_name or ""))
        echo(f"kept as report {kept}", err=True)
    return result


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {str(path)!r}: {error.strerror}") from error


# What notes changed, from the record of a deployment in which conversations are held out


@command(evaluate)
def holdout(
    *,
    days: Annotated[float, Option(help="Only turns of the last days.")] = 30.0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Compare conversations that got notes with those that memory.holdout.share kept without.

    Reads stored turns and receipts, and changes nothing. Intervals are of 95 %; a difference is held out minus noted.
    """
    report = asyncio.run(_holdout_report(from_process(config, {}), days=days))
    if as_json:
        print_json(report)
        return
    arms = ("noted", "held_out", "difference")
    counts = [(name, *(report[arm][name] for arm in arms[:2]), "") for name in ("conversations", "questions")]
    figures = [(label, *(_shown(report[arm][name]) for arm in arms)) for name, label in FIGURE_LABELS.items()]
    print_table(("", "noted", "held out", "difference"), [*counts, *figures], is_right=True)
    if report["mixed"]:
        echo(f"{report['mixed']} conversations with both arms are left out.", err=True)


async def _holdout_report(settings: Settings, *, days: float) -> dict[str, Any]:
    from memory.evaluation.holdout import holdout_report  # imported here, as in all commands: `--help` must not wait
    from memory.processes.composition import SYSTEM_CLOCK
    from memory.processes.state_parts import open_holdouts

    async with open_holdouts(settings) as record:
        return holdout_report([turn async for turn in record.turns(since=SYSTEM_CLOCK() - days * DAY)])


def _shown(estimate: dict[str, float | None]) -> str:
    if estimate["value"] is None:
        return "-"
    if estimate["low"] is None:
        return f"{estimate['value']:.2f}"
    return f"{estimate['value']:.2f} [{estimate['low']:.2f}, {estimate['high']:.2f}]"
