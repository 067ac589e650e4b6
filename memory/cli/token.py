"""`memproxy token`: makes a service token, and the entry of the settings that accepts it. Stores nothing."""

from __future__ import annotations

import hashlib
import json
import secrets
from enum import StrEnum
from typing import Annotated

import msgspec
from typer import Argument, Option, echo

from memory.cli.options import JsonOption
from memory.cli.output import print_json
from memory.errors import BadInput
from memory.settings import ServiceTokenSettings
from memory.typed import converted

TOKEN_BYTES = 32


class TokenScopeName(StrEnum):
    READ = "read"
    WRITE = "write"
    OPERATE = "operate"


def token(
    *,
    name: Annotated[str, Argument(help="The program: lower-case letters, digits, - and _.")],
    scopes: Annotated[
        list[TokenScopeName] | None, Option("--scope", help="What it may do; repeatable. [default: read]")
    ] = None,
    users: Annotated[list[str] | None, Option("--user", help="A user whose memories it may use; repeatable.")] = None,
    any_user: Annotated[bool, Option("--any-user", help="It may use the memories of every user.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a service token for the program NAME. It is shown once; settings hold its hash only."""
    from memory.api.identity import TOKEN_PREFIX

    if any_user == bool(users):
        raise BadInput("say whose memories it may use: --user for each of them, or --any-user")
    made = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    digest = hashlib.sha256(made.encode()).hexdigest()
    whose = {"users": users} if users else {"any_user": True}
    entry = {
        "name": name,
        "sha256": digest,
        "scopes": list(dict.fromkeys(one.value for one in scopes or [TokenScopeName.READ])),
        **whose,
    }
    try:
        converted(entry, ServiceTokenSettings)
    except msgspec.ValidationError as error:
        raise BadInput(f"a name has 1 to 40 lower-case letters, digits, - or _: {error}") from None
    if as_json:
        print_json({"token": made, "setting": entry})
        return
    echo(f"token: {made}")
    echo(f"add to service_tokens: {json.dumps(entry, ensure_ascii=False)}")
