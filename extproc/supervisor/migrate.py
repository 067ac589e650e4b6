"""`memproxy migrate`: copies all memories into a new collection where the old one is outdated, while nothing else runs.

`offline` makes sure that nothing else runs; `memory.service.migration` does the work.
"""

from __future__ import annotations

import asyncio

from typer import echo

from extproc.supervisor.offline import OUTDATED, claimed, switched
from memory.cli.output import print_json
from memory.processes.composition import open_migration
from memory.service.reembedding import Switch
from memory.settings import Settings


def migrate(settings: Settings, *, is_dry: bool, as_json: bool) -> None:
    """Raises `CannotStart` or `BadSetting` if it must not run, `Unavailable` if it has to be called again."""
    with claimed(settings, is_dry=is_dry) as (here, milvus):
        if settings.database_url and not is_dry:  # a file of SQLite is migrated by whoever opens it
            from memory.processes.postgres_state import migrate_tables

            migrate_tables(settings)
        found = asyncio.run(switched(here, milvus, open_migration, is_dry=is_dry))
    _show(found, is_dry=is_dry, as_json=as_json)


def _show(found: Switch, *, is_dry: bool, as_json: bool) -> None:
    status = found.status
    if as_json:
        print_json(
            {
                "is_dry_run": is_dry,
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
        left = status.memories - status.embedded
        what = f"{left} of {status.memories} memories"
        echo(f"would copy {what} into a new collection; this one has {OUTDATED[status.outdated]}")
    else:
        echo(
            f"copied {found.copied} of {status.memories} memories into a new collection in {found.seconds:.0f} s; "
            f"the old one had {OUTDATED[status.outdated]}"
        )
