"""`memproxy upkeep`: runs upkeep now, or shows what it would do.

Parses arguments, shows progress, and prints every change; `memory.learn.upkeep` decides what to change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from memory.cli.output import config_option, print_json, print_table
from memory.errors import BadSetting
from memory.learn.retention import RetentionStep, totals
from memory.learn.upkeep import EVERY_TASK, UpkeepTask
from memory.model import Scope
from memory.runtime.logs import log_to_stderr
from memory.settings.loader import Settings, from_process

USERS_PER_LOOK = 500

_Function = TypeVar("_Function", bound=Callable[..., Any])


@click.group()
def upkeep() -> None:
    """Run upkeep: unite duplicates, archive useless memories, derive reflections.

    Nothing is deleted unless memory.life.erase_after_days says so: archived memories can be restored.
    """


def _takes(function: _Function) -> _Function:
    """The options of every kind of upkeep."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table."),
        config_option,
        click.option(
            "--milvus-uri", default=None, help="URL of the Milvus server. [default: as configured, or as `up` runs it]"
        ),
        click.option("--dry-run", "is_dry", is_flag=True, help="Print exactly what would change, and change nothing."),
        click.option("--user", default=None, help="Only this user. [default: all users]"),
    ):
        function = option(function)
    return function


@upkeep.command()
@_takes
def consolidate(**given: Any) -> None:  # noqa: ANN401 - options, by name
    """Unite memories that say the same: one is kept, with all the evidence."""
    _look_after([UpkeepTask.CONSOLIDATE], **given)


@upkeep.command()
@_takes
def prune(**given: Any) -> None:  # noqa: ANN401 - likewise
    """Archive what is beyond the quota or unused for long; delete what the settings say."""
    _look_after([UpkeepTask.PRUNE], **given)


@upkeep.command()
@_takes
def reflect(**given: Any) -> None:  # noqa: ANN401 - likewise
    """Derive what many memories of one subject have in common; needs a `memory_extraction` model."""
    _look_after([UpkeepTask.REFLECT], **given)


@upkeep.command("all")
@_takes
def everything(**given: Any) -> None:  # noqa: ANN401 - likewise
    """All of it, in this order, as the worker does it on schedule."""
    _look_after(EVERY_TASK, **given)


def _look_after(
    tasks: Iterable[UpkeepTask],
    *,
    user: str | None,
    is_dry: bool,
    milvus_uri: str | None,
    config: Path | None,
    as_json: bool,
) -> None:
    settings = _with_store(from_process(config, {"milvus_uri": milvus_uri}))
    log_to_stderr(settings.log_format)
    if user is not None:
        Scope(user)  # refuses invalid user ids
    if list(tasks) == [UpkeepTask.REFLECT] and not _can_reflect(settings):
        raise BadSetting(
            "reflect needs a model and a number: name one for memory_extraction in external_models, and set "
            "memory.life.reflect_from"
        )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with ProgressBar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("users", total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        steps = asyncio.run(_run(settings, list(tasks), user, is_dry=is_dry, advance=advance))
    _show(steps, is_dry=is_dry, as_json=as_json)


async def _run(
    settings: Settings, tasks: list[UpkeepTask], user: str | None, *, is_dry: bool, advance: Callable[[int, int], None]
) -> list[RetentionStep]:
    # Here, as in all commands: adapters take seconds to import, and `--help` should not.
    from memory.processes import composition
    from memory.processes.upkeep_parts import open_upkeep

    steps: list[RetentionStep] = []
    async with composition.open_parts(settings) as parts, open_upkeep(parts) as looking_after:
        users = [user] if user is not None else await _everybody(parts)
        for number, one in enumerate(users, start=1):
            steps += await looking_after.run(one, tasks, is_dry=is_dry)
            if not is_dry and tasks == list(EVERY_TASK):
                await parts.upkeep_schedule.ended(one, now=composition.SYSTEM_CLOCK())
            advance(number, len(users))
    return steps


async def _everybody(parts: Any) -> list[str]:  # noqa: ANN401 - `app.Parts`, which is imported late
    users: list[str] = []
    while found := await parts.upkeep_schedule.users(after=users[-1] if users else "", limit=USERS_PER_LOOK):
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


def _can_reflect(settings: Settings) -> bool:
    return bool(settings.memory.life.reflect_from) and settings.model_for("memory_extraction") is not None


def _show(steps: list[RetentionStep], *, is_dry: bool, as_json: bool) -> None:
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
    click.echo(f"{done}: {len(steps)}" + "".join(f", {why} {count}" for why, count in totals(steps).items()))
