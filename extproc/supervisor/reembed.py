"""`memproxy reembed`: embeds all memories again with the configured model, while nothing else runs.

Claims the data directory like `up`, starts Milvus Lite if it holds the memories, shows progress, and prints the result.
`memory.service.reembedding` does the work.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text
from typer import echo

from extproc.supervisor import probes
from extproc.supervisor.locks_and_ports import CannotStart, data_directory, reserve_port, wait_for_lock
from extproc.supervisor.log_lines import LogLines, supervisor_logger
from extproc.supervisor.process_specs import LOOPBACK, ProcessSpec, milvus_spec
from extproc.supervisor.processes import ChildProcess
from memory.adapters.sqlite.owners import living
from memory.cli.output import print_json
from memory.cli.prepare import make_ready
from memory.processes import composition
from memory.runtime.logs import log_to_stderr
from memory.runtime.task_groups import unwrapped
from memory.service.reembedding import Estimate, Outcome
from memory.settings import Settings

MILVUS_START_SECONDS_MAX = 60.0
POLL_SECONDS = 0.1


class _Rate(ProgressColumn):
    """Memories per second, once known."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.0f}/s" if task.speed else "")


def reembed(settings: Settings, *, is_dry: bool, as_json: bool) -> None:
    """Raises `CannotStart` or `BadSetting` if it must not run, `Unavailable` if it has to be called again."""
    log_to_stderr(settings.log_format)
    make_ready(settings)
    with _claimed(_on_all_cores(settings), is_dry=is_dry) as (claimed, milvus):
        found = asyncio.run(_estimate(claimed, milvus)) if is_dry else asyncio.run(_run(claimed, milvus))
    _show(found, as_json=as_json)


def _on_all_cores(settings: Settings) -> Settings:
    """All cores may be used, since nobody chats meanwhile."""
    memory, threads = settings.memory, settings.memory.embedding.threads or len(os.sched_getaffinity(0))
    embedding = msgspec.structs.replace(memory.embedding, threads=threads)
    return msgspec.structs.replace(settings, memory=msgspec.structs.replace(memory, embedding=embedding))


@contextmanager
def _claimed(settings: Settings, *, is_dry: bool) -> Iterator[tuple[Settings, ProcessSpec | None]]:
    """The settings of this run, and Milvus Lite if it has to be started. A dry run may use that of a running `up`."""
    data = Path(settings.data_dir).absolute()
    here = msgspec.structs.replace(settings, data_dir=str(data))
    if not data.is_dir() and not here.store_uri:
        raise CannotStart(
            f"data_dir {data} does not exist, so nothing is stored in it. Name another one with --data-dir"
        )
    with ExitStack() as claims:
        try:
            claims.enter_context(data_directory(data))
            _refuse_company(here)
        except CannotStart:
            if not is_dry or not (here.store_uri or here.milvus_uri_file.is_file()):
                raise
            uri = here.store_uri or here.milvus_uri_file.read_text(encoding="ascii").strip()
            here = msgspec.structs.replace(here, milvus_uri=uri)
        if here.store_uri:
            yield here, None
            return
        port = int(claims.enter_context(reserve_port(LOOPBACK, 0, setting="milvus")).getsockname()[1])
        wait_for_lock(here.milvus_dir / "LOCK")
        here = msgspec.structs.replace(here, milvus_uri=f"http://{LOOPBACK}:{port}")
        yield here, milvus_spec(here, port)


def _refuse_company(settings: Settings) -> None:
    """Raises `CannotStart` while a part or a tool has the turn log open: what it writes would be lost."""
    log = settings.turn_log_path
    others = living(log.with_name(f"{log.name}.owners"))
    if others:
        raise CannotStart(
            f"{others} other processes of memproxy (filter, worker, API or a tool) use {settings.data_dir}: stop them "
            "first, or what they learn meanwhile is lost; then call this again to continue"
        )


async def _estimate(settings: Settings, milvus: ProcessSpec | None) -> Estimate:
    async with _running(milvus, settings), composition.open_reembedding(settings) as run:
        return await run.estimate()


async def _run(settings: Settings, milvus: ProcessSpec | None) -> Outcome:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
    )
    async with _running(milvus, settings), composition.open_reembedding(settings) as run:
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("memories", total=None, visible=False)

            def advance(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total, visible=True)

            return await run.run(advance=advance, check_alone=partial(_refuse_company, settings))


@asynccontextmanager
async def _running(milvus: ProcessSpec | None, settings: Settings) -> AsyncIterator[None]:
    """Milvus Lite, answering; stopped at the end, and killed with us as under `up`."""
    if milvus is None:
        yield
        return
    log = LogLines(
        os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), as_json=False
    )  # its output would interfere with the progress bar
    part = ChildProcess(milvus.command, log=log, logger=supervisor_logger(log, as_json=False), on_death=lambda *_: None)
    with unwrapped():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(part.keep_running())
            try:
                await _answers(settings.milvus_uri, part)
                yield
            finally:
                await part.stop()


async def _answers(uri: str, part: ChildProcess) -> None:
    try:
        async with asyncio.timeout(MILVUS_START_SECONDS_MAX):
            while not await probes.milvus_answers(uri):  # noqa: ASYNC110 - another process tells of no event
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        said = "\n".join(f"  {line}" for line in part.tail) or "  (it said nothing)"
        raise CannotStart(
            f"milvus does not answer after {MILVUS_START_SECONDS_MAX:.0f} s. Its last lines:\n{said}"
        ) from None


def _show(found: Estimate | Outcome, *, as_json: bool) -> None:
    status, wanted = found.status, found.wanted
    if as_json:
        print_json(
            {
                "is_dry_run": isinstance(found, Estimate),
                "memories": status.memories,
                "embedded_before": status.embedded,
                "had": None if status.origin is None else asdict(status.origin),
                "wanted": asdict(wanted),
                "is_needed": found.is_needed,
                **(
                    {"seconds_estimated": round(found.seconds, 1)}
                    if isinstance(found, Estimate)
                    else {"embedded": found.embedded, "seconds": round(found.seconds, 1)}
                ),
            }
        )
    elif not found.is_needed:
        held = f"all {status.memories} memories have" if status.origin else "no memory is stored that could have"
        echo(f"nothing to do: {held} vectors of {wanted}")
    elif isinstance(found, Estimate):
        left = status.memories - status.embedded
        echo(
            f"would embed {left} of {status.memories} memories again, in about {found.seconds:.0f} s: from "
            f"{status.origin} to {wanted}"
        )
    else:
        echo(
            f"embedded {found.embedded} of {status.memories} memories again in {found.seconds:.0f} s: from "
            f"{status.origin} to {wanted}"
        )


__all__ = ["reembed"]
