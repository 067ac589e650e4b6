"""The commands that rewrite what is stored while nothing else runs: `reembed`, `migrate` and `compact`.

They claim the data directory like `up`, and start Milvus Lite if that holds the memories. `memory.service.reembedding`
and `memory.processes.erasure_parts` do the work. Each command raises `CannotStart` or `BadSetting` if it must not run,
and `Unavailable` if it has to be called again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import msgspec
from typer import echo

from extproc.supervisor import probes
from extproc.supervisor.locks_and_ports import CannotStart, data_directory, run_folder, wait_for_lock
from extproc.supervisor.log_lines import LogLines, supervisor_logger
from extproc.supervisor.process_specs import ProcessSpec, milvus_spec, own_store_uri
from extproc.supervisor.processes import ChildProcess
from memory.adapters.sql.migrations import VERSION
from memory.adapters.sql.sqlite_compacting import FileSizes, sizes_of
from memory.adapters.sql.sqlite_compacting import compact as rewritten_file
from memory.cli.output import print_json, progress_bar
from memory.cli.prepare import make_ready
from memory.ports import Outdated
from memory.processes.composition import open_migration, open_reembedding
from memory.processes.erasure_parts import end_erasures, rewrite_store, waiting_erasures
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
    # its output would interfere with the progress bar
    log = LogLines(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), as_json=False)
    part = ChildProcess(milvus, log=log, logger=supervisor_logger(log, as_json=False), on_death=lambda *_: None)
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
        raise CannotStart(f"milvus does not answer after {MILVUS_START_SECONDS_MAX:.0f} s. {part.last_words}") from None


# Reembed


def reembed(settings: Settings, *, is_dry: bool, as_json: bool) -> None:
    with claimed(_on_all_cores(settings), is_dry=is_dry) as (here, milvus):
        found = asyncio.run(switched(here, milvus, open_reembedding, is_dry=is_dry))
    _show_reembedded(found, is_dry=is_dry, as_json=as_json)


def _on_all_cores(settings: Settings) -> Settings:
    """All may be used, since nobody chats meanwhile."""
    memory, threads = settings.memory, settings.memory.embedding.threads or len(os.sched_getaffinity(0))
    embedding = msgspec.structs.replace(memory.embedding, threads=threads)
    return msgspec.structs.replace(settings, memory=msgspec.structs.replace(memory, embedding=embedding))


def _show_reembedded(found: Switch, *, is_dry: bool, as_json: bool) -> None:
    status, wanted = found.status, found.wanted
    if as_json:
        print_json(
            {
                "is_dry_run": is_dry,
                "memories": status.memories,
                "embedded_before": status.embedded,
                "had": None if status.origin is None else asdict(status.origin),
                "wanted": asdict(wanted),
                "is_needed": found.is_needed,
                "migrate_is_needed": status.outdated is not None and not found.is_needed,
                **(
                    {"seconds_estimated": round(found.seconds, 1)}
                    if is_dry
                    else {"embedded": found.copied, "seconds": round(found.seconds, 1)}
                ),
            }
        )
    elif not found.is_needed and status.outdated:
        echo(f"nothing to embed again: all {status.memories} memories have vectors of {wanted}")
        echo(f"the collection has {OUTDATED[status.outdated]}: run `memproxy migrate`")
    elif not found.is_needed:
        held = f"all {status.memories} memories have" if status.origin else "no memory is stored that could have"
        echo(f"nothing to do: {held} vectors of {wanted}")
    else:
        left = status.memories - status.embedded
        done, about = (f"would embed {left}", ", in about") if is_dry else (f"embedded {found.copied}", " in")
        took = f"{about} {found.seconds:.0f} s"
        echo(f"{done} of {status.memories} memories again{took}: from {status.origin} to {wanted}")


# Migrate


def migrate(settings: Settings, *, is_dry: bool, as_json: bool) -> None:
    with claimed(settings, is_dry=is_dry) as (here, milvus):
        version = None
        if settings.database_url:  # a file of SQLite is migrated by whoever opens it
            from memory.processes.postgres_state import migrate_tables

            version = migrate_tables(settings, is_dry=is_dry)
            if not as_json:
                _show_tables(version, is_dry=is_dry)
        found = asyncio.run(switched(here, milvus, open_migration, is_dry=is_dry))
    _show_migrated(found, version, is_dry=is_dry, as_json=as_json)


def _show_tables(version: int, *, is_dry: bool) -> None:
    if version == VERSION:
        echo(f"nothing to do: the tables on PostgreSQL have version {VERSION}")
    else:
        done = "would bring" if is_dry else "brought"
        echo(f"{done} the tables on PostgreSQL from version {version or 'none'} to version {VERSION}")


def _show_migrated(found: Switch, version: int | None, *, is_dry: bool, as_json: bool) -> None:
    """`version`: that the tables on PostgreSQL had."""
    status = found.status
    if as_json:
        print_json(
            {
                "is_dry_run": is_dry,
                "tables_version_before": version,
                "is_needed": found.is_needed,
                "reason": status.outdated,
                "memories": status.memories,
                "copied_before": status.embedded,
                **({} if is_dry else {"copied": found.copied, "seconds": round(found.seconds, 1)}),
            }
        )
    elif status.origin is None:
        echo("nothing to do: the collection does not exist yet")
    elif status.outdated is None:
        echo("nothing to do: the collection has the present schema and an index for its size")
        if not status.origin.agrees_with(found.wanted):
            echo(f"its vectors are those of {status.origin}, the settings make {found.wanted}: run `memproxy reembed`")
    elif is_dry:
        what = f"{status.memories - status.embedded} of {status.memories} memories"
        echo(f"would copy {what} into a new collection; this one has {OUTDATED[status.outdated]}")
    else:
        echo(
            f"copied {found.copied} of {status.memories} memories into a new collection in {found.seconds:.0f} s; "
            f"the old one had {OUTDATED[status.outdated]}"
        )


# Compact


@dataclass(frozen=True, slots=True)
class Compaction:
    """`sizes`: of turns.sqlite, or of the tables; None if there is none. `erasures`: how many waited for it."""

    sizes: FileSizes | None
    erasures: int


def compact(settings: Settings, *, is_dry: bool, as_json: bool) -> None:
    with claimed(settings, is_dry=False) as (here, milvus):
        found = _compacted(here, milvus, is_dry=is_dry)
    _show_compacted(found, "tables" if settings.database_url else "turns_sqlite", is_dry=is_dry, as_json=as_json)


def _compacted(settings: Settings, milvus: ProcessSpec | None, *, is_dry: bool) -> Compaction:
    if not settings.database_url and not settings.turn_log_path.exists():
        return Compaction(None, 0)
    waiting = asyncio.run(waiting_erasures(settings))
    if waiting and not is_dry:
        asyncio.run(_rewrite_store(settings, milvus))
    sizes = _log_compacted(settings, is_dry=is_dry)
    if waiting and not is_dry:
        asyncio.run(end_erasures(settings, waiting))
    return Compaction(sizes, len(waiting))


def _log_compacted(settings: Settings, *, is_dry: bool) -> FileSizes:
    if settings.database_url:
        from memory.processes.postgres_state import compact_tables, sizes_of_tables

        sizes, run = partial(sizes_of_tables, settings), partial(compact_tables, settings)
    else:
        sizes = partial(sizes_of, settings.turn_log_path)
        run = partial(rewritten_file, settings.turn_log_path, check_alone=partial(refuse_company, settings))
    if is_dry:
        return sizes()
    with progress_bar("MiB") as advance:
        return run(advance=advance)


async def _rewrite_store(settings: Settings, milvus: ProcessSpec | None) -> None:
    async with running(milvus, settings):
        await rewrite_store(settings)


def _show_compacted(found: Compaction, what: str, *, is_dry: bool, as_json: bool) -> None:
    if as_json:
        sizes = None if found.sizes is None else asdict(found.sizes)
        print_json({"is_dry_run": is_dry, f"{what}_bytes": sizes, "erasures": found.erasures})
    elif found.sizes is None:
        echo("nothing to do: there is no turn log yet")
    else:
        before, after = (f"{size / (1 << 20):.1f} MiB" for size in (found.sizes.before, found.sizes.after))
        done, most = ("would write", "at most ") if is_dry else ("wrote", "")
        named = "the tables" if what == "tables" else "turns.sqlite"
        echo(f"{done} {named} anew, from {before} to {most}{after}; erasures that waited for it: {found.erasures}")
