"""`memproxy sessions`: shows, exports and deletes recorded conversations. Calls the REST API, which enforces access."""

from __future__ import annotations

import sys
from itertools import islice
from typing import Annotated, Any

import msgspec
from typer import Argument, FileBinaryWrite, Option, confirm, echo

from memory.cli.options import ApiOptions, YesOption, command, given, group
from memory.cli.output import print_json, print_result, print_rows, print_table, progress_bar

PAGE_SESSIONS = 100
PAGE_MESSAGES = 500

_MESSAGE_COLUMNS = ("at", "from", "to", "type", "content")


sessions = group("Recorded conversations: list them, show one to go on with it elsewhere, export, delete.")


@command(sessions, "list")
def list_sessions(options: ApiOptions, *, limit: Annotated[int, Option(min=1, help="Most to show.")] = 50) -> None:
    """Show a user's sessions, the latest active first."""
    from memory.cli.api_client import pages_of

    with options.client() as client:
        pages = pages_of(client, "/v1/memory/sessions", "sessions", {"limit": str(min(limit, PAGE_SESSIONS))})
        found = list(islice((one for page in pages for one in page["sessions"]), limit))
    rows = [
        (one["id"], one["status"], one["last_at"], one["turns"], ", ".join(one["agent_ids"]), one["title"])
        for one in found
    ]
    columns = ["session", "status", "last at", "turns", "agents", "title"]
    print_rows({"sessions": found}, columns, rows, as_json=options.as_json)


@command(sessions)
def show(session_id: Annotated[str, Argument(help="Its id, as `list` shows it.")], options: ApiOptions) -> None:
    """Show one session: the messages of its live branch, the branches that it left, its summary, and the memories that
    its requests were given.
    """
    from memory.cli.api_client import pages_of, quoted

    with options.client() as client:
        path, limit = f"/v1/memory/sessions/{quoted(session_id)}", {"limit": str(PAGE_MESSAGES)}
        first, *others = pages_of(client, path, "messages", limit)
    session = {name: value for name, value in first.items() if name != "next_cursor"}
    session["messages"] = [message for page in (first, *others) for message in page["messages"]]
    if options.as_json:
        print_json(session)
        return
    rows = [(m["at"], _party(m, "source"), _party(m, "target"), m["type"], m["content"]) for m in session["messages"]]
    print_table(_MESSAGE_COLUMNS, rows)
    if left := session["abandoned"]:
        echo()
        branches = [(one["begun_at"], one["left_at"], len(one["turn_ids"]), one["title"]) for one in left]
        print_table(["left branch begun at", "after live turn", "turns", "title"], branches)
    if summary := session["summary"]:
        echo(f"\nsummary: {summary['title']}\n{summary['text']}")
    notes = [
        (note["turn_id"], memory["id"], memory["content"] or "(forgotten)")
        for note in session["notes"]
        for memory in note["memories"]
    ]
    if notes:
        echo()
        print_table(["turn", "memory given", "content"], notes)


@command(sessions)
def delete(
    session_ids: Annotated[list[str], Argument(help="Their ids, as `list` shows them.")],
    options: ApiOptions,
    *,
    keep_memories: Annotated[
        bool, Option("--keep-memories", help="Delete the record only, not what was learnt from it.")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Delete sessions for good, with what was learnt from them alone."""
    from memory.cli.api_client import answer_of, quoted

    if not yes:
        what = "their record" if keep_memories else "their record and what was learnt from it alone"
        confirm(f"Delete {len(session_ids)} sessions of {options.user!r} for good, {what}?", abort=True, err=True)
    parameters = {"keep_memories": "true" if keep_memories else "false"}
    totals = {"turns": 0, "messages": 0, "memories": 0}
    with options.client() as client:
        for session_id in session_ids:
            path = f"/v1/memory/sessions/{quoted(session_id)}"
            deleted = answer_of(client.delete(path, params=parameters))["deleted"]
            totals = {name: count + deleted[name] for name, count in totals.items()}
    sentence = "deleted: " + ", ".join(f"{count} {name}" for name, count in totals.items())
    print_result({"deleted": totals}, sentence, as_json=options.as_json)


@command(sessions)
def export(
    options: ApiOptions,
    *,
    session_id: Annotated[str | None, Argument(help="Its id. [default: all sessions]")] = None,
    agent: Annotated[str | None, Option(help="Only what this agent said or received.")] = None,
    out: Annotated[FileBinaryWrite | None, Option(help="Write to this file. [default: standard output]")] = None,
) -> None:
    """Write the messages of SESSION_ID, or of all sessions, as JSON lines in the order of the record."""
    from memory.cli.api_client import pages_of

    parameters = given(conversation_id=session_id, agent_id=agent, limit=str(PAGE_MESSAGES))
    target, written = out or sys.stdout.buffer, 0
    with options.client() as client, progress_bar("messages") as advance:
        for page in pages_of(client, "/v1/memory/messages", "messages", parameters):
            target.write(b"".join(msgspec.json.encode(message) + b"\n" for message in page["messages"]))
            written += len(page["messages"])
            advance(written, None)
    target.flush()


def _party(message: dict[str, Any], end: str) -> str:
    kind, name = message[f"{end}_type"], message[end]
    return f"{kind} {name}" if name else str(kind)
