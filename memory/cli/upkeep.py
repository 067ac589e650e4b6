"""`memproxy upkeep`: runs upkeep now, or shows what it would do.

Parses arguments, shows progress, and prints every change; `memory.learn.upkeep` decides what to change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from typer import Option, echo

from memory.cli.options import ConfigOption, JsonOption, command, group
from memory.cli.output import print_json, print_table, progress_bar
from memory.errors import BadSetting
from memory.settings import Settings
from memory.settings.loader import from_process

if TYPE_CHECKING:
    from memory.learn.retention import RetentionStep
    from memory.learn.upkeep import UpkeepTask

USERS_PER_LOOK = 500

upkeep = group(
    """Run upkeep: read old memories again, unite duplicates, archive useless memories, derive reflections.

    Nothing is deleted unless memory.life.erase_after_days says so: archived memories can be restored.
    """
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepOptions:
    user: Annotated[str | None, Option(help="Only this user. [default: all users]")] = None
    is_dry: Annotated[bool, Option("--dry-run", help="Print exactly what would change, and change nothing.")] = False
    milvus_uri: Annotated[
        str | None, Option(help="URL of the Milvus server. [default: as configured, or as `up` runs it]")
    ] = None
    config: ConfigOption = None
    as_json: JsonOption = False


def _declare(name: str, meaning: str) -> None:
    def run(options: UpkeepOptions) -> None:
        _look_after([] if name == "all" else [name], options)

    run.__doc__ = meaning
    command(upkeep, name)(run)


_declare("split", "Read memories of older releases that hold whole sentences again: one memory for each fact.")
_declare("consolidate", "Unite memories that say the same: one is kept, with all the evidence.")
_declare("prune", "Archive what is beyond the quota or unused for long; delete what the settings say.")
_declare("reflect", "Derive what many memories of one subject have in common; needs a `memory_extraction` model.")
_declare("all", "All of it, in this order, as the worker does it on schedule.")


def _look_after(names: Sequence[str], options: UpkeepOptions) -> None:
    """Run the tasks of these names, or all."""
    from memory.learn.upkeep import EVERY_TASK, UpkeepTask  # here, as in all commands: it imports numpy and all rules
    from memory.model import Scope
    from memory.runtime.logs import log_to_stderr

    settings = _with_store(from_process(options.config, {"milvus_uri": options.milvus_uri}))
    log_to_stderr(settings.log_format)
    tasks = [UpkeepTask(name) for name in names] or list(EVERY_TASK)
    if options.user is not None:
        Scope(options.user)  # refuses invalid user ids
    can_reflect = settings.memory.life.reflect_from and settings.model_for("memory_extraction") is not None
    if tasks == [UpkeepTask.REFLECT] and not can_reflect:
        raise BadSetting(
            "reflect needs a model and a number: name one for memory_extraction in external_models, and set "
            "memory.life.reflect_from"
        )
    with progress_bar("users") as advance:
        steps = asyncio.run(_run(settings, tasks, options.user, is_dry=options.is_dry, advance=advance))
    _show(steps, is_dry=options.is_dry, as_json=options.as_json)


async def _run(
    settings: Settings, tasks: list[UpkeepTask], user: str | None, *, is_dry: bool, advance: Callable[[int, int], None]
) -> list[RetentionStep]:
    # Here, as in all commands: adapters take seconds to import, and `--help` should not.
    from memory.learn.upkeep import EVERY_TASK
    from memory.processes import composition
    from memory.processes.background_parts import open_upkeep

    steps: list[RetentionStep] = []
    async with composition.open_parts(settings) as parts, open_upkeep(parts) as looking_after:
        users = [user] if user is not None else await _everybody(parts)
        for number, one in enumerate(users, start=1):
            steps += await looking_after.run(one, tasks, is_dry=is_dry)
            if not is_dry and tasks == list(EVERY_TASK):
                await parts.state.upkeep_schedule.ended(one, now=composition.SYSTEM_CLOCK())
            advance(number, len(users))
    return steps


async def _everybody(parts: Any) -> list[str]:  # noqa: ANN401 - `app.Parts`, which is imported late
    users: list[str] = []
    while found := await parts.state.upkeep_schedule.users(after=users[-1] if users else "", limit=USERS_PER_LOOK):
        users += found
    return users


def _with_store(settings: Settings) -> Settings:
    """The store's address: as configured, or where a running `up` says that its own store is."""
    if settings.store_uri:
        return settings
    try:
        return msgspec.structs.replace(
            settings, milvus_uri=settings.milvus_uri_file.read_text(encoding="ascii").strip()
        )
    except OSError:
        raise BadSetting(
            f"milvus_uri: no `memproxy up` runs on {settings.data_dir}; start it, or name a server with --milvus-uri"
        ) from None


def _show(steps: list[RetentionStep], *, is_dry: bool, as_json: bool) -> None:
    from memory.learn.retention import totals

    if as_json:
        rows = [
            {
                "user_id": step.memory.user_id,
                "why": step.why.value,
                "id": step.memory.id,
                "before": None if step.before is None else step.before.status.value,
                "after": None if step.after is None else step.after.status.value,
                "content": step.memory.content,
            }
            for step in steps
        ]
        print_json({"is_dry_run": is_dry, "totals": totals(steps), "changes": rows})
        return
    if steps:
        print_table(
            ["user", "why", "id", "content"],
            [(step.memory.user_id, step.why.value, step.memory.id, step.memory.content) for step in steps],
        )
    done = "would change" if is_dry else "changed"
    echo(f"{done}: {len(steps)}" + "".join(f", {why} {count}" for why, count in totals(steps).items()))
