"""Identifies the caller of the REST API, from headers that are trusted only if the edge vouches for them.

Ids are never trimmed, folded or corrected.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence

from memory.errors import BadInput
from memory.model import is_valid_id

USER_HEADER = b"x-authz-user-id"
SECRET_HEADER = b"x-memory-edge-secret"
DEVELOPMENT = "development"


class Unauthenticated(BadInput):
    """The caller is not identified, or not by somebody we trust."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="unauthenticated")


class Forbidden(BadInput):
    """The caller names another user."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="forbidden")


def caller_of(
    headers: Iterable[tuple[bytes, bytes]], asked_for: str | None, *, identity_mode: str, edge_secret: str
) -> str:
    """The user id of the caller. `headers` have lower-case names; `asked_for`: the query's `user_id`.

    In development the header is trusted from anyone, and the query if there is no header. In all other modes the header
    counts only together with the edge's secret, which is new at each start; without a secret nobody is trusted.
    """
    pairs = list(headers)
    is_development = identity_mode == DEVELOPMENT
    if not is_development and not _vouched([v for name, v in pairs if name == SECRET_HEADER], edge_secret):
        raise Unauthenticated("this API is called through the proxy, which says who the user is")
    caller = _named([v for name, v in pairs if name == USER_HEADER])
    if caller is None and is_development:
        caller = asked_for
    if caller is None:
        ways = "the header x-authz-user-id" + (" or ?user_id=" if is_development else "")
        raise Unauthenticated(f"no user: say who is calling by {ways}")
    if not is_valid_id(caller):
        raise BadInput("a user id has 1-256 bytes of UTF-8 without control characters or white space at an edge")
    if asked_for is not None and asked_for != caller:
        raise Forbidden("user_id must be the caller's own")
    return caller


def _vouched(secrets: Sequence[bytes], edge_secret: str) -> bool:
    return bool(edge_secret) and len(secrets) == 1 and hmac.compare_digest(secrets[0], edge_secret.encode())


def _named(values: Sequence[bytes]) -> str | None:
    """The value of the header; None if it occurs with different values."""
    if not values:
        return None
    if len(set(values)) > 1:
        raise BadInput("x-authz-user-id came twice with different values; send one")
    try:
        return values[0].decode()
    except UnicodeDecodeError:
        raise BadInput("x-authz-user-id is not UTF-8") from None
