"""Envoy's configuration without memory, for comparison."""

from __future__ import annotations

from typing import Any

from extproc.supervisor import bootstrap
from extproc.supervisor.bootstrap import EnvoyPlan

OUR_FILTERS = ("memory.observe", "memory.inject", "envoy.filters.http.jwt_authn")
OUR_CLUSTERS = ("memory_observe", "memory_inject", "memory_api", "jwt_keys", "trace_collector")


def render_bare(plan: EnvoyPlan) -> bytes:
    """The same listener and upstream without memory, for comparison in benchmarks."""
    tree = bootstrap.filled(plan)
    resources = tree["static_resources"]
    resources["clusters"] = [c for c in resources["clusters"] if c["name"] not in OUR_CLUSTERS]
    for chain in resources["listeners"][0]["filter_chains"]:
        manager = chain["filters"][0]["typed_config"]
        manager["http_filters"] = [f for f in manager["http_filters"] if f["name"] not in OUR_FILTERS]
        host = manager["route_config"]["virtual_hosts"][0]
        host["routes"] = [_bare(route) for route in host["routes"] if route["route"]["cluster"] not in OUR_CLUSTERS]
    return bootstrap.typed(tree)


def _bare(route: dict[str, Any]) -> dict[str, Any]:
    """A route without the parts for our filters."""
    ours = (
        "typed_per_filter_config",
        "response_headers_to_add",
        "response_headers_to_remove",
        "request_body_buffer_limit",
    )
    return {key: value for key, value in route.items() if key not in ours}
