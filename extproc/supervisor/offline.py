"""A command that rewrites all memories while nothing else runs.

Claims the data directory like `up`, and starts Milvus Lite if that holds the memories.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import msgspec

from extproc.supervisor import probes
from extproc.supervisor.locks_and_ports import CannotStart, data_directory, run_folder, wait_for_lock
from extproc.supervisor.log_lines import LogLines, supervisor_logger
from extproc.supervisor.process_specs import ProcessSpec, milvus_spec, own_store_uri
from extproc.supervisor.processes import ChildProcess
from memory.cli.output import progress_bar
from memory.cli.prepare import make_ready
from memory.ports import Outdated
from memory.processes.state_parts import processes_on
from memory.runtime.logs import log_to_stderr
from memory.runtime.task_groups import unwrapped
from memory.service.reembedding import Migrate, Switch
from memory.settings import Settings

MILVUS_START_SECONDS_MAX = 60.0
POLL_SECONDS = 0.1

# What an outdated collection has.
OUTDATED: Mapping[Outdated, str] = {
    Outdated.SCHEMA: "a schema of an earlier release",
    Outdated.INDEX: "an index that is made for fewer memories",
}


@contextmanager
def claimed(settings: Settings, *, is_dry: bool) -> Iterator[tuple[Settings, ProcessSpec | None]]:
    """The settings of this run, and Milvus Lite if it has to be started. A dry run may use that of a running `up`.

    Opens the log, and makes models ready.
    """
    log_to_stderr(settings.log_format)
    make_ready(settings)
    data = Path(settings.data_dir).absolute()
    here = msgspec.structs.replace(settings, data_dir=str(data))
    if not data.is_dir() and not here.store_uri:
        raise CannotStart(
            f"data_dir {data} does not exist, so nothing is stored in it. Name another one with --data-dir"
        )
    with ExitStack() as claims:
        try:
            claims.enter_context(data_directory(data))
            refuse_company(here)
        except CannotStart:
            if not is_dry or not (here.store_uri or here.milvus_uri_file.is_file()):
                raise
            uri = here.store_uri or here.milvus_uri_file.read_text(encoding="ascii").strip()
            here = msgspec.structs.replace(here, milvus_uri=uri)
        if here.store_uri:
            yield here, None
            return
        folder = claims.enter_context(run_folder())
        wait_for_lock(here.milvus_dir / "LOCK")
        here = msgspec.structs.replace(here, milvus_uri=own_store_uri(folder / "milvus.sock", None))
        yield here, milvus_spec(here)


def refuse_company(settings: Settings) -> None:
    """`assert_alone` for a caller without a running loop."""
    asyncio.run(assert_alone(settings))


async def assert_alone(settings: Settings) -> None:
    """Raises `CannotStart` while a part or a tool has the turn log open: what it writes would be lost."""
    others = await processes_on(settings)
    if others:
        raise CannotStart(
            f"{others} other processes of memproxy (filter, worker, API or a tool) use "
            f"{settings.database_url or settings.data_dir}: stop them first, or what they learn meanwhile is lost; "
            "then call this again to continue"
        )


async def switched(
    settings: Settings,
    milvus: ProcessSpec | None,
    opening: Callable[[Settings], AbstractAsyncContextManager[Migrate]],
    *,
    is_dry: bool,
) -> Switch:
    """Copies all memories into another collection, or says what that would do. Raises `Unavailable`."""
    async with running(milvus, settings), opening(settings) as run:
        if is_dry:
            return await run.estimate()
        with progress_bar("memories") as advance:
            return await run.run(advance=advance, check_alone=partial(assert_alone, settings))


@asynccontextmanager
async def running(milvus: ProcessSpec | None, settings: Settings) -> AsyncIterator[None]:
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
