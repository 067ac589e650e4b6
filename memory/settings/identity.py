"""Who a caller is: verified tokens of users, tokens of programs, and what happens if a request contradicts them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class JwtSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Used with `identity: jwt`. Keys come from exactly one of `jwks`, `jwks_file` and `jwks_url`."""

    issuer: Annotated[str, "Who issues the tokens: their claim `iss`, compared exactly."] = ""
    audiences: Annotated[
        tuple[str, ...], "A token's claim `aud` must hold one of these; none: tokens for any service are accepted."
    ] = ()
    jwks: Annotated[str, "The public keys of the issuer, as the JSON of a JWK set."] = ""
    jwks_file: Annotated[str, "File with the issuer's JWK set, read when Envoy starts."] = ""
    jwks_url: Annotated[
        str, "URL of the issuer's JWK set, fetched in the background; while there is none, no memory."
    ] = ""
    user_claim: Annotated[str, "Claim that names the user: text; nested claims with dots."] = "sub"
    tenant_claim: Annotated[
        str,
        "Claim that names the tenant: equal users of different tenants share nothing, and a token without it "
        "identifies nobody. Empty: one tenant.",
    ] = ""
    project_claim: Annotated[
        str,
        "Claim with the project, or the list of projects, that a request may use; a token without it identifies "
        "nobody. Empty: any.",
    ] = ""
    token_header: Annotated[
        str, "Header that holds the token: `authorization` after `Bearer `, any other as it is. Never the query."
    ] = "authorization"  # noqa: S105 - the name of a header
    forward: Annotated[bool, "Whether the upstream gets the header with a verified token."] = True
    required: Annotated[
        bool, "Whether chats without a valid token get 401; otherwise they continue without memory."
    ] = False


class ServiceTokenSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A program that may call the REST API and MCP, for listed users or for any.

    `sha256`: of the token, in hexadecimal, so that settings hold no secret.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z0-9_-]{1,40}$")]  # a metric label
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
    scopes: tuple[Literal["read", "write", "operate"], ...] = ("read",)
    users: tuple[str, ...] = ()
    any_user: bool = False


class IdentitySettings(msgspec.Struct, frozen=True, kw_only=True):
    on_mismatch: Annotated[
        Literal["no_memory", "reject"],
        "A chat whose body names another user or project than the edge: passed on without memory, or answered with "
        "403.",
    ] = "no_memory"
    trusted_origins: Annotated[
        tuple[str, ...],
        "Origins such as https://app.example, as `location.origin` shows them, whose web pages may chat with memory "
        "in modes `development` and `header`, next to pages of this machine; CORS is answered for them. Chats of "
        "other pages go without memory.",
    ] = ()
