"""`memproxy erase`: erases everything of a user and waits for the proof, or looks for a text in a data directory.

Erasing calls the REST API, which enforces access; the look reads files only, and needs no part to run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import BadParameter, Exit, Option, confirm, echo

from memory.cli.options import ConfigOption, JsonOption, YesOption
from memory.cli.output import print_json, waiting_for
from memory.errors import BadSetting
from memory.settings.loader import from_process

if TYPE_CHECKING:
    import httpx

POLL_SECONDS = 0.5
WAIT_SECONDS_MAX = 900.0
UNDER_WAY = {  # states that another one follows, with what is done meanwhile
    "deleted": "deleted; rewriting the files that hold bytes of it",
    "rewritten": "rewritten; looking through what is left",
}
FOUND_CODE = 1  # of `--scan`, and of an erasure after which something was found


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseOptions:
    """Whom to erase, or what to look for."""

    user: Annotated[str | None, Option(help="Erase everything of this user.")] = None
    project: Annotated[
        str | None, Option(help="With --user: erase only what is in this project, with what they shared in it.")
    ] = None
    scan: Annotated[
        str | None, Option(help="Instead: look for this text in all files of the data directory; exit code 1 if found.")
    ] = None
    is_waiting: Annotated[
        bool, Option("--wait", help="Until files are rewritten, and files and servers looked through.")
    ] = False
    yes: YesOption = False
    api: Annotated[str | None, Option(help="Base URL of the REST API. [default: http://127.0.0.1:API_PORT]")] = None
    config: ConfigOption = None
    as_json: JsonOption = False


def erase(options: EraseOptions) -> None:
    """Erase everything of a user, or of one project, with proof that nothing remains in files and on servers."""
    if (options.user is None) == (options.scan is None):
        raise BadParameter("give --user, or --scan: one of the two")
    if options.project is not None and not (options.user and options.project):
        raise BadParameter("give --project with a name, and with --user")
    if options.scan is not None:
        _scan(options, options.scan)
    elif options.user is not None:
        _erase(options, options.user)


def _erase(options: EraseOptions, user: str) -> None:
    from memory.cli.api_client import answer_of, api_client

    if not options.yes:
        what = "everything" if options.project is None else f"the project {options.project!r}"
        confirm(f"Erase {what} of {user!r} for good?", abort=True, err=True)
    asked = {} if options.project is None else {"project_id": options.project}
    with api_client(options.config, options.api, user) as client:
        client.timeout = WAIT_SECONDS_MAX
        with waiting_for("deleting rows, turns and notes") as show:
            erasure = answer_of(client.delete("/v1/memory/everything", params=asked))
            if options.is_waiting:
                erasure = _proven(client, erasure, asked, show)
    if options.as_json:
        print_json(erasure)
    else:
        echo(_said(erasure))
    if erasure["state"] == "remains":
        raise Exit(FOUND_CODE)


def _proven(
    client: httpx.Client, erasure: dict[str, Any], asked: dict[str, str], show: Callable[[str], None]
) -> dict[str, Any]:
    """The erasure once its files are looked through, or what it is after `WAIT_SECONDS_MAX`."""
    from memory.cli.api_client import answer_of, quoted

    ends_at = time.monotonic() + WAIT_SECONDS_MAX
    before = ""
    while time.monotonic() < ends_at and erasure["state"] in UNDER_WAY:
        if erasure["state"] != before:
            before = erasure["state"]
            show(UNDER_WAY[before])
        time.sleep(POLL_SECONDS)
        erasure = answer_of(client.get(f"/v1/memory/erasures/{quoted(erasure['erasure_id'])}", params=asked))
    return erasure


def _said(erasure: dict[str, Any]) -> str:
    counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in erasure["deleted"].items())
    lines = [f"erasure {erasure['erasure_id']}: {erasure['state']}", f"deleted: {counts}"]
    if scan := erasure["scan"]:
        for place in scan["places"]:
            found = ", ".join(place["found_in"]) or "nothing"
            lines.append(f"{place['place']}: {place['searched']}: {place['items']}, {place['bytes']} bytes: {found}")
            lines += [f"{place['place']}: not searched: {reason}" for reason in place["not_searched"]]
    return "\n".join(lines)


def _scan(options: EraseOptions, text: str) -> None:
    from memory.adapters.file_scan import scanned

    folder = Path(from_process(options.config, {}).data_dir)
    if not folder.is_dir() or not any(folder.iterdir()):
        raise BadSetting(f"there is nothing in {folder}: name the data_dir of the deployment")
    seen = scanned([folder], [text])
    if options.as_json:
        print_json(seen._asdict())
    else:
        found = ", ".join(seen.found_in) or "nothing"
        echo(f"looked through {seen.files} files, {seen.bytes} bytes, in {folder}: {found}")
        for reason in seen.not_searched:
            echo(f"not searched: {reason}")
    if seen.found_in:
        raise Exit(FOUND_CODE)
