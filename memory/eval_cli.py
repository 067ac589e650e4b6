"""`memproxy eval`: scores memory on a file of records, with the code that a chat and the worker go through.

It reads arguments, shows how far it is, and writes what the evaluations found. It computes no figure of its own, and it
touches neither the store nor the turn log of a running product.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from memory.config import Settings, from_process
from memory.errors import BadInput
from memory.logs import log_to_stderr
from memory.terminal import config_option, print_figures

Result: TypeAlias = dict[str, Any]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Advance: TypeAlias = Callable[[int, int], None]
_Evaluation: TypeAlias = Callable[[Settings, Path, _Advance], Coroutine[None, None, Result]]


def _output(option: str, meaning: str) -> Callable[[_Function], _Function]:
    """An option that names a file to write; refused before minutes of work where it cannot be written."""
    kind = click.Path(dir_okay=False, writable=True, path_type=Path)
    return click.option(f"--{option}", f"{option}_path", type=kind, default=None, callback=_in_folder, help=meaning)


def _in_folder(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(path.parent)!r}")
    return path


def _scores(function: _Function) -> _Function:
    """What every evaluation takes."""
    for option in (
        config_option,
        _output("markdown", "Write the tables to this file."),
        _output("json", "Write every figure to this file."),
        click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)),
    ):
        function = option(function)
    return function


@click.group("eval")
def evaluate() -> None:
    """Score memory on a file of records: JSON Lines, plain or gzipped. Figures are shares, 1 is all."""


@evaluate.command()
@_scores
@_output("picture", "Draw recall against tokens to this SVG file; for LoCoMo's JSON.")
def recall(file: Path, picture_path: Path | None, **given: Path | None) -> None:
    """Which memories are picked for a message: a file of facts, or LoCoMo's own JSON of long talks."""
    from memory.evaluation.dataset import holds_talks  # here, as below: numpy and all adapters cost a second
    from memory.evaluation.report import picture

    if picture_path is not None and not holds_talks(file):
        raise BadInput(f"{file.name} holds facts: --picture is for LoCoMo's JSON, where recall grows with the tokens")
    result = _evaluated("recall", _recall, file, **given)
    if picture_path is not None:
        _write(picture_path, picture(result))


@evaluate.command()
@_scores
def signals(file: Path, **given: Path | None) -> None:
    """Whether memory is searched for the messages that want it, and for no others."""
    _evaluated("signals", _signals, file, **given)


@evaluate.command()
@_scores
def extraction(file: Path, **given: Path | None) -> None:
    """What is stored from a chat, and what is not."""
    _evaluated("extraction", _extraction, file, **given)


@evaluate.command()
@_scores
def updates(file: Path, **given: Path | None) -> None:
    """Whether changed facts replace old ones, look-alikes survive, and a new chat is told what holds now."""
    _evaluated("updates", _updates, file, **given)


@evaluate.command()
@_scores
def adversarial(file: Path, **given: Path | None) -> None:
    """Planted instructions and secrets, which must not be stored, and harmless look-alikes, which must."""
    _evaluated("adversarial", _adversarial, file, **given)


async def _recall(settings: Settings, file: Path, advance: _Advance) -> Result:
    from memory import app
    from memory.evaluation.dataset import holds_talks, read_recall, read_talks
    from memory.evaluation.recall import evaluate_recall

    _ = read_talks(file) if holds_talks(file) else read_recall(file)  # before the model takes its seconds to load
    async with app.open_embedder(settings) as embedder:
        return await evaluate_recall(file, embedder, progress=advance)


async def _signals(settings: Settings, file: Path, advance: _Advance) -> Result:
    from memory import app
    from memory.evaluation.signals import evaluate_signals, read_signals

    read_signals(file)  # likewise
    async with app.open_embedder(settings) as embedder:
        training = app.signal_training(settings, embedder)
        return await evaluate_signals(file, embedder, training=training, progress=advance)


async def _extraction(settings: Settings, file: Path, advance: _Advance) -> Result:
    from memory import app
    from memory.evaluation.extraction import evaluate_extraction

    return await evaluate_extraction(file, app.learner(settings), progress=advance)


async def _updates(settings: Settings, file: Path, advance: _Advance) -> Result:
    from memory import app
    from memory.evaluation.recall import search_facts
    from memory.evaluation.updates import evaluate_updates, read_updates

    read_updates(file)  # likewise
    async with app.open_embedder(settings) as embedder:
        search = partial(search_facts, embedder)
        return await evaluate_updates(file, app.learner(settings), search, progress=advance)


async def _adversarial(settings: Settings, file: Path, advance: _Advance) -> Result:
    from memory import app
    from memory.evaluation.adversarial import evaluate_adversarial

    return await evaluate_adversarial(file, app.learner(settings), progress=advance)


def _evaluated(
    name: str,
    evaluation: _Evaluation,
    file: Path,
    *,
    config: Path | None,
    json_path: Path | None,
    markdown_path: Path | None,
) -> Result:
    """Run with a bar on stderr, print the tables, and write what was asked for."""
    from memory.evaluation.report import markdown, tables

    settings = from_process(config, {})
    log_to_stderr(settings.log_format)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with ProgressBar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        result: Result = asyncio.run(evaluation(settings, file, advance))
    for head, rows in tables(result):
        print_figures(head, rows)
        click.echo()
    if json_path is not None:
        content: Mapping[str, Any] = {"evaluation": name, "file": file.name, **result}
        _write(json_path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    if markdown_path is not None:
        _write(markdown_path, markdown(result))
    return result


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {str(path)!r}: {error.strerror}") from error
