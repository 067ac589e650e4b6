"""`memproxy compact`: writes all files anew that hold bytes of deleted rows, while nothing else runs.

`offline` makes sure that nothing else runs; `memory.processes.offline_rewriting` does the work.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from functools import partial

from typer import echo

from extproc.supervisor.offline import claimed, refuse_company, running
from extproc.supervisor.process_specs import ProcessSpec
from memory.adapters.sql.sqlite_compacting import FileSizes, sizes_of
from memory.adapters.sql.sqlite_compacting import compact as rewritten_file
from memory.cli.output import print_json, progress_bar
from memory.errors import BadSetting
from memory.processes.offline_rewriting import end_erasures, rewrite_store, waiting_erasures
from memory.settings import Settings


@dataclass(frozen=True, slots=True)
class Compaction:
    """`sizes`: of turns.sqlite; None if there is none. `erasures`: how many waited for their files."""

    sizes: FileSizes | None
    erasures: int


def compact(settings: Settings, *, is_dry: bool, as_json: bool) -> None:
    """Raises `CannotStart` or `BadSetting` if it must not run, `Unavailable` if it has to be called again."""
    if settings.database_url:
        raise BadSetting(
            "database_url: there is no turns.sqlite to compact; after an erasure the workers write the tables on "
            "PostgreSQL and Milvus Lite's files anew, while memproxy runs"
        )
    with claimed(settings, is_dry=False) as (here, milvus):
        found = _estimate(here) if is_dry else _run(here, milvus)
    _show(found, is_dry=is_dry, as_json=as_json)


def _estimate(settings: Settings) -> Compaction:
    if not settings.turn_log_path.exists():
        return Compaction(None, 0)
    waiting = asyncio.run(waiting_erasures(settings))
    return Compaction(sizes_of(settings.turn_log_path), len(waiting))


def _run(settings: Settings, milvus: ProcessSpec | None) -> Compaction:
    if not settings.turn_log_path.exists():
        return Compaction(None, 0)
    waiting = asyncio.run(waiting_erasures(settings))
    if waiting:
        asyncio.run(_rewrite_store(settings, milvus))
    with progress_bar("MiB") as advance:
        sizes = rewritten_file(settings.turn_log_path, advance=advance, check_alone=partial(refuse_company, settings))
    if waiting:
        asyncio.run(end_erasures(settings, waiting))
    return Compaction(sizes, len(waiting))


async def _rewrite_store(settings: Settings, milvus: ProcessSpec | None) -> None:
    async with running(milvus, settings):
        await rewrite_store(settings)


def _show(found: Compaction, *, is_dry: bool, as_json: bool) -> None:
    if as_json:
        sizes = None if found.sizes is None else asdict(found.sizes)
        print_json({"is_dry_run": is_dry, "turns_sqlite_bytes": sizes, "erasures": found.erasures})
    elif found.sizes is None:
        echo("nothing to do: there is no turn log yet")
    else:
        before, after = (f"{size / (1 << 20):.1f} MiB" for size in (found.sizes.before, found.sizes.after))
        done, most = ("would write", "at most ") if is_dry else ("wrote", "")
        echo(f"{done} turns.sqlite anew, from {before} to {most}{after}; erasures that waited for it: {found.erasures}")
