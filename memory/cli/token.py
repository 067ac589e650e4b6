"""`memproxy token`: makes a service token, and the entry of the settings that accepts it. Stores nothing."""

from __future__ import annotations

import hashlib
import json
import secrets

import click
import msgspec

from memory.api.service_tokens import TOKEN_PREFIX
from memory.cli.output import print_json
from memory.errors import BadInput
from memory.settings import ServiceTokenSettings

TOKEN_BYTES = 32


@click.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["read", "write", "operate"]),
    multiple=True,
    default=("read",),
    help="What it may do; may be repeated. [default: read]",
)
@click.option("--user", "users", multiple=True, help="A user whose memories it may use; may be repeated.")
@click.option("--any-user", is_flag=True, help="It may use the memories of every user.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
def token(name: str, scopes: tuple[str, ...], users: tuple[str, ...], *, any_user: bool, as_json: bool) -> None:
    """Make a service token for the program NAME. It is shown once; settings hold its hash only."""
    if any_user == bool(users):
        raise BadInput("say whose memories it may use: --user for each of them, or --any-user")
    made = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    digest = hashlib.sha256(made.encode()).hexdigest()
    whose = {"any_user": True} if any_user else {"users": list(users)}
    entry = {"name": name, "sha256": digest, "scopes": list(dict.fromkeys(scopes)), **whose}
    try:
        msgspec.convert(entry, ServiceTokenSettings)
    except msgspec.ValidationError as error:
        raise BadInput(f"a name has 1 to 40 lower-case letters, digits, - or _: {error}") from None
    if as_json:
        print_json({"token": made, "setting": entry})
        return
    click.echo(f"token: {made}")
    click.echo(f"add to service_tokens: {json.dumps(entry, ensure_ascii=False)}")


__all__ = ["token"]
