"""Envoy's verification of users' tokens, for the template envoy/envoy.yaml; a run in another mode has none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from extproc.supervisor.remote_servers import Tree, remote_server
from memory.errors import BadSetting
from memory.settings.identity_checks import key_set_problem

FILTER = "envoy.filters.http.jwt_authn"
KEYS_CLUSTER = "jwt_keys"
PROVIDER = "users"
_PER_ROUTE = "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.PerRouteConfig"
_NO_URL = "http://127.0.0.1:9"  # fills the template where keys are not fetched; its cluster is left out
_IF_VALID: Tree = {"requires_any": {"requirements": [{"provider_name": PROVIDER}, {"allow_missing_or_failed": {}}]}}


@dataclass(frozen=True, slots=True)
class TokenVerification:
    """Whose tokens are accepted, and by which keys: exactly one of `keys` (JSON), `keys_file` and `keys_url`.

    `is_required`: chats without a valid token are answered with 401.
    """

    issuer: str
    audiences: tuple[str, ...] = ()
    keys: str = ""
    keys_file: str = ""
    keys_url: str = ""
    cache_seconds: float = 300.0  # for as long a withdrawn key is still accepted
    header: str = "authorization"
    is_forwarded: bool = True
    is_required: bool = False

    def __post_init__(self) -> None:
        """Raises `BadSetting` for a file without keys: Envoy would start, and believe no token."""
        if not self.keys_file:
            return
        try:
            problem = key_set_problem(Path(self.keys_file).read_bytes())
        except OSError as error:
            problem = error.strerror or "cannot be read"
        if problem:
            raise BadSetting(f"jwt.jwks_file {self.keys_file}: {problem}")


def token_values(tokens: TokenVerification | None, root_certificates: Path | None) -> dict[str, Tree]:
    """The placeholders `jwt_*`, also those of parts that `without_unused` takes out."""
    used = tokens or TokenVerification(issuer="")
    keys = remote_server(
        used.keys_url or _NO_URL,
        setting="jwt.jwks_url",
        example="https://login.example/keys.json",
        root_certificates=root_certificates,
    )
    local = {"filename": used.keys_file} if used.keys_file else {"inline_string": used.keys}
    return {
        "jwt_issuer": used.issuer,
        "jwt_audiences": list(used.audiences),
        "jwt_header": used.header,
        "jwt_prefix": "Bearer " if used.header == "authorization" else None,
        "jwt_forward": used.is_forwarded,
        "jwt_local_keys": None if used.keys_url else local,
        "jwt_keys_url": used.keys_url,
        "jwt_keys_cache": f"{used.cache_seconds:g}s",
        "jwt_keys_type": keys.discovery,
        "jwt_keys_address": keys.address,
        "jwt_keys_port": keys.port,
        "jwt_keys_transport_socket": keys.transport_socket,
        "jwt_of_chats": {"provider_name": PROVIDER} if used.is_required else _IF_VALID,
        "jwt_of_api": _IF_VALID,
        "jwt_on_chats": _per_route("chats") if tokens else None,
        "jwt_on_api": _per_route("api") if tokens else None,
    }


def without_unused(tree: Tree, tokens: TokenVerification | None) -> Tree:
    """The configuration without what this run does not need: the filter, or the fetching of keys. Changes `tree`."""
    resources = tree["static_resources"]
    if tokens is None or not tokens.keys_url:
        resources["clusters"] = [one for one in resources["clusters"] if one["name"] != KEYS_CLUSTER]
    for chain in resources["listeners"][0]["filter_chains"]:
        manager = chain["filters"][0]["typed_config"]
        for one in [one for one in manager["http_filters"] if one["name"] == FILTER]:
            if tokens is None:
                manager["http_filters"].remove(one)
            elif not tokens.keys_url:
                del one["typed_config"]["providers"][PROVIDER]["remote_jwks"]
    return tree


def _per_route(requirement: str) -> Tree:
    return {"@type": _PER_ROUTE, "requirement_name": requirement}
