"""The doctor's check of who identifies users, and whether that can work. Shows no token and no key."""

from __future__ import annotations

import asyncio
import ipaddress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memory.adapters.http_probe import fetched_key_set
from memory.errors import Unavailable
from memory.processes.findings import Finding, Level
from memory.settings import Settings
from memory.settings.checks import is_loopback, key_set_problem
from memory.typed import from_json

NAME = "identity"
FETCH_SECONDS_MAX = 5.0  # as in envoy.yaml


async def identity_finding(settings: Settings) -> Finding:
    """Never raises for keys that are missing or broken; `OSError` is the caller's."""
    tokens = settings.service_tokens
    programs = f"; {len(tokens)} service tokens" if tokens else ""
    match settings.identity:
        case "development":
            says = f"development: every client on {settings.host} is believed{programs}"
            return Finding(NAME, Level.OK, says)
        case "header":
            return _header_finding(settings, programs)
        case "jwt":
            return await _jwt_finding(settings, programs)


def _header_finding(settings: Settings, programs: str) -> Finding:
    peers = [ipaddress.ip_network(peer) for peer in settings.trusted_peers]
    says = f"header: x-authz-user-id from {', '.join(map(str, peers)) or 'nobody'} is believed{programs}"
    if not peers:
        return Finding(NAME, Level.FAIL, says, "name the networks of your gateway in trusted_peers")
    if any(peer.prefixlen == 0 for peer in peers):
        advice = "restrict trusted_peers to your gateway: now whoever reaches the port may name any user"
        return Finding(NAME, Level.WARN, says, advice)
    return Finding(NAME, Level.OK, says)


async def _jwt_finding(settings: Settings, programs: str) -> Finding:
    jwt = settings.jwt
    where = jwt.jwks_url or jwt.jwks_file or "the setting jwt.jwks"
    says = f"jwt: tokens of {jwt.issuer}, keys from {where}; {_claims(settings)}{programs}"
    try:
        keys = await _key_set(settings)
    except Unavailable as error:
        advice = "correct jwt.jwks_url, or let this machine reach it; until then "
        return Finding(NAME, Level.FAIL, f"{says}: {error}", advice + _consequence(settings))
    except OSError as error:
        advice = "correct jwt.jwks_file; Envoy does not start without it"
        return Finding(NAME, Level.FAIL, f"{says}: {error.strerror}", advice)
    problem = key_set_problem(keys)
    if problem:
        return Finding(NAME, Level.FAIL, f"{says}: {problem}", f"correct it; until then {_consequence(settings)}")
    says = f"{says}; {len(from_json(keys, dict[str, Any])['keys'])} keys"
    if not jwt.audiences:
        advice = "set jwt.audiences: now a token that this issuer made for any other service is accepted"
        return Finding(NAME, Level.WARN, says, advice)
    if _is_exposed(jwt.jwks_url):
        return Finding(NAME, Level.WARN, says, "use https in jwt.jwks_url: whoever changes the keys may be anybody")
    return Finding(NAME, Level.OK, says)


async def _key_set(settings: Settings) -> bytes:
    jwt = settings.jwt
    if jwt.jwks_url:
        return await fetched_key_set(jwt.jwks_url, seconds=FETCH_SECONDS_MAX)
    if jwt.jwks_file:
        return await asyncio.to_thread(Path(jwt.jwks_file).read_bytes)
    return jwt.jwks.encode()


def _claims(settings: Settings) -> str:
    jwt = settings.jwt
    return (
        f"user from claim {jwt.user_claim}, tenant from {jwt.tenant_claim or 'no claim, so all users are of one'}, "
        f"projects from {jwt.project_claim or 'no claim, so any may be named'}"
    )


def _consequence(settings: Settings) -> str:
    return "chats get 401" if settings.jwt.required else "chats go on without memory"


def _is_exposed(url: str) -> bool:
    """Whether keys come in plain text from another machine."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")
