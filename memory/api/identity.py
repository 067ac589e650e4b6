"""Identifies the user who calls the REST API, from headers that are trusted only if the edge vouches for them; and the
tokens by which programs call it, for listed users or for any, or operators, whose calls concern all users.

Ids are never trimmed, folded or corrected. A token of a program is `Authorization: Bearer mpt_…`. Settings hold its
SHA-256 only: tokens are long and random, so that no slower hash is needed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from memory.errors import BadInput
from memory.model import Scope
from memory.model.token_claims import CLAIMS_HEADER, USUAL_CLAIMS, ClaimNames, ClaimProblem, VerifiedUser, verified_user

USER_HEADER = b"x-authz-user-id"
SECRET_HEADER = b"x-memory-edge-secret"
DEVELOPMENT = "development"
JWT = "jwt"
AUTHORIZATION = b"authorization"
TOKEN_PREFIX = "mpt_"  # noqa: S105 - what tells our tokens from those of others in the same header, and is none
_SCHEME = b"bearer "

Access: TypeAlias = Literal["read", "write", "operate"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose memories a call concerns. `projects`: the only ones that it may use; None: all.

    `claimed_id`: the id as the caller knows it, if a token names it together with a tenant. `may_keep_secrets`:
    they may have memories stored with the secrets in them.
    """

    user_id: str
    projects: tuple[str, ...] | None = None
    claimed_id: str = field(default="", compare=False)
    may_keep_secrets: bool = field(default=False, compare=False)


class Unauthenticated(BadInput):
    """The caller is not identified, or not by somebody we trust."""

    code = "unauthenticated"


class Forbidden(BadInput):
    """The caller names another user."""

    code = "forbidden"


def refuse_unredacted(caller: Caller, *, redact: bool) -> None:
    """Raises `Forbidden` for a caller who may not have secrets stored and asks for it."""
    if not redact and not caller.may_keep_secrets:
        raise Forbidden("redact: false is for service tokens that have the scope operate; leave it out")


def caller_of(
    headers: Iterable[tuple[bytes, bytes]],
    asked_for: str | None,
    *,
    identity_mode: str,
    edge_secret: str,
    claims: ClaimNames = USUAL_CLAIMS,
) -> Caller:
    """The user who calls. `headers` have lower-case names; `asked_for`: the query's `user_id`.

    In development the header is trusted from anyone, and the query if there is no header. In all other modes headers
    count only together with the edge's secret, which is new at each start; without a secret nobody is trusted. In mode
    `jwt` the user is that of the verified token, and `asked_for` its claim, or the id that answers show; the identity
    header, which the edge removes, then comes from an operator's tool that knows the secret.
    """
    pairs = list(headers)
    is_development = identity_mode == DEVELOPMENT
    if not is_development and not _vouched([v for name, v in pairs if name == SECRET_HEADER], edge_secret):
        raise Unauthenticated("this API is called through the proxy, which says who the user is")
    verified = _of_token(pairs, claims) if identity_mode == JWT else None
    named = named_in_header(pairs)
    if verified is not None and named is not None:
        raise BadInput("x-authz-user-id came beside a token; send one of them")
    caller = verified.claimed_id if verified is not None else named
    if caller is None and is_development:
        caller = asked_for
    if caller is None:
        raise Unauthenticated(f"no user: say who is calling by {_ways(identity_mode)}")
    Scope(caller)  # refuses invalid ids
    found = Caller(verified.user_id, verified.projects, caller) if verified is not None else Caller(caller)
    if asked_for is not None and asked_for not in (caller, found.user_id):  # with its tenant, as answers show it
        raise Forbidden("user_id must be the caller's own")
    return found


def _ways(identity_mode: str) -> str:
    if identity_mode == JWT:
        return "a valid token"
    return "the header x-authz-user-id" + (" or ?user_id=" if identity_mode == DEVELOPMENT else "")


def _of_token(headers: Sequence[tuple[bytes, bytes]], claims: ClaimNames) -> VerifiedUser | None:
    """The user of a verified token; None without one."""
    payloads = {value for name, value in headers if name == CLAIMS_HEADER.encode()}
    if not payloads:
        return None
    found = verified_user(payloads.pop(), claims) if len(payloads) == 1 else ClaimProblem.UNREADABLE
    if isinstance(found, ClaimProblem):
        raise Unauthenticated(f"the token is valid, but does not say who is calling ({found})")
    return found


def _vouched(secrets: Sequence[bytes], edge_secret: str) -> bool:
    return bool(edge_secret) and len(secrets) == 1 and hmac.compare_digest(secrets[0], edge_secret.encode())


def named_in_header(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The value of the identity header, None without it. Raises `BadInput` for several values."""
    values = [value for name, value in headers if name == USER_HEADER]
    if not values:
        return None
    if len(set(values)) > 1:
        raise BadInput("x-authz-user-id came twice with different values; send one")
    try:
        return values[0].decode()
    except UnicodeDecodeError:
        raise BadInput("x-authz-user-id is not UTF-8") from None


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
