"""Renders Envoy's configuration from envoy/envoy.yaml and the settings of a run.

The result is validated with the typed library, so that unknown fields are errors. A listener that trusts its clients
(`development`) is never reachable from other machines, and the configuration contains no secrets: Envoy reads the
memory API's from its environment variable `MEMPROXY_EDGE_SECRET`.
"""

from __future__ import annotations

import importlib
import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from extproc.addresses import HostAndPort
from extproc.identity import IDENTITY_HEADER, IdentityMode
from extproc.supervisor.envoy_tracing import EnvoyTracing, tracing_values, without_tracing
from extproc.supervisor.filter_endpoints import filter_values
from extproc.supervisor.remote_servers import Tree, address_of, remote_server
from extproc.supervisor.token_verification import (
    TokenVerification,
    token_values,
    without_unused,
)
from extproc.upstream_signals import SignalReader
from memory.errors import BadSetting
from memory.model.web_pages import LOOPBACK_ORIGIN

LOOPBACK = ("127.0.0.0/8", "::1/128")
OBSERVED_PER_CONNECTION = 10  # a stream of an aborted exchange ends some seconds later than its connection
EDITED_HEADERS = ("content-length",)
REJECTION_HEADERS = ("content-type",)

METRICS_LISTENER, ADMIN_CLUSTER = "metrics", "envoy_admin"

_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class TrafficLimits:
    """`connections`: of clients, and chats open at the upstream. `filter_in_flight`: chats for each of `filters`."""

    connections: int = 10_000
    filter_in_flight: int = 10_000
    filters: int = 1


@dataclass(frozen=True, slots=True)
class BootstrapValues:
    """The settings of one Envoy process. Filters have either sockets or addresses, of which names may stand for many.

    Ports are 1 to 65535: "any free port" is resolved before. `admin`: of the admin page, a port of loopback or
    the path of a Unix socket, which only this user may open.

    `upstream`: an http or https URL; its path, if any, prefixes every client path, except that a final `/v1` is
    dropped, since clients send it. `trusted_peers`: CIDR ranges, for `header` mode and for signals. `signals`: names of
    signals: headers, which only trusted peers may send, and metadata namespaces. `tokens`: in `jwt` mode, and only
    there. `filter_may_answer`: the filter may reject a request in place of the upstream.
    `trusted_origins`: of web pages, next to those of loopback. `tracing`: None: no spans. `metrics`: where Envoy serves
    its own counters; None: whoever needs them asks the admin page.
    """

    upstream: str
    admin: int | Path
    filter_sockets: tuple[Path, ...] = ()
    filter_addresses: tuple[HostAndPort, ...] = ()
    is_upstream_kept_alive: bool = True
    host: str = "127.0.0.1"
    port: int = 8080
    api_port: int = 8081
    api_host: str = "127.0.0.1"
    identity: IdentityMode = IdentityMode.DEVELOPMENT
    trusted_peers: tuple[str, ...] = LOOPBACK
    limits: TrafficLimits = TrafficLimits()
    signals: SignalReader = field(default_factory=SignalReader)
    tokens: TokenVerification | None = None
    filter_may_answer: bool = False
    trusted_origins: tuple[str, ...] = ()
    tracing: EnvoyTracing | None = None
    metrics: HostAndPort | None = None
    root_certificates: Path | None = field(default=None)  # for https URLs; None: the system's

    def __post_init__(self) -> None:
        ports = {"port": self.port, "api_port": self.api_port}
        if isinstance(self.admin, int):
            ports["envoy_admin_port"] = self.admin
        for name, port in ports.items():
            if not 1 <= port <= 65535:
                raise BadSetting(f"{name} must be between 1 and 65535 here, got {port}")
        if bool(self.filter_sockets) == bool(self.filter_addresses):
            raise BadSetting("filters are needed: either the socket of each, or the address of each (or of all)")
        if self.identity is IdentityMode.HEADER and not self.trusted_peers:
            raise BadSetting("identity mode header needs trusted_peers: without one, nobody has an identity")
        if (self.identity is IdentityMode.JWT) != (self.tokens is not None):
            raise BadSetting("identity mode jwt, and no other, needs to know whose tokens it verifies")
        _check_listener(self.host, self.identity)
        if self.metrics is not None and self.metrics.address is None:
            raise BadSetting(f"metrics_host must be an IP address to listen on here, got {self.metrics.host!r:.80}")


def template() -> Path:
    """envoy.yaml from the wheel, or else from the checkout."""
    here, checkout = Path(__file__).parent, Path(__file__).parents[2]
    for path in (here / "envoy.yaml", checkout / "envoy" / "envoy.yaml"):
        if path.is_file():
            return path
    raise BadSetting(f"envoy.yaml is neither in {here} nor in {checkout / 'envoy'}: install memproxy again")


def render(plan: BootstrapValues) -> bytes:
    """Envoy's configuration as JSON, checked by its types. Takes a second or two. Raises `BadSetting`."""
    return _typed(_filled(_load(), plan))


def render_unchecked(plan: BootstrapValues) -> bytes:
    """The same for an Envoy that starts now and checks it itself: that saves the second. Raises `BadSetting`."""
    return json.dumps(_filled(_load(), plan)).encode()


def _check_listener(host: str, identity: IdentityMode) -> None:
    address = address_of(host)
    if address is None:
        raise BadSetting(f"host must be an IP address to listen on, such as 127.0.0.1 or 0.0.0.0; got {host!r:.80}")
    if identity is IdentityMode.DEVELOPMENT and not address.is_loopback:
        raise BadSetting(
            f"identity mode development believes every client and listens on loopback only, got host {host}: "
            "use 127.0.0.1, or identity mode header behind a proxy that authenticates, or identity mode jwt"
        )


def _load() -> Tree:
    return yaml.safe_load(template().read_text(encoding="utf-8"))


def _filled(tree: Tree, plan: BootstrapValues) -> Tree:
    filled = without_unused(_put(tree, _values(plan)), plan.tokens)
    if plan.tracing is None:
        without_tracing(filled)
    resources = filled["static_resources"]
    if plan.metrics is None:
        resources["listeners"] = [one for one in resources["listeners"] if one["name"] != METRICS_LISTENER]
        resources["clusters"] = [one for one in resources["clusters"] if one["name"] != ADMIN_CLUSTER]
    listener = resources["listeners"][0]
    if not plan.trusted_peers:  # a chain for no source range would be one for all
        listener["filter_chains"] = [one for one in listener["filter_chains"] if one["name"] != "trusted_peers"]
    return filled


def _values(plan: BootstrapValues) -> dict[str, Tree]:
    """The value of every placeholder of the template."""
    peers = LOOPBACK if plan.identity is IdentityMode.DEVELOPMENT else plan.trusted_peers  # it listens nowhere else
    api = address_of(plan.api_host)
    return {
        "host": str(address_of(plan.host)),
        "port": plan.port,
        "page_origins": [
            {"safe_regex": {"regex": LOOPBACK_ORIGIN}},
            *({"exact": one} for one in plan.trusted_origins),
        ],
        "admin_address": _admin_address(plan.admin),
        "metrics_host": str(plan.metrics.address) if plan.metrics else "",
        "metrics_port": plan.metrics.port if plan.metrics else 0,
        "trusted_peers": [one for peer in peers for one in _source_ranges(peer)],
        "identity_headers_removed": [{"remove": IDENTITY_HEADER}] if plan.identity is IdentityMode.JWT else [],
        "filter_never_answers": not plan.filter_may_answer,
        "filter_headers": f"^({'|'.join(EDITED_HEADERS + (REJECTION_HEADERS if plan.filter_may_answer else ()))})$",
        **filter_values(plan.filter_sockets, plan.filter_addresses),
        "connections_max": plan.limits.connections,
        "observed_max": OBSERVED_PER_CONNECTION * plan.limits.connections,
        "filter_in_flight_max": plan.limits.filter_in_flight * plan.limits.filters,
        "api_type": "STATIC" if api else "STRICT_DNS",
        "api_host": str(api or plan.api_host),
        "api_port": plan.api_port,
        "signal_headers": [{"exact": name} for name in plan.signals.headers],
        "signal_headers_removed": [{"remove": name} for name in plan.signals.headers],
        "signal_namespaces": list(plan.signals.namespaces),
        **token_values(plan.tokens, plan.root_certificates),
        **tracing_values(plan.tracing, plan.root_certificates),
        **_upstream(plan.upstream, plan.root_certificates),
        "upstream_connection_requests": None if plan.is_upstream_kept_alive else 1,
    }


def _admin_address(admin: int | Path) -> Tree:
    if isinstance(admin, Path):
        return {"pipe": {"path": str(admin), "mode": 0o600}}
    return {"socket_address": {"address": "127.0.0.1", "port_value": admin}}


def _source_ranges(peer: str) -> list[Tree]:
    """The range in Envoy's format. All addresses are two halves: /0 would match the default chain."""
    try:
        network = ipaddress.ip_network(peer)
    except ValueError as error:
        raise BadSetting(f"trusted_peers must be CIDR ranges such as 10.0.0.0/8, got {peer!r:.80}: {error}") from error
    networks = network.subnets() if network.prefixlen == 0 else [network]
    return [{"address_prefix": str(one.network_address), "prefix_len": one.prefixlen} for one in networks]


def _upstream(url: str, root_certificates: Path | None) -> dict[str, Tree]:
    """The placeholders `upstream_*` from the URL."""
    example = "http://127.0.0.1:8000 or https://models.example"
    server = remote_server(url, setting="upstream", example=example, root_certificates=root_certificates)
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


def _put(node: Tree, values: Mapping[str, Tree]) -> Tree:
    """The tree with placeholders replaced. Keys with an empty value are removed; lists in a list are flattened."""
    if isinstance(node, dict):
        placed = {key: _put(value, values) for key, value in node.items()}
        return {key: value for key, value in placed.items() if value is not None}
    if isinstance(node, list):
        placed_items = (_put(value, values) for value in node)
        return [one for item in placed_items for one in (item if isinstance(item, list) else [item])]
    if not isinstance(node, str):
        return node
    whole = _PLACEHOLDER.fullmatch(node)
    if whole:
        return values[whole[1]]
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), node)


def _typed(tree: Tree) -> bytes:
    """Validates with the typed library: unknown fields and wrong types raise."""
    for package in sorted({_package(url) for url in _types(tree)}):
        importlib.import_module(f"envoy_data_plane.{package}")
    bootstrap = importlib.import_module("envoy_data_plane.envoy.config.bootstrap.v3").Bootstrap
    rendered: str = bootstrap.from_dict(tree).to_json()
    return rendered.encode()


def _types(node: Tree) -> Iterator[str]:
    """Every `@type` in the tree."""
    if isinstance(node, dict):
        if "@type" in node:
            yield node["@type"]
        for value in node.values():
            yield from _types(value)
    elif isinstance(node, list):
        for value in node:
            yield from _types(value)


def _package(type_url: str) -> str:
    """`type.googleapis.com/envoy.some.v3.Thing` -> `envoy.some.v3`."""
    return type_url.rpartition("/")[2].rpartition(".")[0]
