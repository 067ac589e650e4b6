"""`memproxy sessions`: shows, exports and deletes recorded conversations. Calls the REST API, which enforces access."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import click
import httpx
import msgspec
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from memory.cli.api_client import answer_of, api_client, for_user, quoted
from memory.cli.output import print_json, print_table

PAGE_SESSIONS = 100
PAGE_MESSAGES = 500

_MESSAGE_COLUMNS = ("at", "from", "to", "type", "content")


@click.group()
def sessions() -> None:
    """Recorded conversations: list them, show one to go on with it elsewhere, export, delete."""


@sessions.command("list")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Most to show.")
@for_user
def list_sessions(limit: int, **given: Any) -> None:  # noqa: ANN401 - options, by name
    """Show a user's sessions, the latest active first."""
    with api_client(given["config"], given["api"], given["user"]) as client:
        pages = _pages(client, "/v1/memory/sessions", "sessions", {"limit": str(min(limit, PAGE_SESSIONS))})
        found = list(islice((one for page in pages for one in page["sessions"]), limit))
    if given["as_json"]:
        print_json({"sessions": found})
        return
    rows = [
        (
            one["id"],
            one["status"],
            one["last_at"],
            one["turns"],
            ", ".join(one["agent_ids"]),
            one["title"],
        )
        for one in found
    ]
    print_table(["session", "status", "last at", "turns", "agents", "title"], rows)


@sessions.command()
@click.argument("session_id")
@for_user
def show(session_id: str, **given: Any) -> None:  # noqa: ANN401 - options, by name
    """Show one session: its messages in order, its summary, and the memories that its requests were given."""
    with api_client(given["config"], given["api"], given["user"]) as client:
        path, limit = f"/v1/memory/sessions/{quoted(session_id)}", {"limit": str(PAGE_MESSAGES)}
        first, *others = _pages(client, path, "messages", limit)
    session = {name: value for name, value in first.items() if name != "next_cursor"}
    session["messages"] = [message for page in (first, *others) for message in page["messages"]]
    if given["as_json"]:
        print_json(session)
        return
    rows = [(m["at"], _party(m, "source"), _party(m, "target"), m["type"], m["content"]) for m in session["messages"]]
    print_table(_MESSAGE_COLUMNS, rows)
    if summary := session["summary"]:
        click.echo(f"\nsummary: {summary['title']}\n{summary['text']}")
    notes = [
        (note["turn_id"], memory["id"], memory["content"] or "(forgotten)")
        for note in session["notes"]
        for memory in note["memories"]
    ]
    if notes:
        click.echo()
        print_table(["turn", "memory given", "content"], notes)


@sessions.command()
@click.argument("session_ids", nargs=-1, required=True)
@click.option("--keep-memories", is_flag=True, help="Delete the record only, not what was learnt from it.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@for_user
def delete(session_ids: Sequence[str], *, keep_memories: bool, yes: bool, **given: Any) -> None:  # noqa: ANN401 - options
    """Delete sessions for good, with what was learnt from them alone."""
    if not yes:
        what = "their record" if keep_memories else "their record and what was learnt from it alone"
        click.confirm(
            f"Delete {len(session_ids)} sessions of {given['user']!r} for good, {what}?", abort=True, err=True
        )
    parameters = {"keep_memories": "true" if keep_memories else "false"}
    totals = {"turns": 0, "messages": 0, "memories": 0}
    with api_client(given["config"], given["api"], given["user"]) as client:
        for session_id in session_ids:
            path = f"/v1/memory/sessions/{quoted(session_id)}"
            deleted = answer_of(client.delete(path, params=parameters))["deleted"]
            totals = {name: count + deleted[name] for name, count in totals.items()}
    if given["as_json"]:
        print_json({"deleted": totals})
    else:
        click.echo("deleted: " + ", ".join(f"{count} {name}" for name, count in totals.items()))


@sessions.command()
@click.argument("session_id", required=False)
@click.option("--agent", default=None, help="Only what this agent said or received.")
@click.option("--out", type=click.File("wb"), default=None, help="Write to this file. [default: standard output]")
@for_user
def export(session_id: str | None, agent: str | None, out: Any, **given: Any) -> None:  # noqa: ANN401 - options, by name
    """Write the messages of SESSION_ID, or of all sessions, as JSON lines in the order of the record."""
    named = {"conversation_id": session_id, "agent_id": agent, "limit": str(PAGE_MESSAGES)}
    parameters = {name: value for name, value in named.items() if value}
    target = out or sys.stdout.buffer
    columns = (TextColumn("{task.completed} messages"), TimeElapsedColumn())
    with (
        api_client(given["config"], given["api"], given["user"]) as client,
        Progress(*columns, console=Console(stderr=True), transient=True) as bar,
    ):
        task = bar.add_task("messages", total=None)
        for page in _pages(client, "/v1/memory/messages", "messages", parameters):
            target.write(b"".join(msgspec.json.encode(message) + b"\n" for message in page["messages"]))
            bar.advance(task, len(page["messages"]))
    target.flush()


def _pages(client: httpx.Client, path: str, name: str, parameters: dict[str, str]) -> Iterator[dict[str, Any]]:
    """All pages of the list `name`; at least one."""
    cursor: str | None = ""
    while cursor is not None:
        page = answer_of(client.get(path, params={**parameters, "cursor": cursor}))
        assert name in page, "the API answers with this list"
        yield page
        cursor = page["next_cursor"]


def _party(message: dict[str, Any], end: str) -> str:
    kind, name = message[f"{end}_type"], message[end]
    return f"{kind} {name}" if name else str(kind)
