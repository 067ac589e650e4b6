"""Envoy's verification of users' tokens, for the template envoy/envoy.yaml; a run in another mode has none."""

from __future__ import annotations

from pathlib import Path

from extproc.supervisor.remote_servers import Tree, remote_server
from memory.errors import BadSetting
from memory.settings import JwtSettings, Settings
from memory.settings.identity_checks import key_set_problem

FILTER = "envoy.filters.http.jwt_authn"
KEYS_CLUSTER = "jwt_keys"
PROVIDER = "users"
_USUAL_HEADER = JwtSettings().token_header
_PER_ROUTE = "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.PerRouteConfig"
_NO_URL = "http://127.0.0.1:9"  # fills the template where keys are not fetched; its cluster is left out
_IF_VALID: Tree = {"requires_any": {"requirements": [{"provider_name": PROVIDER}, {"allow_missing_or_failed": {}}]}}


def token_values(settings: Settings) -> dict[str, Tree]:
    """The placeholders `jwt_*`, also those of parts that `without_unused` takes out. Raises `BadSetting`."""
    is_used = settings.identity == "jwt"
    jwt = settings.jwt if is_used else JwtSettings()
    keys = remote_server(jwt.jwks_url or _NO_URL, setting="jwt.jwks_url", example="https://login.example/keys.json")
    return {
        "jwt_issuer": jwt.issuer,
        "jwt_audiences": list(jwt.audiences),
        "jwt_header": jwt.token_header,
        "jwt_prefix": "Bearer " if jwt.token_header == _USUAL_HEADER else None,
        "jwt_forward": jwt.forward,
        "jwt_local_keys": None if jwt.jwks_url else _local_keys(jwt),
        "jwt_keys_url": jwt.jwks_url,
        "jwt_keys_type": keys.discovery,
        "jwt_keys_address": keys.address,
        "jwt_keys_port": keys.port,
        "jwt_keys_transport_socket": keys.transport_socket,
        "jwt_of_chats": {"provider_name": PROVIDER} if jwt.required else _IF_VALID,
        "jwt_of_api": _IF_VALID,
        "jwt_on_chats": _per_route("chats") if is_used else None,
        "jwt_on_api": _per_route("api") if is_used else None,
    }


def _local_keys(jwt: JwtSettings) -> Tree:
    """Raises `BadSetting` for a file without keys: Envoy would start, and believe no token."""
    if not jwt.jwks_file:
        return {"inline_string": jwt.jwks}
    file = Path(jwt.jwks_file).absolute()
    try:
        problem = key_set_problem(file.read_bytes())
    except OSError as error:
        problem = error.strerror or "cannot be read"
    if problem:
        raise BadSetting(f"jwt.jwks_file {file}: {problem}")
    return {"filename": str(file)}


def without_unused(tree: Tree, settings: Settings) -> None:
    """Take out what this run does not need: the filter, or the fetching of keys."""
    is_used = settings.identity == "jwt"
    is_fetching = is_used and bool(settings.jwt.jwks_url)
    resources = tree["static_resources"]
    if not is_fetching:
        resources["clusters"] = [one for one in resources["clusters"] if one["name"] != KEYS_CLUSTER]
    for chain in resources["listeners"][0]["filter_chains"]:
        manager = chain["filters"][0]["typed_config"]
        for one in [one for one in manager["http_filters"] if one["name"] == FILTER]:
            if not is_used:
                manager["http_filters"].remove(one)
            elif not is_fetching:
                del one["typed_config"]["providers"][PROVIDER]["remote_jwks"]


def _per_route(requirement: str) -> Tree:
    return {"@type": _PER_ROUTE, "requirement_name": requirement}
