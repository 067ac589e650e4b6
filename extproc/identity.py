"""Identifies the user of a request: from the headers that the edge set and the body, a scope or a refusal.

Both filters call `identify` with the same headers and body, so that the user who is recalled and the user who is learnt
are always the same. Nothing is guessed: in doubt there is no memory.

| mode          | header              | body's user_id       | result                     |
|---------------|---------------------|----------------------|----------------------------|
| any           | invalid, or two     | any                  | refused                    |
| any           | one                 | absent or the same   | the header's user          |
| any           | one                 | another              | refused                    |
| any           | absent              | absent               | anonymous                  |
| `development` | absent              | valid                | the body's user            |
| `development` | absent              | absent               | the API's own fields       |
| `header`      | absent              | given                | refused: nobody vouches    |

In mode `jwt` the header is that of Envoy's token filter, with the payload of a verified token, and the user is the one
of its claims (memory/model/token_claims.py); the rows are those of `header`. If a claim names projects, the body may
name one of them only, and without one in the body the only one is used.

In the first two modes the user is proven by nothing that a web page must hold: a chat that a foreign page may have made
a browser send is refused (memory/model/web_pages.py). A token is sent by the page itself, and proof enough.

The API's own fields are `metadata.user_id`, then `user`. Clients use them for any purpose, so they never conflict with
other sources, and without a valid id they are ignored. Envoy removes the header of clients that are not trusted
(envoy/envoy.yaml).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from memory.chat.own_fields import MemoryContext
from memory.model import Scope, is_valid_id
from memory.model.token_claims import (
    CLAIMS_HEADER,
    USUAL_CLAIMS,
    ClaimNames,
    ClaimProblem,
    VerifiedUser,
    project_within,
    verified_user,
)
from memory.model.web_pages import LOOPBACK_PAGES, PageHeaders, TrustedPages

IDENTITY_HEADER = "x-authz-user-id"

Headers: TypeAlias = Sequence[tuple[str, bytes]]
"""As on the wire: lower-case names including pseudo headers (":method", ":path", ":status"), values as bytes."""

Metadata: TypeAlias = Mapping[str, Mapping[str, object]]
"""Dynamic metadata of Envoy's filters: namespace, key, value. Clients cannot set it."""


def first_header(headers: Headers, name: str) -> str:
    """The first value of a header, "" without one. Bytes that are not ASCII only have to compare unequal."""
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


def number_in(headers: Headers, name: str) -> int:
    """The number in the first header of that name; 0 without one."""
    digits = first_header(headers, name)
    return int(digits[:20]) if digits.isascii() and digits.isdigit() else 0


class IdentityMode(StrEnum):
    """Whose statement about the user is trusted."""

    DEVELOPMENT = "development"  # the client's, header first, then body: only on a loopback listener
    HEADER = "header"  # the header's, set by a proxy whose address Envoy trusts
    JWT = "jwt"  # the issuer's, in a token that Envoy has verified


class RefusalReason(StrEnum):
    """Why an identity was refused; values of a metric label."""

    SEVERAL_HEADERS = "several_headers"
    INVALID_HEADER = "invalid_header"
    INVALID_USER = "invalid_user"
    DISAGREEMENT = "disagreement"
    UNPROVEN_USER = "unproven_user"
    INVALID_PROJECT = "invalid_project"
    INVALID_SESSION = "invalid_session"
    INVALID_AGENT = "invalid_agent"
    FOREIGN_PROJECT = "foreign_project"
    PROJECT_NOT_NAMED = "project_not_named"
    FOREIGN_PAGE = "foreign_page"
    UNREADABLE_CLAIMS = ClaimProblem.UNREADABLE.value
    INVALID_USER_CLAIM = ClaimProblem.USER.value
    INVALID_TENANT_CLAIM = ClaimProblem.TENANT.value
    INVALID_PROJECT_CLAIM = ClaimProblem.PROJECT.value


MISMATCHES = frozenset({RefusalReason.DISAGREEMENT, RefusalReason.FOREIGN_PROJECT})
"""Reasons for which body and edge contradict each other."""


@dataclass(frozen=True, slots=True)
class IdentityRules:
    """`claims`: of a token, in mode `jwt`. `pages`: those that may speak for their visitor, in the other modes."""

    claims: ClaimNames = USUAL_CLAIMS
    pages: TrustedPages = LOOPBACK_PAGES


USUAL_RULES = IdentityRules()


@dataclass(frozen=True, slots=True)
class RefusedIdentity:
    reason: RefusalReason


@dataclass(frozen=True, slots=True)
class Anonymous:
    """No identity was claimed."""


def identify(
    headers: Headers,
    context: MemoryContext | None,
    mode: IdentityMode,
    named_user: str = "",
    rules: IdentityRules = USUAL_RULES,
) -> Scope | RefusedIdentity | Anonymous:
    """The scope of this request. `context`: the body's `memory_context`, or None. Never raises.

    `named_user`: the user of the API's own fields; used in development mode only, if there is no other source.
    """
    said = context or MemoryContext()
    vouched = _vouched(headers, mode, rules.claims)
    if isinstance(vouched, RefusedIdentity):
        return vouched
    claimed_id = _agreed(vouched.claimed_id if vouched else "", said.user_id, mode)
    if isinstance(claimed_id, RefusedIdentity):
        return claimed_id
    if not claimed_id and mode is IdentityMode.DEVELOPMENT and is_valid_id(named_user):
        claimed_id = named_user
    if not claimed_id:
        return Anonymous()
    page, is_host_checked = PageHeaders.of(headers, host=":authority"), mode is IdentityMode.DEVELOPMENT
    if mode is not IdentityMode.JWT and rules.pages.is_foreign_chat(page, is_host_checked=is_host_checked):
        return RefusedIdentity(RefusalReason.FOREIGN_PAGE)
    for value, reason in (
        (said.project_id, RefusalReason.INVALID_PROJECT),
        (said.session_id, RefusalReason.INVALID_SESSION),
        (said.agent_id, RefusalReason.INVALID_AGENT),
    ):
        if value and not is_valid_id(value):
            return RefusedIdentity(reason)
    project_id = project_within(vouched.projects if vouched else None, said.project_id)
    if project_id is None:
        is_named = bool(said.project_id)
        return RefusedIdentity(RefusalReason.FOREIGN_PROJECT if is_named else RefusalReason.PROJECT_NOT_NAMED)
    return Scope(vouched.user_id if vouched else claimed_id, project_id, said.session_id, said.agent_id)


def _vouched(headers: Headers, mode: IdentityMode, claims: ClaimNames) -> VerifiedUser | RefusedIdentity | None:
    """The user of the verified token or of the header, None without one. Equal duplicates count as one."""
    wanted = CLAIMS_HEADER if mode is IdentityMode.JWT else IDENTITY_HEADER
    values = {value for name, value in headers if name == wanted}
    if len(values) > 1:
        return RefusedIdentity(RefusalReason.SEVERAL_HEADERS)
    if not values:
        return None
    if mode is IdentityMode.JWT:
        found = verified_user(values.pop(), claims)
        return RefusedIdentity(RefusalReason(found.value)) if isinstance(found, ClaimProblem) else found
    try:
        user_id = values.pop().decode()
    except UnicodeDecodeError:
        return RefusedIdentity(RefusalReason.INVALID_HEADER)
    return VerifiedUser(user_id, user_id) if is_valid_id(user_id) else RefusedIdentity(RefusalReason.INVALID_HEADER)


def _agreed(vouched: str, said: str, mode: IdentityMode) -> str | RefusedIdentity:
    """The user id from header and body; "" if neither names one."""
    if vouched:
        return vouched if said in ("", vouched) else RefusedIdentity(RefusalReason.DISAGREEMENT)
    if not said:
        return ""
    if mode is not IdentityMode.DEVELOPMENT:
        return RefusedIdentity(RefusalReason.UNPROVEN_USER)
    return said if is_valid_id(said) else RefusedIdentity(RefusalReason.INVALID_USER)
