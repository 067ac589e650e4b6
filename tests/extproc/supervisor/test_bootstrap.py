"""What a run is told becomes a configuration that the real Envoy accepts, or a refusal that says what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from product import eventually
from served_app import free_port
from token_issuer import TokenIssuer

from extproc.addresses import HostAndPort
from extproc.health import CHECK_INTERVAL_SECONDS
from extproc.supervisor import bootstrap
from extproc.supervisor.bootstrap import EnvoyPlan, render, render_unchecked
from memory.errors import BadSetting
from memory.model import CHAT_BYTES_MAX
from memory.settings import IdentitySettings, JwtSettings, MemorySettings, Settings, UpstreamSignal
from memory.settings.switches import TracingSettings

SOCKETS = (Path("/run/f-0.sock"), Path("/run/f-1.sock"))
INLINE = JwtSettings(issuer="https://login.example", audiences=("chat",), jwks=TokenIssuer().key_set())
FETCHED = JwtSettings(issuer="https://login.example", jwks_url="http://127.0.0.1:9/keys.json")
REJECTING = MemorySettings(identity=IdentitySettings(on_mismatch="reject"))


def plan(*, sockets: tuple[Path, ...] = SOCKETS, addresses: tuple[HostAndPort, ...] = (), **settings: Any) -> EnvoyPlan:
    given = {"upstream": "http://127.0.0.1:8000", "run_dir": "/run", **settings}
    return EnvoyPlan(Settings(**given), sockets, addresses)


@cache
def plain() -> bytes:
    return render(plan())


def clusters(rendered: bytes) -> dict[str, Any]:
    return {cluster["name"]: cluster for cluster in json.loads(rendered)["staticResources"]["clusters"]}


def accepted(rendered: bytes, folder: Path) -> str:
    """ "" if Envoy takes it, else what it says."""
    config = folder / "envoy.json"
    config.write_bytes(rendered)
    command = [Path(sys.executable).with_name("envoy"), "--mode", "validate", "-c", config]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return "" if done.returncode == 0 else done.stderr


PLANS: list[dict[str, Any]] = [
    {},
    {"upstream": "https://models.example/base", "tracing": TracingSettings(endpoint="http://127.0.0.1:4318")},
    {
        "upstream": "https://10.0.0.7:8443",
        "sockets": (),
        "addresses": (HostAndPort("filters", 50051), HostAndPort("10.0.0.2", 1)),
        "tracing": TracingSettings(endpoint="https://collector.example/otlp", sample_ratio=1.0),
    },
    {"upstream": "http://[::1]:8000", "host": "::1", "memory": replace(REJECTING, upstream_signals=())},
    {
        "upstream": "http://vllm:8000",
        "api_host": "memproxy-api",
        "identity": "header",
        "host": "0.0.0.0",
        "trusted_peers": ("10.0.0.0/8", "::/0", "0.0.0.0/0"),
    },
    {"identity": "jwt", "jwt": INLINE, "host": "0.0.0.0", "trusted_peers": ()},
    {"envoy_admin_port": 9901, "metrics_host": "::"},
    {"identity": "jwt", "jwt": replace(FETCHED, required=True)},
    {"identity": "jwt", "jwt": replace(FETCHED, jwks_url="https://login.example/k?v=1", token_header="x-user-token")},
    {"identity": "jwt", "jwt": replace(INLINE, token_header="x-user-token", forward=False)},
]


@pytest.mark.parametrize("changes", PLANS, ids=lambda changes: "-".join(changes) or "defaults")
def test_envoy_accepts_what_we_render_and_up_starts_with_the_same(changes: dict[str, Any], tmp_path: Path) -> None:
    checked = render(plan(**changes))
    assert bootstrap.typed(json.loads(render_unchecked(plan(**changes)))) == checked
    assert b"${" not in checked
    assert accepted(checked, tmp_path) == ""


def managers(rendered: bytes) -> list[dict[str, Any]]:
    """The connection managers: that of trusted peers, and everybody else's."""
    [listener] = json.loads(rendered)["staticResources"]["listeners"]
    return [chain["filters"][0]["typedConfig"] for chain in listener["filterChains"]]


def filter_of(manager: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one["typedConfig"] for one in manager["httpFilters"] if one["name"] == name)


def test_what_envoy_buffers_is_what_we_read_and_what_we_add() -> None:
    limits = {
        value["requestBodyBufferLimit"]
        for manager in managers(plain())
        for host in manager["routeConfig"]["virtualHosts"]
        for value in host["routes"]
        if "requestBodyBufferLimit" in value
    }
    assert limits == {CHAT_BYTES_MAX + (1 << 20)}


def visible(filter_: dict[str, Any]) -> set[str]:
    return {one["exact"] for one in filter_["forwardRules"]["allowedHeaders"]["patterns"]}


def removed(manager: dict[str, Any]) -> set[str]:
    mutations = [one["typedConfig"]["mutations"] for one in manager["earlyHeaderMutationExtensions"]]
    return {mutation["remove"] for listed in mutations for mutation in listed}


def test_signals_are_seen_by_the_injecting_filter_alone_and_kept_by_trusted_peers_alone() -> None:
    signals = tuple(UpstreamSignal(name=name, means="skip") for name in ("x-a", "x-b", "space:key"))
    trusted, others = managers(render(plan(memory=MemorySettings(upstream_signals=signals))))
    for manager in (trusted, others):
        inject, observe = filter_of(manager, "memory.inject"), filter_of(manager, "memory.observe")
        assert visible(inject) - visible(observe) == {"x-a", "x-b", "x-memory-compact"}
        assert inject["metadataOptions"]["forwardingNamespaces"] == {"untyped": ["space"]}
        assert observe["metadataOptions"]["forwardingNamespaces"] == {"untyped": ["memory"]}
    assert removed(others) - removed(trusted) == {"x-authz-user-id", "x-a", "x-b"}


def test_a_draining_filter_waits_for_the_interval_that_envoy_was_given() -> None:
    [check] = clusters(plain())["memory_inject"]["healthChecks"]
    assert check["interval"] == check["noTrafficInterval"] == f"{CHECK_INTERVAL_SECONDS}s".replace(".5s", ".500s")


@pytest.mark.parametrize(
    ("url", "kind", "address", "port", "path"),
    [
        ("http://127.0.0.1:8000", "STATIC", "127.0.0.1", 8000, ""),
        ("http://vllm", "STRICT_DNS", "vllm", 80, ""),
        ("http://localhost:8000/v1", "STRICT_DNS", "localhost", 8000, ""),
        ("https://models.example/base/v1/", "STRICT_DNS", "models.example", 443, "/base"),
        ("http://[2001:db8::1]:9/a/b", "STATIC", "2001:db8::1", 9, "/a/b"),
    ],
)
def test_the_upstream_url_says_discovery_port_and_path(url: str, kind: str, address: str, port: int, path: str) -> None:
    rendered = render(plan(upstream=url))
    upstream = clusters(rendered)["upstream"]
    assert upstream.get("type", "STATIC") == kind
    [locality] = upstream["loadAssignment"]["endpoints"]
    socket_address = locality["lbEndpoints"][0]["endpoint"]["address"]["socketAddress"]
    assert (socket_address["address"], socket_address["portValue"]) == (address, port)
    assert f'"{path}/v1/chat/completions"'.encode() in rendered
    assert ("transportSocket" in upstream) == url.startswith("https")


def test_filters_by_name_are_resolved_and_called_with_the_secret_of_the_environment() -> None:
    rendered = render(plan(sockets=(), addresses=(HostAndPort("filters", 50051),)))
    for name in ("memory_inject", "memory_observe"):
        cluster = clusters(rendered)[name]
        assert cluster["type"] == "STRICT_DNS"
        [locality] = cluster["loadAssignment"]["endpoints"]
        [endpoint] = locality["lbEndpoints"]
        assert endpoint["endpoint"]["address"]["socketAddress"] == {"address": "filters", "portValue": 50051}
    assert rendered.count(b"%ENVIRONMENT(MEMPROXY_EDGE_SECRET)%") > plain().count(b"%ENVIRONMENT(")


def test_limits_follow_the_settings() -> None:
    found = clusters(render(plan(connections_max=77, memory=MemorySettings(filter_in_flight_max=5))))
    [upstream] = found["upstream"]["circuitBreakers"]["thresholds"]
    assert (upstream["maxConnections"], upstream["maxRequests"]) == (77, 77)
    assert found["memory_inject"]["circuitBreakers"]["thresholds"][0]["maxRequests"] == 10
    assert found["memory_observe"]["circuitBreakers"]["thresholds"][0]["maxRequests"] == 770


def test_a_name_stands_for_as_many_filters_as_the_settings_say() -> None:
    named, numbered = (HostAndPort("filters", 1),), (HostAndPort("10.0.0.1", 1), HostAndPort("10.0.0.2", 1))
    assert plan(filters=6, sockets=(), addresses=named).filters == 6
    assert plan(filters=6, sockets=(), addresses=numbered).filters == 2
    assert plan(filters=6).filters == 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"addresses": (HostAndPort("f", 1),)}, "either the socket of each"),
        ({"host": "myhost"}, "must be an IP address"),
        ({"port": 0}, "port must be between"),
        ({"envoy_admin_port": 70000}, "admin_port must be between"),
        ({"sockets": ()}, "filters are needed"),
        ({"identity": "header", "trusted_peers": ()}, "needs trusted_peers"),
        ({"metrics_host": "envoy"}, "metrics_host must be an IP address"),
        ({"run_dir": ""}, "envoy_admin_port is needed"),  # of `memproxy envoy`, in a container
        ({"tracing": TracingSettings(endpoint="collector:4318")}, "tracing.endpoint must be a URL such as http://127"),
        *(
            ({"upstream": url}, "upstream must be a URL")
            for url in ("", "vllm:8000", "ftp://x", "http://", "http://x/?a=b", "http://u:p@x", "http://x/ y")
        ),
    ],
)
def test_a_plan_that_cannot_be_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(BadSetting, match=says):
        render_unchecked(plan(**changes))


def test_the_filter_may_answer_only_where_the_settings_say_so() -> None:
    for memory, headers in ((MemorySettings(), "^(content-length)$"), (REJECTING, "^(content-length|content-type)$")):
        for manager in managers(render(plan(memory=memory))):
            inject = filter_of(manager, "memory.inject")
            assert inject.get("disableImmediateResponse", False) is (memory is not REJECTING)
            assert inject["mutationRules"]["allowExpression"]["regex"] == headers
            assert inject["mutationRules"]["disallowAll"] is True


def test_filters_see_no_credentials() -> None:
    for manager in managers(plain()):
        for name in ("memory.inject", "memory.observe"):
            (patterns,) = filter_of(manager, name)["forwardRules"]["allowedHeaders"].values()
            shown = {one["exact"] for one in patterns}  # each by its whole name: nothing else is sent
            assert "x-authz-user-id" in shown
            assert not shown & {"authorization", "cookie", "proxy-authorization", "x-memory-edge-secret"}


def test_tokens_are_verified_in_mode_jwt_alone_and_nobody_may_send_what_they_say() -> None:
    for changes in ({}, {"identity": "header"}):
        rendered = render(plan(**changes))
        assert b"jwt_authn" not in rendered
        assert "jwt_keys" not in clusters(rendered)
        assert all("x-memory-token-claims" in removed(manager) for manager in managers(rendered))
    rendered = render(plan(identity="jwt", jwt=FETCHED))
    assert "jwt_keys" in clusters(rendered)
    for manager in managers(rendered):
        assert removed(manager) >= {"x-authz-user-id", "x-memory-token-claims", "x-memory-edge-secret"}
        names = [one["name"] for one in manager["httpFilters"]]
        verifying = names.index("envoy.filters.http.jwt_authn")
        assert verifying < names.index("memory.observe")
        provider = manager["httpFilters"][verifying]["typedConfig"]["providers"]["users"]
        assert (provider["requireExpiration"], provider["forward"]) == (True, True)
        assert ("remoteJwks" in provider, "localJwks" in provider) == (True, False)


def test_the_admin_page_is_a_socket_of_this_user_or_a_port_of_loopback() -> None:
    [asked, unasked] = [json.loads(render(plan(envoy_admin_port=port)))["admin"] for port in (9901, None)]
    assert asked["address"] == {"socketAddress": {"address": "127.0.0.1", "portValue": 9901}}
    assert unasked["address"] == {"pipe": {"path": "/run/envoy-admin.sock", "mode": 0o600}}


def test_an_envoy_alone_shows_its_counters_and_nothing_else_of_its_admin_page(tmp_path: Path) -> None:
    assert "envoy_admin" not in clusters(plain())
    ports = {name: free_port() for name in ("PORT", "ENVOY_ADMIN_PORT", "METRICS_PORT")}
    given = {f"MEMPROXY_{name}": str(port) for name, port in ports.items()}
    given |= {"MEMPROXY_METRICS_HOST": "127.0.0.1", "MEMPROXY_EDGE_SECRET": "x"}
    given["MEMPROXY_UPSTREAM"] = "http://127.0.0.1:1"
    words = [*(f"{name}={value}" for name, value in given.items()), Path(sys.executable).with_name("memproxy"), "envoy"]
    command = ["env", *words, "--to", tmp_path / "envoy.json", "--filter", "127.0.0.1:1"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        page = f"http://127.0.0.1:{ports['METRICS_PORT']}"
        shown = eventually(lambda: answer_of(f"{page}/metrics"))
        assert "envoy_cluster_membership_healthy{" in shown.text
        for path in ("/stats/prometheus", "/", "/metrics/x"):
            assert httpx.get(page + path, timeout=30).status_code == 404
        for path in ("/metrics", "/quitquitquit"):
            assert httpx.post(page + path, timeout=30).status_code == 404
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(timeout=30)


def answer_of(url: str) -> httpx.Response | None:
    """None while nobody answers there."""
    try:
        return httpx.get(url, timeout=30)
    except httpx.TransportError:
        return None


def test_without_trusted_peers_all_clients_of_mode_jwt_are_alike() -> None:
    rendered = render(plan(identity="jwt", jwt=INLINE, trusted_peers=()))
    [chain] = json.loads(rendered)["staticResources"]["listeners"][0]["filterChains"]
    assert "filterChainMatch" not in chain


@pytest.mark.parametrize("content", [None, "", "[]", '{"keys": []}', '{"keys": [{"kty": "RSA", "d": "x"}]}', "\udcff"])
def test_a_file_without_public_keys_is_refused_before_envoy_starts(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "keys").write_text(content, errors="surrogateescape")
    with pytest.raises(BadSetting, match="jwks_file"):
        render_unchecked(plan(identity="jwt", jwt=JwtSettings(issuer="i", jwks_file=str(tmp_path / "keys"))))


def test_envoy_traces_where_a_collector_is_named_and_says_nothing_that_a_client_chose() -> None:
    tracing = TracingSettings(endpoint="http://collector:4318/otlp/", sample_ratio=0.25)
    silent, traced = plain(), render(plan(tracing=tracing))
    assert b"tracing" not in silent
    assert "trace_collector" not in clusters(silent)
    assert "trace_collector" in clusters(traced)
    (listener,) = json.loads(traced)["staticResources"]["listeners"]
    for chain in listener["filterChains"]:
        tracing = chain["filters"][0]["typedConfig"]["tracing"]
        assert tracing["randomSampling"] == {"value": 100.0}
        [following] = [tracing["provider"]["typedConfig"]["sampler"]["typedConfig"]]  # of a client's decision
        share = following["wrappedSampler"]["typedConfig"]["samplingPercentage"]
        assert (share["numerator"], share["denominator"]) == (250_000, "MILLION")
        assert tracing["maxPathTagLength"] == 0
        hidden = {tag["tag"] for tag in tracing["customTags"] if tag["literal"] == {"value": "-"}}
        assert hidden == {"http.url", "user_agent", "downstream_cluster", "peer.address"}
        uri = tracing["provider"]["typedConfig"]["httpService"]["httpUri"]
        assert (uri["uri"], uri["timeout"]) == ("http://collector:4318/otlp/v1/traces", "10s")
    (kept,) = clusters(traced)["trace_collector"]["typedExtensionProtocolOptions"].values()
    assert kept["commonHttpProtocolOptions"] == {"idleTimeout": "1s"}, "no batch goes where the collector just closes"
