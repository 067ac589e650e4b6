"""`memproxy reembed`: embeds all memories again with the configured model, while nothing else runs.

`offline` makes sure that nothing else runs; `memory.service.reembedding` does the work.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict

import msgspec
from typer import echo

from extproc.supervisor.offline import OUTDATED, claimed, switched
from memory.cli.output import print_json
from memory.processes.composition import open_reembedding
from memory.service.reembedding import Switch
from memory.settings import Settings


def reembed(settings: Settings, *, is_dry: bool, as_json: bool) -> None:
    """Raises `CannotStart` or `BadSetting` if it must not run, `Unavailable` if it has to be called again."""
    with claimed(_on_all_cores(settings), is_dry=is_dry) as (here, milvus):
        found = asyncio.run(switched(here, milvus, open_reembedding, is_dry=is_dry))
    _show(found, is_dry=is_dry, as_json=as_json)


def _on_all_cores(settings: Settings) -> Settings:
    """All cores may be used, since nobody chats meanwhile."""
    memory, threads = settings.memory, settings.memory.embedding.threads or len(os.sched_getaffinity(0))
    embedding = msgspec.structs.replace(memory.embedding, threads=threads)
    return msgspec.structs.replace(settings, memory=msgspec.structs.replace(memory, embedding=embedding))


def _show(found: Switch, *, is_dry: bool, as_json: bool) -> None:
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
    elif is_dry:
        left = status.memories - status.embedded
        echo(
            f"would embed {left} of {status.memories} memories again, in about {found.seconds:.0f} s: from "
            f"{status.origin} to {wanted}"
        )
    else:
        echo(
            f"embedded {found.copied} of {status.memories} memories again in {found.seconds:.0f} s: from "
            f"{status.origin} to {wanted}"
        )
