"""Renders Envoy's configuration from envoy/envoy.yaml and the settings of a run.

The result is validated with the typed library, so that unknown fields are errors. It contains no secrets: Envoy reads
the memory API's from its environment variable `MEMPROXY_EDGE_SECRET`.
"""

from __future__ import annotations

import importlib
import ipaddress
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from extproc.addresses import PORT_MAX, SECRET_METADATA, HostAndPort, address_of
from extproc.edge_trust import signal_reader
from extproc.identity import IDENTITY_HEADER
from extproc.supervisor.remote_servers import Tree, remote_server
from memory.errors import BadSetting
from memory.model.web_pages import LOOPBACK_ORIGIN
from memory.settings import JwtSettings, Settings
from memory.settings.checks import key_set_problem
from memory.settings.switches import TracingSettings

LOOPBACK = ("127.0.0.0/8", "::1/128")
OBSERVED_PER_CONNECTION = 10  # a stream of an aborted exchange ends some seconds later than its connection
EDITED_HEADERS = ("content-length",)
REJECTION_HEADERS = ("content-type",)

SOCKET_CONNECT_SECONDS = 0.1  # a Unix socket on this machine
ADDRESS_CONNECT_SECONDS = 0.25  # a host that is gone costs a chat no more than this

PROVIDER = "users"
_USUAL_HEADER = JwtSettings().token_header
_PER_ROUTE = "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.PerRouteConfig"
_IF_VALID: Tree = {"requires_any": {"requirements": [{"provider_name": PROVIDER}, {"allow_missing_or_failed": {}}]}}

_CONDITION = "only_if"  # the key of what a run may not need
_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class EnvoyPlan:
    """One Envoy process: the settings of its run, and where it reaches the filters.

    Filters have either sockets or addresses; a name among the addresses may stand for many. Ports are 1 to 65535: "any
    free port" is resolved before. Envoy serves its own counters on `metrics_host`; empty: whoever needs them asks the
    admin page.
    """

    settings: Settings
    filter_sockets: tuple[Path, ...] = ()
    filter_addresses: tuple[HostAndPort, ...] = ()

    def __post_init__(self) -> None:
        settings = self.settings
        known_admin(settings)
        for name in ("port", "api_port", "envoy_admin_port"):
            port = getattr(settings, name)
            if port is not None and not 1 <= port <= PORT_MAX:
                raise BadSetting(f"{name} must be between 1 and {PORT_MAX} here, got {port}")
        if bool(self.filter_sockets) == bool(self.filter_addresses):
            raise BadSetting("filters are needed: either the socket of each, or the address of each (or of all)")
        if settings.identity == "header" and not settings.trusted_peers:
            raise BadSetting("identity mode header needs trusted_peers: without one, nobody has an identity")
        for name, host in (("host", settings.host), ("metrics_host", settings.metrics_host or settings.host)):
            if address_of(host) is None:
                raise BadSetting(f"{name} must be an IP address to listen on here, such as 127.0.0.1; got {host!r:.80}")

    @property
    def filters(self) -> int:
        """How many there are; as the settings say where a name stands for many."""
        endpoints = len(self.filter_sockets) + len(self.filter_addresses)
        is_named = any(one.address is None for one in self.filter_addresses)
        return max(endpoints, self.settings.filters) if is_named else endpoints


def template() -> Path:
    here, checkout = Path(__file__).parent, Path(__file__).parents[2]
    for path in (here / "envoy.yaml", checkout / "envoy" / "envoy.yaml"):
        if path.is_file():
            return path
    raise BadSetting(f"envoy.yaml is neither in {here} nor in {checkout / 'envoy'}: install memproxy again")


def render(plan: EnvoyPlan) -> bytes:
    """Envoy's configuration as JSON, checked by its types. Takes a second or two. Raises `BadSetting`."""
    return typed(filled(plan))


def render_unchecked(plan: EnvoyPlan) -> bytes:
    """The same for an Envoy that starts now and checks it itself: that saves the second. Raises `BadSetting`."""
    return json.dumps(filled(plan)).encode()


def filled(plan: EnvoyPlan) -> Tree:
    """The template, with what this plan needs. Raises `BadSetting`."""
    return _put(yaml.safe_load(template().read_text(encoding="utf-8")), _values(plan))


def typed(tree: Tree) -> bytes:
    """In the spelling of JSON, without defaults. Unknown fields and wrong types raise."""
    for url in set(_types(tree)):  # "type.googleapis.com/envoy.some.v3.Thing" is one of the types of `envoy.some.v3`
        importlib.import_module("envoy_data_plane." + url.rpartition("/")[2].rpartition(".")[0])
    bootstrap = importlib.import_module("envoy_data_plane.envoy.config.bootstrap.v3").Bootstrap
    rendered: str = bootstrap.from_dict(tree).to_json()
    return rendered.encode()


def _types(node: Tree) -> Iterator[str]:
    if isinstance(node, dict):
        if "@type" in node:
            yield node["@type"]
        node = list(node.values())
    if isinstance(node, list):
        for value in node:
            yield from _types(value)


def _values(plan: EnvoyPlan) -> dict[str, Tree]:
    settings, identity = plan.settings, plan.settings.memory.identity
    is_development, is_jwt = settings.identity == "development", settings.identity == "jwt"
    peers = LOOPBACK if is_development else settings.trusted_peers  # it listens nowhere else
    api, signals = address_of(settings.api_host), signal_reader(settings.memory.upstream_signals)
    filter_may_answer = identity.on_mismatch == "reject"
    return {
        "host": str(address_of(settings.host)),
        "port": settings.port,
        "page_origins": [
            {"safe_regex": {"regex": LOOPBACK_ORIGIN}},
            *({"exact": one} for one in identity.trusted_origins),
        ],
        "admin_address": _admin_address(settings),
        "serves_metrics": bool(settings.metrics_host),
        "metrics_host": str(address_of(settings.metrics_host)),
        "metrics_port": settings.metrics_port,
        "has_trusted_peers": bool(settings.trusted_peers),
        "trusted_peers": [one for peer in peers for one in _source_ranges(peer)],
        "identity_headers_removed": [{"remove": IDENTITY_HEADER}] if is_jwt else [],
        "filter_never_answers": not filter_may_answer,
        "filter_headers": f"^({'|'.join(EDITED_HEADERS + (REJECTION_HEADERS if filter_may_answer else ()))})$",
        **_filter_values(plan.filter_sockets, plan.filter_addresses),
        "connections_max": settings.connections_max,
        "observed_max": OBSERVED_PER_CONNECTION * settings.connections_max,
        "filter_in_flight_max": settings.memory.filter_in_flight_max * plan.filters,
        "api_type": "STATIC" if api else "STRICT_DNS",
        "api_host": str(api or settings.api_host),
        "api_port": settings.api_port,
        "signal_headers": [{"exact": name} for name in signals.headers],
        "signal_headers_removed": [{"remove": name} for name in signals.headers],
        "signal_namespaces": list(signals.namespaces),
        **_token_values(settings),
        **_tracing_values(settings.tracing),
        **_upstream(settings.upstream),
        "upstream_connection_requests": None if settings.upstream_keep_alive else 1,
    }


def known_admin(settings: Settings) -> int | Path:
    """Envoy's admin page: a port of loopback, or the path of a Unix socket, which only this user may open."""
    if settings.envoy_admin is None:
        raise BadSetting(
            "envoy_admin_port is needed for an Envoy that `memproxy up` does not start: set MEMPROXY_ENVOY_ADMIN_PORT, "
            "such as to 9901"
        )
    return settings.envoy_admin


def _admin_address(settings: Settings) -> Tree:
    admin = known_admin(settings)
    if isinstance(admin, Path):
        return {"pipe": {"path": str(admin), "mode": 0o600}}
    return {"socket_address": {"address": "127.0.0.1", "port_value": admin}}


def _source_ranges(peer: str) -> list[Tree]:
    """The range in Envoy's format. All addresses are two halves: /0 would match the default chain."""
    network = ipaddress.ip_network(peer)
    networks = network.subnets() if network.prefixlen == 0 else [network]
    return [{"address_prefix": str(one.network_address), "prefix_len": one.prefixlen} for one in networks]


def _upstream(url: str) -> dict[str, Tree]:
    example = "http://127.0.0.1:8000 or https://models.example"
    server = remote_server(url, setting="upstream", example=example)
    if "?" in url:
        raise BadSetting(f"upstream must be a URL such as {example}, got {url!r:.200}")
    return {
        "upstream_type": server.discovery,
        "upstream_address": server.address,
        "upstream_port": server.port,
        "upstream_authority": server.authority,
        "upstream_path": server.path.rstrip("/").removesuffix("/v1"),
        "upstream_transport_socket": server.transport_socket,
    }


def _filter_values(sockets: Sequence[Path], addresses: Sequence[HostAndPort]) -> dict[str, Tree]:
    """The placeholders `filter_*` that say where filters are. One of the two is empty.

    A name is resolved again and again, and each of its addresses is an endpoint with a health check of its own.
    """
    places: list[Tree] = [{"pipe": {"path": str(path)}} for path in sockets]
    places += [
        {"socket_address": {"address": str(one.address or one.host), "port_value": one.port}} for one in addresses
    ]
    secret = {"key": SECRET_METADATA, "value": "%ENVIRONMENT(MEMPROXY_EDGE_SECRET)%"}
    return {
        "filter_endpoints": [{"endpoint": {"address": place}} for place in places],
        "filter_discovery": "STRICT_DNS" if any(one.address is None for one in addresses) else "STATIC",
        "filter_connect_timeout": f"{ADDRESS_CONNECT_SECONDS if addresses else SOCKET_CONNECT_SECONDS:g}s",
        "filter_secret": [secret] if addresses else [],
    }


def _tracing_values(tracing: TracingSettings) -> dict[str, Tree]:
    """The placeholders `trace_*`, where a collector is named."""
    if not tracing.endpoint:
        return {"is_traced": False}
    collector = remote_server(tracing.endpoint, setting="tracing.endpoint", example="http://127.0.0.1:4318")
    return {
        "is_traced": True,
        "trace_per_million": round(tracing.sample_ratio * 1_000_000),
        "trace_url": f"{tracing.endpoint.rstrip('/')}/v1/traces",
        "trace_collector_type": collector.discovery,
        "trace_collector_address": collector.address,
        "trace_collector_port": collector.port,
        "trace_collector_transport_socket": collector.transport_socket,
    }


def _token_values(settings: Settings) -> dict[str, Tree]:
    """The placeholders `jwt_*`, in mode jwt. Raises `BadSetting`."""
    if settings.identity != "jwt":
        return {"verifies_tokens": False, "fetches_keys": False, "jwt_on_chats": None, "jwt_on_api": None}
    jwt = settings.jwt
    return {
        "verifies_tokens": True,
        "jwt_issuer": jwt.issuer,
        "jwt_audiences": list(jwt.audiences),
        "jwt_header": jwt.token_header,
        "jwt_prefix": "Bearer " if jwt.token_header == _USUAL_HEADER else None,
        "jwt_forward": jwt.forward,
        "jwt_local_keys": None if jwt.jwks_url else _local_keys(jwt),
        "jwt_of_chats": {"provider_name": PROVIDER} if jwt.required else _IF_VALID,
        "jwt_of_api": _IF_VALID,
        "jwt_on_chats": _per_route("chats"),
        "jwt_on_api": _per_route("api"),
        **_key_server(jwt.jwks_url),
    }


def _key_server(url: str) -> dict[str, Tree]:
    """The placeholders `jwt_keys_*`, where keys are fetched. Raises `BadSetting`."""
    if not url:
        return {"fetches_keys": False}
    keys = remote_server(url, setting="jwt.jwks_url", example="https://login.example/keys.json")
    return {
        "fetches_keys": True,
        "jwt_keys_url": url,
        "jwt_keys_type": keys.discovery,
        "jwt_keys_address": keys.address,
        "jwt_keys_port": keys.port,
        "jwt_keys_transport_socket": keys.transport_socket,
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


def _per_route(requirement: str) -> Tree:
    return {"@type": _PER_ROUTE, "requirement_name": requirement}


def _put(node: Tree, values: Mapping[str, Tree]) -> Tree:
    """The tree with placeholders replaced. What is None, or has a condition that is false, is removed; lists in a list
    are flattened.
    """
    if isinstance(node, dict):
        if _CONDITION in node and not _put(node[_CONDITION], values):
            return None
        placed = {key: _put(value, values) for key, value in node.items() if key != _CONDITION}
        return {key: value for key, value in placed.items() if value is not None}
    if isinstance(node, list):
        placed_items = (_put(value, values) for value in node)
        items = (item if isinstance(item, list) else [item] for item in placed_items if item is not None)
        return [one for listed in items for one in listed]
    if not isinstance(node, str):
        return node
    whole = _PLACEHOLDER.fullmatch(node)
    if whole:
        return values[whole[1]]
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), node)
