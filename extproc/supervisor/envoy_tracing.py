"""Envoy's own spans, for the template envoy/envoy.yaml; a run without a collector makes none."""

from __future__ import annotations

from extproc.supervisor.remote_servers import Tree, remote_server
from memory.settings.tracing import TracingSettings

COLLECTOR_CLUSTER = "trace_collector"
_NO_URL = "http://127.0.0.1:9"  # fills the template where nothing is traced


def tracing_values(tracing: TracingSettings) -> dict[str, Tree]:
    """The placeholders `trace_*`, also those of parts that `without_tracing` takes out."""
    endpoint = tracing.endpoint or _NO_URL
    collector = remote_server(endpoint, setting="tracing.endpoint", example="http://127.0.0.1:4318")
    return {
        "trace_per_million": round(tracing.sample_ratio * 1_000_000),
        "trace_url": f"{endpoint.rstrip('/')}/v1/traces",
        "trace_collector_type": collector.discovery,
        "trace_collector_address": collector.address,
        "trace_collector_port": collector.port,
        "trace_collector_transport_socket": collector.transport_socket,
    }


def without_tracing(tree: Tree) -> None:
    """Take out the tracer and its cluster: a request then costs nothing more, and its headers stay as they are."""
    resources = tree["static_resources"]
    resources["clusters"] = [one for one in resources["clusters"] if one["name"] != COLLECTOR_CLUSTER]
    for chain in resources["listeners"][0]["filter_chains"]:
        del chain["filters"][0]["typed_config"]["tracing"]
