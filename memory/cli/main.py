"""The memory commands of `memproxy`: parts that run alone, and the operator's tools.

The tools call the REST API, which enforces access; only those for the queue open the turn log directly, since they have
to work when nothing else does. No decisions about memories are made here.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
import httpx
import uvloop
from prometheus_client import start_http_server
from threadpoolctl import threadpool_limits

from memory.api.times import time_text
from memory.cli.api_client import answer_of, api_client, for_user, json_option, quoted
from memory.cli.doctor import doctor
from memory.cli.eval import evaluate
from memory.cli.mcp import mcp
from memory.cli.output import config_option, print_json, print_table
from memory.cli.prepare import prepare
from memory.cli.sessions import sessions
from memory.cli.token import token
from memory.cli.upkeep import upkeep
from memory.errors import BadSetting
from memory.model import MEMORY_TYPES, MemoryStatus, Turn
from memory.ports import DeadLetter
from memory.runtime.logs import log_to_stderr
from memory.service.library import PAGE_MEMORIES_MAX, Library
from memory.settings.loader import Settings, from_process

DEAD_LETTERS_MAX = 1_000  # shown by one `dlq list`

_Result = TypeVar("_Result")
_Part = Callable[[Settings, asyncio.Event], Awaitable[None]]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def commands() -> None:
    """Memory commands: parts that run alone, and the operator's tools."""


commands.add_command(evaluate)
commands.add_command(upkeep)
commands.add_command(prepare)
commands.add_command(doctor)
commands.add_command(mcp)
commands.add_command(sessions)
commands.add_command(token)


# The parts


@commands.command()
@config_option
def worker(config: Path | None) -> None:
    """Learn memories from the turns in the turn log. Any number of workers may run."""
    settings = from_process(config, {})
    from memory.processes import (
        entrypoints,  # imported here, as in all commands: adapters take seconds to import, and `--help` should not wait
    )

    run_part(entrypoints.run_worker, settings)


@commands.command()
@config_option
def api(config: Path | None) -> None:
    """Serve the REST API on `api_host` and `api_port`."""
    settings = from_process(config, {})
    from memory.processes import entrypoints

    run_part(entrypoints.run_api, settings)


def run_part(part: _Part, settings: Settings) -> None:
    """Run one part of the product until SIGTERM or Ctrl-C, then let it drain."""
    log_to_stderr(settings.log_format)
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
    try:
        start_http_server(port, host)
    except OSError as error:
        raise BadSetting(
            f"metrics_host: cannot bind {host}:{port}: {error.strerror}. Give another metrics_port"
        ) from error


# Tools that call the API


@commands.command()
@click.argument("query")
@click.option("--project", default="", help="Within this project; memories without one count too.")
@click.option("--session", default="", help="The session that asks; it only ranks.")
@click.option("--type", "types", multiple=True, type=click.Choice(MEMORY_TYPES), help="Only these types; repeatable.")
@click.option("--limit", type=int, default=None, help="Most memories to show.")
@click.option("--token-budget", type=int, default=None, help="Fill this many tokens, relevant or not.")
@for_user
def search(query: str, types: Sequence[str], **given: Any) -> None:  # noqa: ANN401 - options, by name
    """Show what a chat that asks QUERY would be given, best first."""
    fields = {"project_id": given["project"], "session_id": given["session"], "memory_types": list(types)}
    fields |= {"limit": given["limit"], "token_budget": given["token_budget"]}
    body = {"query": query} | {name: value for name, value in fields.items() if value}
    with api_client(given["config"], given["api"], given["user"]) as client:
        found = answer_of(client.post("/v1/memory/search", json=body))
    _show_memories(found["memories"], as_json=given["as_json"])


@commands.command("list")
@click.option("--project", default="", help="Within this project; memories without one count too.")
@click.option("--type", "memory_type", type=click.Choice(MEMORY_TYPES), default=None, help="Only this type.")
@click.option(
    "--status", type=click.Choice([*(one.value for one in MemoryStatus), "all"]), default="active", show_default=True
)
@click.option("--as-of", default=None, help="What stood at that time: ISO 8601 or Unix seconds.")
@click.option("--limit", type=click.IntRange(1), default=PAGE_MEMORIES_MAX, show_default=True, help="Most to show.")
@for_user
def list_(limit: int, **given: Any) -> None:  # noqa: ANN401 - options, by name
    """Show a user's memories, newest first."""
    names = {"project": "project_id", "memory_type": "memory_type", "status": "status", "as_of": "as_of"}
    parameters = {known: given[name] for name, known in names.items() if given[name]}
    with api_client(given["config"], given["api"], given["user"]) as client:
        memories = [memory for memory, _ in zip(_pages(client, parameters, limit), range(limit), strict=False)]
    _show_memories(memories, as_json=given["as_json"])


@commands.command()
@click.argument("memory_ids", nargs=-1)
@click.option("--project", default=None, help="All memories of exactly this project.")
@click.option("--all", "is_all", is_flag=True, help="All memories of the user.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@for_user
def forget(memory_ids: Sequence[str], project: str | None, *, is_all: bool, yes: bool, **given: Any) -> None:  # noqa: ANN401 - options
    """Delete memories for good: MEMORY_IDS, or all of a project, or all of the user."""
    if (bool(memory_ids), project is not None, is_all).count(True) != 1:
        raise click.UsageError("give memory ids, or --project, or --all: one of the three")
    what = (
        f"{len(memory_ids)} memories" if memory_ids else f"all of {project!r}" if project is not None else "everything"
    )
    if not yes:
        click.confirm(f"Delete {what} of {given['user']!r} for good?", abort=True, err=True)
    with api_client(given["config"], given["api"], given["user"]) as client:
        if memory_ids:
            answers = [answer_of(client.delete(f"/v1/memory/{quoted(memory_id)}")) for memory_id in memory_ids]
        else:
            scope = {"user_id": given["user"]} | ({"project_id": project} if project is not None else {})
            answers = [answer_of(client.delete("/v1/memory", params=scope))]
    deleted = sum(answer["deleted"] for answer in answers)
    click.echo(json.dumps({"deleted": deleted}) if given["as_json"] else f"deleted: {deleted}")


@commands.command()
@click.argument("memory_ids", nargs=-1, required=True)
@for_user
def restore(memory_ids: Sequence[str], **given: Any) -> None:  # noqa: ANN401 - options, by name
    """Bring back memories that upkeep put away; see `memproxy list --status archived`."""
    with api_client(given["config"], given["api"], given["user"]) as client:
        back = [
            answer_of(client.patch(f"/v1/memory/{quoted(memory_id)}", json={"status": "active"}))
            for memory_id in memory_ids
        ]
    _show_memories(back, as_json=given["as_json"])


def _pages(client: httpx.Client, parameters: dict[str, str], limit: int) -> Iterator[dict[str, Any]]:
    cursor: str | None = ""
    while cursor is not None:
        asked = {**parameters, "limit": str(min(limit, PAGE_MEMORIES_MAX)), "cursor": cursor}
        page = answer_of(client.get("/v1/memory", params=asked))
        yield from page["memories"]
        cursor = page["next_cursor"]


# Tools for the queue


@commands.command()
@click.option("--user", required=True, help="Whose conversations.")
@click.option("--session", default="", help="Only this session.")
@config_option
@json_option
def turns(user: str, session: str, config: Path | None, *, as_json: bool) -> None:
    """Show the conversation record of a user, oldest first."""

    async def collect(library: Library) -> list[Turn]:
        return [turn async for turn in library.turns(user, session)]

    found = _with_library(config, collect)
    if as_json:
        print_json({"turns": found})
    else:
        rows = [(time_text(t.at), t.scope.session_id, t.status.value, _said(t), t.answer) for t in found]
        print_table(["at", "session", "status", "user", "assistant"], rows)


def _said(turn: Turn) -> str:
    return "\n".join(message.content for message in turn.messages)


@commands.group()
def dlq() -> None:
    """Dead letters: windows of turns that could not be learnt."""


@dlq.command("list")
@config_option
@json_option
def dlq_list(config: Path | None, *, as_json: bool) -> None:
    """Show the dead letters, each with the reason of its last failure."""

    async def collect(library: Library) -> list[DeadLetter]:
        return await library.dead_letters(limit=DEAD_LETTERS_MAX)

    found = _with_library(config, collect)
    if as_json:
        print_json({"dead_letters": found})
    else:
        rows = [
            (x.window_id, x.user_id, x.session_id, len(x.turn_ids), x.attempts, time_text(x.buried_at), x.reason)
            for x in found
        ]
        print_table(["window", "user", "session", "turns", "attempts", "buried at", "reason"], rows)


@dlq.command("replay")
@click.argument("window_ids", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="All dead letters.")
@config_option
@json_option
def dlq_replay(window_ids: Sequence[str], config: Path | None, *, is_all: bool, as_json: bool) -> None:
    """Have dead letters learnt again, as if for the first time: WINDOW_IDS, or --all."""
    _refuse_unless_named(window_ids, is_all=is_all)
    count = _with_library(config, partial(Library.replay, window_ids=window_ids))
    click.echo(json.dumps({"replayed": count}) if as_json else f"due again: {count}")


@dlq.command("drop")
@click.argument("window_ids", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="All dead letters.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
@json_option
def dlq_drop(window_ids: Sequence[str], config: Path | None, *, is_all: bool, yes: bool, as_json: bool) -> None:
    """Give dead letters up: they will never be learnt. WINDOW_IDS, or --all."""
    _refuse_unless_named(window_ids, is_all=is_all)
    if not yes:
        what = f"{len(window_ids)} dead letters" if window_ids else "all dead letters"
        click.confirm(f"Give up {what} for good?", abort=True, err=True)
    count = _with_library(config, _drop_all if is_all else partial(Library.drop, window_ids=window_ids))
    click.echo(json.dumps({"dropped": count}) if as_json else f"dropped: {count}")


async def _drop_all(library: Library) -> int:
    dropped = 0
    while letters := await library.dead_letters(limit=DEAD_LETTERS_MAX):
        count = await library.drop([letter.window_id for letter in letters])
        dropped += count
        if not count:  # somebody else dropped or replayed them meanwhile
            break
    return dropped


def _refuse_unless_named(window_ids: Sequence[str], *, is_all: bool) -> None:
    if bool(window_ids) == is_all:
        raise click.UsageError("give window ids, or --all: one of the two")


def _open_library(settings: Settings) -> AbstractAsyncContextManager[Library]:
    from memory.processes import composition

    return composition.open_library(settings)


def _with_library(config: Path | None, use: Callable[[Library], Awaitable[_Result]]) -> _Result:
    settings = from_process(config, {})
    log_to_stderr(settings.log_format)

    async def run() -> _Result:
        async with _open_library(settings) as library:
            return await use(library)

    return asyncio.run(run())


# Output


def _show_memories(memories: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json({"memories": memories})
        return
    has_scores = any("score" in memory for memory in memories)
    columns = ["id", *(["score"] if has_scores else []), "said at", "type", "content"]
    rows = [
        (m["id"], *([f"{m['score']:.3f}"] if has_scores else []), m["said_at"], m["memory_type"], m["content"])
        for m in memories
    ]
    print_table(columns, rows)
