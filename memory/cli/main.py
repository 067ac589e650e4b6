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

from memory.api.shapes import time_text
from memory.cli.doctor import doctor
from memory.cli.eval import evaluate
from memory.cli.mcp import mcp
from memory.cli.output import config_option, print_json, print_table
from memory.cli.prepare import prepare
from memory.cli.upkeep import upkeep
from memory.errors import BadInput, BadSetting, NotFound, Unavailable
from memory.model import MEMORY_TYPES, MemoryStatus, Scope, Turn
from memory.ports import DeadLetter
from memory.runtime.logs import log_to_stderr
from memory.service.library import PAGE_MEMORIES_MAX, Library
from memory.settings.loader import Settings, from_process

API_SECONDS_MAX = 30.0  # per call; deleting thousands of memories takes a while
DEAD_LETTERS_MAX = 1_000  # shown by one `dlq list`

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Result = TypeVar("_Result")
_Part = Callable[[Settings, asyncio.Event], Awaitable[None]]

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def _for_user(function: _Function) -> _Function:
    """The options of every tool that calls the API."""
    for option in (
        _json,
        config_option,
        click.option("--api", default=None, help="Base URL of the REST API. [default: http://127.0.0.1:API_PORT]"),
        click.option("--user", required=True, help="Whose memories."),
    ):
        function = option(function)
    return function


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def commands() -> None:
    """Memory commands: parts that run alone, and the operator's tools."""


commands.add_command(evaluate)
commands.add_command(upkeep)
commands.add_command(prepare)
commands.add_command(doctor)
commands.add_command(mcp)


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
@_for_user
def search(query: str, types: Sequence[str], **given: Any) -> None:  # noqa: ANN401 - options, by name
    """Show what a chat that asks QUERY would be given, best first."""
    fields = {"project_id": given["project"], "session_id": given["session"], "memory_types": list(types)}
    fields |= {"limit": given["limit"], "token_budget": given["token_budget"]}
    body = {"query": query} | {name: value for name, value in fields.items() if value}
    with _api(given["config"], given["api"], given["user"]) as client:
        found = _answer(client.post("/v1/memory/search", json=body))
    _show_memories(found["memories"], as_json=given["as_json"])


@commands.command("list")
@click.option("--project", default="", help="Within this project; memories without one count too.")
@click.option("--type", "memory_type", type=click.Choice(MEMORY_TYPES), default=None, help="Only this type.")
@click.option(
    "--status", type=click.Choice([*(one.value for one in MemoryStatus), "all"]), default="active", show_default=True
)
@click.option("--as-of", default=None, help="What stood at that time: ISO 8601 or Unix seconds.")
@click.option("--limit", type=click.IntRange(1), default=PAGE_MEMORIES_MAX, show_default=True, help="Most to show.")
@_for_user
def list_(limit: int, **given: Any) -> None:  # noqa: ANN401 - options, by name
    """Show a user's memories, newest first."""
    names = {"project": "project_id", "memory_type": "memory_type", "status": "status", "as_of": "as_of"}
    parameters = {known: given[name] for name, known in names.items() if given[name]}
    with _api(given["config"], given["api"], given["user"]) as client:
        memories = [memory for memory, _ in zip(_pages(client, parameters, limit), range(limit), strict=False)]
    _show_memories(memories, as_json=given["as_json"])


@commands.command()
@click.argument("memory_ids", nargs=-1)
@click.option("--project", default=None, help="All memories of exactly this project.")
@click.option("--all", "is_all", is_flag=True, help="All memories of the user.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_for_user
def forget(memory_ids: Sequence[str], project: str | None, *, is_all: bool, yes: bool, **given: Any) -> None:  # noqa: ANN401 - options
    """Delete memories for good: MEMORY_IDS, or all of a project, or all of the user."""
    if (bool(memory_ids), project is not None, is_all).count(True) != 1:
        raise click.UsageError("give memory ids, or --project, or --all: one of the three")
    what = (
        f"{len(memory_ids)} memories" if memory_ids else f"all of {project!r}" if project is not None else "everything"
    )
    if not yes:
        click.confirm(f"Delete {what} of {given['user']!r} for good?", abort=True, err=True)
    with _api(given["config"], given["api"], given["user"]) as client:
        if memory_ids:
            answers = [_answer(client.delete(f"/v1/memory/{_quoted(memory_id)}")) for memory_id in memory_ids]
        else:
            scope = {"user_id": given["user"]} | ({"project_id": project} if project is not None else {})
            answers = [_answer(client.delete("/v1/memory", params=scope))]
    deleted = sum(answer["deleted"] for answer in answers)
    click.echo(json.dumps({"deleted": deleted}) if given["as_json"] else f"deleted: {deleted}")


@commands.command()
@click.argument("memory_ids", nargs=-1, required=True)
@_for_user
def restore(memory_ids: Sequence[str], **given: Any) -> None:  # noqa: ANN401 - options, by name
    """Bring back memories that upkeep put away; see `memproxy list --status archived`."""
    with _api(given["config"], given["api"], given["user"]) as client:
        back = [
            _answer(client.patch(f"/v1/memory/{_quoted(memory_id)}", json={"status": "active"}))
            for memory_id in memory_ids
        ]
    _show_memories(back, as_json=given["as_json"])


def _api(config: Path | None, url: str | None, user: str) -> httpx.Client:
    settings = from_process(config, {})
    Scope(user)  # refuses ids that no header can carry
    headers = [(b"x-authz-user-id", user.encode())]
    if settings.edge_secret:  # outside development the API trusts nobody without it
        headers.append((b"x-memory-edge-secret", settings.edge_secret.encode()))
    return httpx.Client(
        base_url=url or f"http://127.0.0.1:{settings.api_port}",
        headers=headers,
        timeout=API_SECONDS_MAX,
        transport=_Transport(),
        trust_env=False,
    )


class _Transport(httpx.HTTPTransport):
    """Reports an unreachable API as `Unavailable`."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        try:
            return super().handle_request(request)
        except httpx.TransportError as error:
            where = f"{request.url.scheme}://{request.url.netloc.decode()}"
            raise Unavailable("the REST API", f"{error} at {where}; is it running? Name another with --api") from error


def _answer(response: httpx.Response) -> dict[str, Any]:
    """The JSON of a successful answer; raises the API's error otherwise."""
    try:
        content: dict[str, Any] = response.json()
        if response.is_success:
            return content
        message = str(content["error"]["message"])
    except (ValueError, KeyError, TypeError):
        raise Unavailable("the REST API", f"what answers there is not it (HTTP {response.status_code})") from None
    if response.status_code >= 500:
        raise Unavailable("the REST API", message)
    raise NotFound(message) if response.status_code == 404 else BadInput(message)


def _pages(client: httpx.Client, parameters: dict[str, str], limit: int) -> Iterator[dict[str, Any]]:
    cursor: str | None = ""
    while cursor is not None:
        asked = {**parameters, "limit": str(min(limit, PAGE_MEMORIES_MAX)), "cursor": cursor}
        page = _answer(client.get("/v1/memory", params=asked))
        yield from page["memories"]
        cursor = page["next_cursor"]


def _quoted(memory_id: str) -> str:
    """As one path segment, whatever it contains."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else _percent(c) for c in memory_id)


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


# Tools for the queue


@commands.command()
@click.option("--user", required=True, help="Whose conversations.")
@click.option("--session", default="", help="Only this session.")
@config_option
@_json
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
@_json
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
@_json
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
@_json
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
