"""The memory commands of `memproxy`: parts that run alone, and the operator's tools.

The tools call the REST API, which enforces access; only those for the queue open the turn log directly, since they have
to work when nothing else does. No decisions about memories are made here.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, TypeVar

from typer import Argument, BadParameter, Exit, Option, Typer, confirm, echo

from memory.cli.bootstrap import bootstrap
from memory.cli.doctor import doctor
from memory.cli.erase import erase, opt_in, opt_out
from memory.cli.eval import evaluate
from memory.cli.mcp import mcp
from memory.cli.options import (
    MEMORIES,
    OPERATION,
    PAGE_MEMORIES,
    PARTS,
    STYLE,
    ApiOptions,
    ClaimOptions,
    ConfigOption,
    JsonOption,
    MemoryTypeName,
    YesOption,
    command,
    given,
    group,
)
from memory.cli.output import print_memories, print_rows, progress_bar, waiting_for
from memory.cli.prepare import prepare
from memory.cli.projects import projects
from memory.cli.sessions import sessions
from memory.cli.token import token
from memory.cli.transfer import export, import_
from memory.cli.upkeep import upkeep
from memory.errors import BadSetting
from memory.settings import Settings
from memory.settings.loader import from_process, unread_by_us

if TYPE_CHECKING:
    from memory.model import Turn
    from memory.service.library import Library

DEAD_LETTERS_MAX = 1_000  # shown by one `dlq list`
NOTHING_CODE = 1  # of `dlq drop`: no dead letter was dropped

_Result = TypeVar("_Result")
_Part = Callable[[Settings, asyncio.Event], Awaitable[None]]

StatusName: TypeAlias = Literal["active", "superseded", "archived", "raw", "all"]

commands = Typer(help="Memory commands: parts that run alone, and the operator's tools.", **STYLE)
commands.add_typer(evaluate, name="eval", rich_help_panel=OPERATION)
commands.add_typer(upkeep, name="upkeep", rich_help_panel=OPERATION)
command(commands, panel=OPERATION)(prepare)
command(commands, panel=OPERATION)(doctor)
command(commands, panel=PARTS)(mcp)
command(commands, panel=MEMORIES)(export)
command(commands, "import", panel=MEMORIES)(import_)
command(commands, panel=MEMORIES)(bootstrap)
command(commands, "opt-out", panel=MEMORIES)(opt_out)
command(commands, "opt-in", panel=MEMORIES)(opt_in)
command(commands, panel=MEMORIES)(erase)
commands.add_typer(sessions, name="sessions", rich_help_panel=MEMORIES)
commands.add_typer(projects, name="projects", rich_help_panel=MEMORIES)
command(commands, panel=OPERATION)(token)


# The parts


@command(commands, panel=PARTS)
def worker(*, config: ConfigOption = None) -> None:
    """Learn memories from the turns in the turn log. Any number of workers may run."""
    settings = settings_at_start(config, {})
    from memory.processes import (
        entrypoints,  # imported here, as in all commands: adapters take seconds to import, and `--help` should not wait
    )

    run_part(entrypoints.run_worker, settings)


@command(commands, panel=PARTS)
def api(*, config: ConfigOption = None) -> None:
    """Serve the REST API on `api_host` and `api_port`."""
    settings = settings_at_start(config, {})
    from memory.processes import entrypoints

    run_part(entrypoints.run_api, settings)


def settings_at_start(config: Path | None, flags: Mapping[str, object]) -> Settings:
    """The settings of what runs until it is stopped. Opens its log, which names what it does not read of the file."""
    import structlog

    from memory.runtime.logs import log_to_stderr

    settings = from_process(config, flags)
    log_to_stderr(settings.log_format)
    for key, instead in unread_by_us(config):
        structlog.get_logger(__name__).warning("a key of vLLM Semantic Router is not read", key=key, instead=instead)
    return settings


def run_part(part: _Part, settings: Settings) -> None:
    """Run one part of the product until SIGTERM or Ctrl-C, then let it drain."""
    import uvloop
    from threadpoolctl import threadpool_limits

    if settings.metrics_host:
        _show_metrics(settings.metrics_host, settings.metrics_port)

    async def run() -> None:
        until, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, until.set)
        await part(settings, until)

    # the threads of a larger BLAS wait for work by spinning, on the cores that chats need
    with threadpool_limits(limits=1, user_api="blas"):
        uvloop.run(run())


def _show_metrics(host: str, port: int) -> None:
    """Serve metrics from a thread that ends with the process."""
    from prometheus_client import start_http_server

    try:
        start_http_server(port, host)
    except OSError as error:
        raise BadSetting(
            f"metrics_host: cannot bind {host}:{port}: {error.strerror}. Give another metrics_port"
        ) from error


# Tools that call the API


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    project: Annotated[str, Option(help="Within this project; memories without one count too.")] = ""
    session: Annotated[str, Option(help="The session that asks; it only ranks.")] = ""
    types: Annotated[list[MemoryTypeName] | None, Option("--type", help="Only these types; repeatable.")] = None
    limit: Annotated[int | None, Option(help="Most memories to show.")] = None
    token_budget: Annotated[int | None, Option(help="Fill this many tokens, relevant or not.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    project: Annotated[str, Option(help="Within this project; memories without one count too.")] = ""
    memory_type: Annotated[MemoryTypeName | None, Option("--type", help="Only this type.")] = None
    status: Annotated[StatusName, Option(help="Only with this status.")] = "active"
    as_of: Annotated[str | None, Option(help="What stood at that time: ISO 8601 or Unix seconds.")] = None
    limit: Annotated[int, Option(min=1, help="Most to show.")] = PAGE_MEMORIES


@command(commands, panel=MEMORIES)
def search(
    query: Annotated[str, Argument(help="As a chat would ask it.")],
    options: ApiOptions,
    *,
    asking: SearchOptions,
    claim: ClaimOptions,
) -> None:
    """Show what a chat that asks QUERY would be given, best first."""
    types = [one.value for one in asking.types or ()]
    where = given(project_id=asking.project, session_id=asking.session, memory_types=types)
    much = given(limit=asking.limit, token_budget=asking.token_budget)
    found = options.asked("POST", "/v1/memory/search", {"query": query} | where | much | claim.given())
    print_memories(found["memories"], as_json=options.as_json)


@command(commands, "list", panel=MEMORIES)
def list_(*, listing: ListOptions, claim: ClaimOptions, options: ApiOptions) -> None:
    """Show a user's memories, newest first; in a terminal the facts of one sentence below it."""
    from memory.cli.api_client import listed_memories

    where = given(project_id=listing.project, memory_type=listing.memory_type)
    where |= given(status=listing.status, as_of=listing.as_of) | claim.given()
    with options.client() as client:
        memories = listed_memories(client, "/v1/memory", where, limit=listing.limit)
    print_memories(memories, as_json=options.as_json)


@command(commands, panel=MEMORIES)
def forget(
    *,
    memory_ids: Annotated[list[str] | None, Argument(help="Their ids, as `list` shows them.")] = None,
    project: Annotated[str | None, Option(help="All memories of exactly this project.")] = None,
    is_all: Annotated[bool, Option("--all", help="All memories of the user.")] = False,
    yes: YesOption = False,
    options: ApiOptions,
) -> None:
    """Delete memories for good: MEMORY_IDS, or all of a project, or all of the user."""
    from memory.cli.api_client import answer_of, quoted

    if (bool(memory_ids), project is not None, is_all).count(True) != 1:
        raise BadParameter("give memory ids, or --project, or --all: one of the three")
    what = (
        f"{len(memory_ids)} memories" if memory_ids else f"all of {project!r}" if project is not None else "everything"
    )
    if not yes:
        confirm(f"Delete {what} of {options.user!r} for good?", abort=True, err=True)
    with options.client() as client:
        if memory_ids:
            with progress_bar("memories", total=len(memory_ids)) as advance:
                answers = []
                for done, memory_id in enumerate(memory_ids, start=1):
                    answers.append(answer_of(client.delete(f"/v1/memory/{quoted(memory_id)}")))
                    advance(done, len(memory_ids))
        else:
            scope = {"user_id": options.user} | ({"project_id": project} if project is not None else {})
            with waiting_for(f"deleting {what}"):
                answers = [answer_of(client.delete("/v1/memory", params=scope))]
    deleted = sum(answer["deleted"] for answer in answers)
    echo(json.dumps({"deleted": deleted}) if options.as_json else f"deleted: {deleted}")


@command(commands, panel=MEMORIES)
def restore(
    memory_ids: Annotated[list[str], Argument(help="Their ids, as `list --status archived` shows them.")],
    options: ApiOptions,
) -> None:
    """Bring back memories that upkeep archived; see `memproxy list --status archived`."""
    from memory.cli.api_client import answer_of, quoted

    with options.client() as client:
        back = [
            answer_of(client.patch(f"/v1/memory/{quoted(memory_id)}", json={"status": "active"}))
            for memory_id in memory_ids
        ]
    print_memories(back, as_json=options.as_json)


# Tools for the queue


@command(commands, panel=MEMORIES)
def turns(
    *,
    user: Annotated[str, Option(help="Whose conversations.")],
    session: Annotated[str, Option(help="Only this session.")] = "",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the conversation record of a user, oldest first."""
    from memory.api.times import time_text

    async def collect(library: Library) -> list[Turn]:
        return [turn async for turn in library.turns(user, session)]

    found = _with_library(config, collect)
    said = ["\n".join(message.content for message in turn.messages) for turn in found]
    rows = [
        (time_text(turn.at), turn.scope.session_id, turn.status.value, words, turn.answer)
        for turn, words in zip(found, said, strict=True)
    ]
    print_rows({"turns": found}, ["at", "session", "status", "user", "assistant"], rows, as_json=as_json)


dlq = group("Dead letters: windows of turns that could not be learnt.")
commands.add_typer(dlq, name="dlq", rich_help_panel=OPERATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterOptions:
    window_ids: Annotated[list[str] | None, Argument(help="Their ids, as `list` shows them.")] = None
    is_all: Annotated[bool, Option("--all", help="All dead letters.")] = False
    config: ConfigOption = None
    as_json: JsonOption = False

    def __post_init__(self) -> None:
        if bool(self.window_ids) == self.is_all:
            raise BadParameter("give window ids, or --all: one of the two")


@command(dlq, "list")
def dlq_list(*, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show the dead letters, each with the reason of its last failure."""
    from memory.api.times import time_text

    found = _with_library(config, lambda library: library.operator.dead_letters(limit=DEAD_LETTERS_MAX))
    rows = [
        (x.window_id, x.user_id, x.session_id, len(x.turn_ids), x.attempts, time_text(x.buried_at), x.reason)
        for x in found
    ]
    columns = ["window", "user", "session", "turns", "attempts", "buried at", "reason"]
    print_rows({"dead_letters": found}, columns, rows, as_json=as_json)


@command(dlq, "replay")
def dlq_replay(letters: LetterOptions) -> None:
    """Have dead letters learnt again, as if for the first time: WINDOW_IDS, or --all."""
    count = _with_library(letters.config, lambda library: library.operator.replay(letters.window_ids or []))
    echo(json.dumps({"replayed": count}) if letters.as_json else f"due again: {count}")


@command(dlq, "drop")
def dlq_drop(letters: LetterOptions, *, yes: YesOption = False) -> None:
    """Give dead letters up: they will never be learnt. WINDOW_IDS, or --all. The exit code is 1 if there was none."""
    if not yes:
        what = f"{len(letters.window_ids)} dead letters" if letters.window_ids else "all dead letters"
        confirm(f"Give up {what} for good?", abort=True, err=True)
    count = _with_library(letters.config, lambda library: _dropped(library, letters.window_ids))
    echo(json.dumps({"dropped": count}) if letters.as_json else f"dropped: {count}")
    if not count:
        raise Exit(NOTHING_CODE)


async def _dropped(library: Library, window_ids: Sequence[str] | None) -> int:
    if window_ids:
        return await library.operator.drop(window_ids)
    dropped = 0
    while letters := await library.operator.dead_letters(limit=DEAD_LETTERS_MAX):
        count = await library.operator.drop([letter.window_id for letter in letters])
        dropped += count
        if not count:  # somebody else dropped or replayed them meanwhile
            break
    return dropped


def _with_library(config: Path | None, use: Callable[[Library], Awaitable[_Result]]) -> _Result:
    from memory.processes import composition
    from memory.processes.state_parts import refuse_without_record
    from memory.runtime.logs import log_to_stderr

    settings = from_process(config, {})
    log_to_stderr(settings.log_format)
    refuse_without_record(settings)

    async def run() -> _Result:
        async with composition.open_library(settings) as library:
            return await use(library)

    return asyncio.run(run())
