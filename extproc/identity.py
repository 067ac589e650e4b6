"""Who is asking: headers as the edge left them, and what the body says of itself, become a scope or a refusal.

Both filters call `identify`, with the same headers and the same body, so that what is recalled for a user and what is
learnt about a user can never be two users. It must never guess: anything doubtful means no memory, never everybody's.

| mode          | header              | body's user_id       | result                     |
|---------------|---------------------|----------------------|----------------------------|
| any           | invalid, or two     | any                  | refused                    |
| any           | one                 | absent or the same   | the header's user          |
| any           | one                 | another              | refused                    |
| any           | absent              | absent               | anonymous                  |
| `development` | absent              | valid                | the body's user            |
| `development` | absent              | absent               | whom the API's fields name |
| `header`      | absent              | given                | refused: nobody vouches    |

The API's own fields are `metadata.user_id`, then `user`. They are the client's for any purpose, so they never disagree
with anything, and where they hold no valid id they name nobody. Whether the header may be believed at all is Envoy's
part: it removes the header where it may not (envoy/envoy.yaml).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from memory.chat.own_fields import MemoryContext
from memory.model import Scope, is_valid_id

IDENTITY_HEADER = "x-authz-user-id"

Headers: TypeAlias = Sequence[tuple[str, bytes]]
"""As on the wire: names in lower case, pseudo headers (":method", ":path", ":status") included, values as bytes."""

Metadata: TypeAlias = Mapping[str, Mapping[str, object]]
"""What Envoy's filters wrote down about the exchange: namespace, key, value. A client cannot set it."""


def first_header(headers: Headers, name: str) -> str:
    """The first value of a header, "" without one. Bytes that are not ASCII only have to compare unequal."""
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


class IdentityMode(StrEnum):
    """Whose word counts."""

    DEVELOPMENT = "development"  # the client's own, header first, then body: only ever on a loopback listener
    HEADER = "header"  # the header's, set by a proxy in front of us that Envoy trusts by its address


class RefusalReason(StrEnum):
    """Why an identity was refused; each is a value of a metric's label."""

    SEVERAL_HEADERS = "several_headers"
    INVALID_HEADER = "invalid_header"
    INVALID_USER = "invalid_user"
    DISAGREEMENT = "disagreement"
    UNPROVEN_USER = "unproven_user"
    INVALID_PROJECT = "invalid_project"
    INVALID_SESSION = "invalid_session"
    INVALID_AGENT = "invalid_agent"


@dataclass(frozen=True, slots=True)
class Refused:
    """Somebody claims to be somebody, and we do not believe it."""

    reason: RefusalReason


@dataclass(frozen=True, slots=True)
class Anonymous:
    """Nobody claims to be anybody."""


def identify(
    headers: Headers, context: MemoryContext | None, mode: IdentityMode, named_user: str = ""
) -> Scope | Refused | Anonymous:
    """The scope of this request. `context` is the body's `memory_context`, None where it has none. Never raises.

    `named_user`: whom the API's own fields name, believed in development and where nothing else says who it is.
    """
    said = context or MemoryContext()
    vouched = _from_header(headers)
    if isinstance(vouched, Refused):
        return vouched
    user_id = _agreed(vouched, said.user_id, mode)
    if isinstance(user_id, Refused):
        return user_id
    if not user_id and mode is IdentityMode.DEVELOPMENT and is_valid_id(named_user):
        user_id = named_user
    if not user_id:
        return Anonymous()
    for value, reason in (
        (said.project_id, RefusalReason.INVALID_PROJECT),
        (said.session_id, RefusalReason.INVALID_SESSION),
        (said.agent_id, RefusalReason.INVALID_AGENT),
    ):
        if value and not is_valid_id(value):
            return Refused(reason)
    return Scope(user_id, said.project_id, said.session_id, said.agent_id)


def _from_header(headers: Headers) -> str | Refused:
    """The header's user id, "" without the header. The same value twice is one value."""
    values = {value for name, value in headers if name == IDENTITY_HEADER}
    if not values:
        return ""
    if len(values) > 1:
        return Refused(RefusalReason.SEVERAL_HEADERS)
    try:
        user_id = values.pop().decode()
    except UnicodeDecodeError:
        return Refused(RefusalReason.INVALID_HEADER)
    return user_id if is_valid_id(user_id) else Refused(RefusalReason.INVALID_HEADER)


def _agreed(vouched: str, said: str, mode: IdentityMode) -> str | Refused:
    """Header and body put together; "" when neither says anything."""
    if vouched:
        return vouched if said in ("", vouched) else Refused(RefusalReason.DISAGREEMENT)
    if not said:
        return ""
    if mode is not IdentityMode.DEVELOPMENT:
        return Refused(RefusalReason.UNPROVEN_USER)
    return said if is_valid_id(said) else Refused(RefusalReason.INVALID_USER)
