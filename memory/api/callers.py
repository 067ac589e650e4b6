"""Identifies the callers of REST and MCP: users by the edge, programs by their service tokens, which are counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from memory.api.browsers import refuse_foreign_origin, refuse_pages
from memory.api.identity import (
    DEVELOPMENT,
    Access,
    Caller,
    Forbidden,
    ServiceToken,
    Unauthenticated,
    caller_of,
    matching_token,
    named_in_header,
    presented_tokens,
)
from memory.model import Scope
from memory.model.token_claims import USUAL_CLAIMS, ClaimNames
from memory.model.web_pages import LOOPBACK_PAGES, TrustedPages
from memory.runtime.metrics import Metrics

UNKNOWN = "unknown"  # in place of a token's name; no name of ours, since names stand in settings


@dataclass(frozen=True, slots=True)
class CallerRules:
    """`claims`: of users' tokens, in mode `jwt`; `tokens`: of programs; `pages`: trusted ones of other hosts."""

    claims: ClaimNames = USUAL_CLAIMS
    tokens: tuple[ServiceToken, ...] = ()
    pages: TrustedPages = LOOPBACK_PAGES


USERS_ONLY = CallerRules()


class Callers:
    """Who is calling, and whether they may."""

    def __init__(
        self, *, identity_mode: str, edge_secret: str, metrics: Metrics, rules: CallerRules = USERS_ONLY
    ) -> None:
        """`edge_secret`: added by the proxy; "" trusts nobody outside development."""
        self.identity_mode = identity_mode
        self._edge_secret = edge_secret
        self._rules = rules
        self._metrics = metrics

    def identify(self, headers: Iterable[tuple[bytes, bytes]], asked_for: str | None, access: Access) -> Caller:
        """Raises `Unauthenticated`, `Forbidden`, or another `BadInput`. A service token decides alone."""
        pairs = list(headers)
        presented = presented_tokens(pairs)
        if not presented:
            caller = caller_of(
                pairs,
                asked_for,
                identity_mode=self.identity_mode,
                edge_secret=self._edge_secret,
                claims=self._rules.claims,
            )
            return replace(caller, may_keep_secrets=self.identity_mode == DEVELOPMENT)
        with self._counted(presented) as token:
            return _caller_with(token, pairs, asked_for, access)

    def refuse_page(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raises `Forbidden` for a call of a foreign web page."""
        refuse = refuse_pages if self.identity_mode == DEVELOPMENT else refuse_foreign_origin
        refuse(headers, self._rules.pages)

    def admit_operator(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raises `Forbidden` or `Unauthenticated` for everybody but operators; in development anybody is one."""
        presented = presented_tokens(headers)
        if not presented:
            if self.identity_mode == DEVELOPMENT:
                return
            raise Forbidden("this call is for operators: send a service token that has the scope operate")
        with self._counted(presented) as token:
            _known_with(token, "operate")

    @contextmanager
    def _counted(self, presented: Sequence[bytes]) -> Iterator[ServiceToken | None]:
        """The token that these bytes are, if they are one; counts whether the call is accepted with it."""
        token = matching_token(presented[0], self._rules.tokens) if len(presented) == 1 else None
        name, is_accepted = token.name if token else UNKNOWN, False
        try:
            yield token
            is_accepted = True
        finally:
            outcome = "accepted" if is_accepted else "refused"
            self._metrics.service_token_calls.labels(name, outcome).inc()


def _caller_with(
    token: ServiceToken | None, headers: list[tuple[bytes, bytes]], asked_for: str | None, access: Access
) -> Caller:
    """The user whom a program names, if its token allows that."""
    token = _known_with(token, access)
    in_header = named_in_header(headers)
    user_id = in_header if in_header is not None else asked_for
    if user_id is None:
        raise Unauthenticated("no user: name the user by ?user_id= or the header x-authz-user-id")
    if asked_for not in (None, user_id):
        raise Forbidden("?user_id= and the header x-authz-user-id name two users")
    Scope(user_id)  # refuses invalid ids
    if token.users is not None and user_id not in token.users:
        raise Forbidden("this service token is not for that user")
    return Caller(user_id, may_keep_secrets="operate" in token.scopes)


def _known_with(token: ServiceToken | None, access: Access) -> ServiceToken:
    if token is None:
        raise Unauthenticated("this service token is not known")
    if access not in token.scopes:
        raise Forbidden(f"this service token has no scope {access}")
    return token
