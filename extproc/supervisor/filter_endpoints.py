"""How Envoy reaches the filters, for the template envoy/envoy.yaml: sockets of this machine, or addresses and names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from extproc.addresses import SECRET_METADATA, HostAndPort
from extproc.supervisor.remote_servers import Tree

SOCKET_CONNECT_SECONDS = 0.1  # a Unix socket on this machine
ADDRESS_CONNECT_SECONDS = 0.25  # a host that is gone costs a chat no more than this


def filter_values(sockets: Sequence[Path], addresses: Sequence[HostAndPort]) -> dict[str, Tree]:
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
