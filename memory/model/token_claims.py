"""The user, tenant and projects that a verified token names.

Envoy verifies the token and hands over its payload, still in base64url, so that no value is changed on the way: as a
header of its own, a claim would lose white space at its edges. Nothing is verified here, and nothing is guessed: a
claim that is configured but missing, or of another type, is a problem, never a default.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from memory.model.identity import is_valid_id

CLAIMS_HEADER = "x-memory-token-claims"  # set by Envoy only, which removes what clients send under this name
CLAIMS_BYTES_MAX = 64 << 10  # Envoy's own limit for all headers of a request is lower

_JSON = msgspec.json.Decoder(dict[str, Any])
_MISSING = object()


@dataclass(frozen=True, slots=True)
class ClaimNames:
    """Which claims are read. `tenant`, `project`: "" if tokens name none.

    A name is that of a claim of the token, or else a path of names with dots between them.
    """

    user: str = "sub"
    tenant: str = ""
    project: str = ""


USUAL_CLAIMS = ClaimNames()


class ClaimProblem(StrEnum):
    """Why a verified token identifies nobody."""

    UNREADABLE = "unreadable_claims"
    USER = "invalid_user_claim"
    TENANT = "invalid_tenant_claim"
    PROJECT = "invalid_project_claim"


@dataclass(frozen=True, slots=True)
class VerifiedUser:
    """A user of a verified token. `user_id`: whose memories; `claimed_id`: the user claim as it stands in the token.

    `projects`: the only ones that may be used; None without a project claim in the settings.
    """

    user_id: str
    claimed_id: str
    projects: tuple[str, ...] | None = None


def verified_user(payload: bytes, names: ClaimNames) -> VerifiedUser | ClaimProblem:
    """The user of a token with this payload: base64url, with or without padding. Never raises."""
    claims = _decoded(payload)
    if claims is None:
        return ClaimProblem.UNREADABLE
    user = _claim(claims, names.user)
    if not isinstance(user, str) or not is_valid_id(user):
        return ClaimProblem.USER
    user_id = user
    if names.tenant:
        tenant = _claim(claims, names.tenant)
        if not isinstance(tenant, str) or not is_valid_id(tenant):
            return ClaimProblem.TENANT
        user_id = user_of_tenant(tenant, user)
        if not is_valid_id(user_id):  # too long together
            return ClaimProblem.TENANT
    if not names.project:
        return VerifiedUser(user_id, user)
    projects = _projects(_claim(claims, names.project))
    return ClaimProblem.PROJECT if projects is None else VerifiedUser(user_id, user, projects)


def user_of_tenant(tenant: str, user: str) -> str:
    """`TENANT/USER`, in which `%` and `/` of both are percent-encoded, so that no two pairs have the same id."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in (tenant, user))


def project_within(projects: tuple[str, ...] | None, named: str) -> str | None:
    """The project of a request that names `named` ("" for none); None if it may not be used.

    Without a name, the only project is meant. Several are a question that nobody has answered: without a project, a
    request would see the memories of all.
    """
    if projects is None or named in projects:
        return named
    return projects[0] if not named and len(projects) == 1 else None


def _decoded(payload: bytes) -> dict[str, Any] | None:
    if len(payload) > CLAIMS_BYTES_MAX:
        return None
    try:
        bare = payload.rstrip(b"=")
        return _JSON.decode(base64.b64decode(bare + b"=" * (-len(bare) % 4), b"-_", validate=True))
    except (binascii.Error, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _claim(claims: dict[str, Any], name: str) -> object:
    """The claim of that name, or at that path."""
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        found = found.get(part, _MISSING) if isinstance(found, dict) else _MISSING
    return found


def _projects(claim: object) -> tuple[str, ...] | None:
    """One project or a list of them; None for anything else, also for an empty list."""
    named = [claim] if isinstance(claim, str) else claim
    if not isinstance(named, list) or not named:
        return None
    if not all(isinstance(one, str) and is_valid_id(one) for one in named):
        return None
    return tuple(dict.fromkeys(named))
