"""`memproxy erase`: erases everything of a user and waits until files are rewritten, or looks for what is left of one;
and `opt-out` and `opt-in`, a user's switch for all of memory.

Erasing calls the REST API, which enforces access; the look reads files and servers, and needs no part to run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import BadParameter, Exit, Option, confirm, echo

from memory.cli.options import ApiOption, ApiOptions, ConfigOption, JsonOption, YesOption
from memory.cli.output import print_json, print_result, waiting_for
from memory.errors import BadSetting
from memory.settings.loader import from_process

if TYPE_CHECKING:
    import httpx

POLL_SECONDS = 0.5
WAIT_SECONDS_MAX = 900.0
FOUND_CODE = 1  # of `--verify` that found the id, or files that are not rewritten


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseOptions:
    user: Annotated[str | None, Option(help="Erase everything of this user.")] = None
    project: Annotated[
        str | None, Option(help="With --user: erase only what is in this project, with what they shared in it.")
    ] = None
    verify: Annotated[
        str | None,
        Option(
            help="Instead: look for this user's id in all files of the data directory, in the database and in Milvus; "
            "exit code 1 if found."
        ),
    ] = None
    is_waiting: Annotated[bool, Option("--wait", help="Until files are rewritten.")] = False
    yes: YesOption = False
    api: ApiOption = None
    config: ConfigOption = None
    as_json: JsonOption = False


def erase(options: EraseOptions) -> None:
    """Erase everything of a user, or of one project; or verify that files and servers hold nothing of a user."""
    if (options.user is None) == (options.verify is None):
        raise BadParameter("give --user, or --verify: one of the two")
    if options.project is not None and not (options.user and options.project):
        raise BadParameter("give --project with a name, and with --user")
    if options.verify is not None:
        _verify(options, options.verify)
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
                erasure = _rewritten(client, erasure, asked, show)
    if options.as_json:
        print_json(erasure)
    else:
        echo(f"erasure {erasure['erasure_id']}: {erasure['state']}")
        echo("deleted: " + ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in erasure["deleted"].items()))


def _rewritten(
    client: httpx.Client, erasure: dict[str, Any], asked: dict[str, str], show: Callable[[str], None]
) -> dict[str, Any]:
    """The erasure once its files are rewritten, or what it is after `WAIT_SECONDS_MAX`."""
    from memory.cli.api_client import answer_of, quoted

    ends_at = time.monotonic() + WAIT_SECONDS_MAX
    show("deleted; rewriting the files that hold bytes of it")
    while time.monotonic() < ends_at and erasure["state"] == "deleted":
        time.sleep(POLL_SECONDS)
        erasure = answer_of(client.get(f"/v1/memory/erasures/{quoted(erasure['erasure_id'])}", params=asked))
    return erasure


def _verify(options: EraseOptions, user: str) -> None:
    from memory.model import Scope
    from memory.processes.erasure_parts import verified

    Scope(user)  # refuses invalid ids
    settings = from_process(options.config, {})
    folder = Path(settings.data_dir)
    if not settings.database_url and not (folder.is_dir() and any(folder.iterdir())):
        raise BadSetting(f"there is nothing in {folder}: name the data_dir of the deployment")
    with waiting_for("looking through files and servers"):
        found = asyncio.run(verified(settings, user))
    if options.as_json:
        print_json(asdict(found))
    else:
        for place in found.places:
            echo(f"{place.place}: {place.searched}: {place.items}: {', '.join(place.found_in) or 'nothing'}")
            for reason in place.not_searched:
                echo(f"{place.place}: not searched: {reason}")
        if found.waiting:
            echo(f"erasures whose files are not rewritten yet: {found.waiting}; verify again once they are")
    if not found.is_clean:
        raise Exit(FOUND_CODE)


def opt_out(options: ApiOptions) -> None:
    """Switch memory off for a user: nothing is recalled, recorded or learnt. What is stored stays until forgotten."""
    _changed("PUT", options)


def opt_in(options: ApiOptions) -> None:
    """Switch memory on again for a user who has opted out."""
    _changed("DELETE", options)


def _changed(method: str, options: ApiOptions) -> None:
    state = options.asked(method, "/v1/memory/opt-out")
    sentence = f"opted out since {state['opted_out_since']}" if state["opted_out"] else "memory is on"
    print_result(state, sentence, as_json=options.as_json)
