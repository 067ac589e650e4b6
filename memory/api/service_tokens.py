"""Tokens by which programs call the API: for listed users or for any, to read, to write, or both;
or for the calls of operators, which concern all users.

A token is `Authorization: Bearer mpt_…`. Settings hold its SHA-256 only: tokens are long and random, so that no slower
hash is needed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

AUTHORIZATION = b"authorization"
TOKEN_PREFIX = "mpt_"  # noqa: S105 - what tells our tokens from those of others in the same header, and is none
_SCHEME = b"bearer "

Access: TypeAlias = Literal["read", "write", "operate"]


@dataclass(frozen=True, slots=True)
class ServiceToken:
    """`digest`: SHA-256 of the token; `users`: None for any."""

    name: str
    digest: bytes
    scopes: frozenset[Access]
    users: frozenset[str] | None


def presented_tokens(headers: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
    """The service tokens of a request, known or not. `headers` have lower-case names."""
    bearers = (
        value[len(_SCHEME) :].strip()
        for name, value in headers
        if name == AUTHORIZATION and value[: len(_SCHEME)].lower() == _SCHEME
    )
    return [bearer for bearer in bearers if bearer.startswith(TOKEN_PREFIX.encode())]


def matching_token(presented: bytes, tokens: Sequence[ServiceToken]) -> ServiceToken | None:
    """The one with this digest. Compares with all, in constant time each."""
    digest = hashlib.sha256(presented).digest()
    found = [token for token in tokens if hmac.compare_digest(token.digest, digest)]
    return found[0] if found else None
