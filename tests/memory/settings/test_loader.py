"""Settings: who beats whom, and what a wrong one is told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from memory.errors import BadSetting
from memory.settings import UpstreamSignal, loader

SEED = """
memory: {enabled: true, auto_store: true, extraction_batch_size: 10, default_retrieval_limit: 5,
         default_similarity_threshold: 0.6,
         milvus: {address: "127.0.0.1:19530", collection: agentic_memory, dimension: 384},
         embedding: {model: all-MiniLM-L6-v2, dimension: 384}}
external_models:
  - {llm_provider: vllm, model_role: memory_extraction, llm_endpoint: {address: 127.0.0.1, port: 8000},
     llm_model_name: qwen3, llm_timeout_seconds: 30, max_tokens: 500, temperature: 0.1}
  - {llm_provider: vllm, model_role: memory_rewrite, llm_endpoint: {address: 127.0.0.1, port: 8000},
     llm_model_name: qwen3, max_tokens: 100}
"""


def settings_of(
    text: str = "", *, flags: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None, folder: Path
) -> loader.Settings:
    file = folder / "memproxy.yaml"
    file.write_text(text, encoding="utf-8")
    return loader.load(file, flags or {}, environ or {})


def refusal(text: str = "", *, folder: Path, **told: Mapping[str, str]) -> str:
    with pytest.raises(BadSetting) as caught:
        settings_of(text, flags=told.get("flags"), environ=told.get("environ"), folder=folder)
    return str(caught.value)


def test_nothing_told_gives_the_documented_defaults() -> None:
    settings = loader.load(None, {}, {})
    assert (settings.host, settings.port, settings.api_port, settings.envoy_admin_port, settings.metrics_port) == (
        "127.0.0.1",
        8080,
        8081,
        None,
        9464,
    )
    assert (settings.data_dir, settings.store_uri, settings.identity) == (".memproxy", "", "development")
    assert (settings.memory.token_budget, settings.memory.deadline_ms, settings.memory.placement) == (
        800,
        120,
        "before_last_user",
    )
    assert settings.memory.default_retrieval_limit is None
    assert settings.memory.default_similarity_threshold is None


def test_flags_beat_environment_beats_file_beats_defaults(tmp_path: Path) -> None:
    text = "port: 1\napi_port: 1\nfilters: 2"
    environ = {"MEMPROXY_PORT": "2", "MEMPROXY_API_PORT": "2", "PATH": "/bin"}
    settings = settings_of(text, flags={"port": 3, "api_port": None}, environ=environ, folder=tmp_path)
    assert (settings.port, settings.api_port, settings.filters, settings.workers) == (3, 2, 2, 1)


def test_the_keys_of_the_first_design_load_unchanged_and_count(tmp_path: Path) -> None:
    settings = settings_of(SEED, folder=tmp_path)
    assert (settings.memory.default_retrieval_limit, settings.memory.default_similarity_threshold) == (5, 0.6)
    assert settings.store_uri == "http://127.0.0.1:19530"
    rewrite = settings.model_for("memory_rewrite")
    assert rewrite is not None
    assert (rewrite.llm_model_name, rewrite.max_tokens, rewrite.llm_timeout_seconds) == ("qwen3", 100, 30.0)


def test_milvus_uri_wins_over_the_address_in_the_memory_section(tmp_path: Path) -> None:
    settings = settings_of(SEED, flags={"milvus_uri": "http://milvus:19530"}, folder=tmp_path)
    assert settings.store_uri == "http://milvus:19530"


def test_nested_settings_and_lists_come_by_environment(tmp_path: Path) -> None:
    environ = {
        "MEMPROXY_MEMORY_EMBEDDING_CACHE_TEXTS": "7",
        "MEMPROXY_MEMORY_ENABLED": "false",
        "MEMPROXY_MEMORY_TURN_LOG_SYNCHRONOUS": "FULL",
        "MEMPROXY_TRUSTED_PEERS": "10.0.0.0/8, 192.0.2.1/32",
        "MEMPROXY_EXTERNAL_MODELS": "[{model_role: memory_rewrite, llm_endpoint: {address: h}, llm_model_name: m}]",
    }
    settings = settings_of(environ=environ, folder=tmp_path)
    assert settings.memory.embedding.cache_texts == 7
    assert not settings.memory.enabled
    assert settings.memory.turn_log.synchronous == "FULL"
    assert settings.trusted_peers == ("10.0.0.0/8", "192.0.2.1/32")
    assert settings.external_models[0].llm_endpoint.address == "h"


def test_an_empty_environment_variable_says_nothing(tmp_path: Path) -> None:
    assert settings_of("port: 5", environ={"MEMPROXY_PORT": ""}, folder=tmp_path).port == 5


@pytest.mark.parametrize(
    ("text", "told", "nearest"),
    [
        ("prot: 1", {}, "port"),
        ("memory: {token_budgets: 1}", {}, "memory.token_budget"),
        ("memory: {milvus: {adress: x}}", {}, "memory.milvus.address"),
        ("external_models: [{model_rol: memory_rewrite}]", {}, "external_models.model_role"),
        ("", {"environ": {"MEMPROXY_UPSTREM": "x"}}, "MEMPROXY_UPSTREAM"),
        ("", {"flags": {"data_dirr": "x"}}, "data_dir"),
    ],
)
def test_an_unknown_key_is_told_its_nearest_neighbour(
    text: str, told: Mapping[str, Mapping[str, str]], nearest: str, tmp_path: Path
) -> None:
    assert f"did you mean {nearest}?" in refusal(text, folder=tmp_path, **told)


@pytest.mark.parametrize(
    ("text", "expected", "came"),
    [
        ("port: http", "a whole number from 0 to 65535", "'http'"),
        ("port: '8080'", "a whole number from 0 to 65535", "'8080'"),
        ("port: 70000", "a whole number from 0 to 65535", "70000"),
        ("identity: nobody", "one of development, header", "'nobody'"),
        ("memory: {token_budget: 2001}", "a whole number from 1 to 2000", "2001"),
        ("memory: {enabled: 1}", "true or false", "1"),
        ("memory: 5", "keys with values", "5"),
        ("upstream: localhost:8000", "http://", "'localhost:8000'"),
        ("upstream: http://[", "http://", "'http://['"),
        ("trusted_peers: [10.0.0.1/8]", "10.0.0.0/8", "10.0.0.1/8"),
        ("host: 0.0.0.0", "loopback", "'0.0.0.0'"),
        ("api_host: '::'", "loopback", "'::'"),
        ("memory: {milvus: {dimension: 1024}}", "384", "1024"),
        ("redis_url: http://x", "redis://HOST", "'http://x'"),
        ("redis_url: redis+cluster://x/1", "any node", "'redis+cluster://x/1'"),
        ("redis_url: redis://x:port", "redis_url", "port"),
        ("external_models: [{model_role: guard, llm_endpoint: {address: x}, llm_model_name: x}]", "models", "guard"),
        (SEED.replace("memory_rewrite", "memory_extraction"), "one model for each", "two"),
        ("a: [", "is not YAML", "memproxy.yaml"),
    ],
)
def test_a_wrong_value_is_told_what_was_expected_and_what_came(
    text: str, expected: str, came: str, tmp_path: Path
) -> None:
    message = refusal(text, folder=tmp_path)
    assert expected in message
    assert came in message


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("port: 1\napi_port: 2\nport: 3", "port", 3),
        ("memory:\n  enabled: false\n  milvus: {collection: a, collection: b}", "collection", 3),
        ("external_models:\n- model_role: memory_rewrite\n  model_role: memory_extraction", "model_role", 3),
        ("memory: {enabled: true}\nmemory: {auto_store: false}", "memory", 2),
    ],
)
def test_a_key_that_comes_twice_is_refused_with_its_line(text: str, key: str, line: int, tmp_path: Path) -> None:
    message = refusal(text, folder=tmp_path)
    assert f"the key {key} occurs twice" in message
    assert f"line {line}," in message


@pytest.mark.parametrize("url", ["redis://x", "redis://x:6380/2", "rediss://[::1]:6380", "rediss+cluster://x:1/"])
def test_a_redis_server_is_named_by_its_url(url: str, tmp_path: Path) -> None:
    assert settings_of(f"redis_url: '{url}'", folder=tmp_path).redis_url == url


@pytest.mark.parametrize("url", ["redis://:hush@x", "redis://user:hush@x:6379/0", "redis://x?password=hush"])
def test_a_password_in_the_url_of_redis_is_refused_and_not_shown(url: str, tmp_path: Path) -> None:
    message = refusal(f"redis_url: '{url}'", folder=tmp_path)
    assert "MEMPROXY_MEMORY_REDIS_PASSWORD" in message
    assert "hush" not in message


def test_what_a_merge_key_brings_in_may_be_said_again(tmp_path: Path) -> None:
    text = "memory:\n  milvus: &m {collection: a, dimension: 384}\n  embedding: {<<: {dimension: 1}, dimension: 384}"
    assert settings_of(text, folder=tmp_path).memory.embedding.dimension == 384


@pytest.mark.parametrize(
    "url", ["http://user:hush@x", "http://user:hush@x:8000/v1", "ftp://hush@x", "http://a@b:hush@x"]
)
def test_a_password_in_the_upstreams_url_is_refused_and_not_shown(url: str, tmp_path: Path) -> None:
    for message in (refusal(f"upstream: '{url}'", folder=tmp_path), refusal(folder=tmp_path, flags={"upstream": url})):
        assert "upstream: expected a URL without user and password" in message
        assert "hush" not in message


def test_a_named_file_that_is_missing_is_an_error_and_an_unnamed_one_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memproxy.yaml").write_text("port: 5")
    monkeypatch.chdir(tmp_path)
    assert loader.load(None, {}, {}).port == 8080
    with pytest.raises(BadSetting, match=r"absent\.yaml cannot be read"):
        loader.load(tmp_path / "absent.yaml", {}, {})


def test_beyond_loopback_is_fine_where_the_edge_says_who_it_is(tmp_path: Path) -> None:
    assert settings_of("host: 0.0.0.0\nidentity: header", folder=tmp_path).host == "0.0.0.0"


def test_what_is_dumped_loads_to_the_same_settings_but_for_secrets(tmp_path: Path) -> None:
    settings = settings_of(SEED, environ={"MEMPROXY_EDGE_SECRET": "hush-hush"}, folder=tmp_path)
    assert settings.edge_secret == "hush-hush"
    text = loader.dump(settings)
    assert "hush" not in text
    assert "hush" not in repr(settings)
    again = settings_of(text, environ={"MEMPROXY_EDGE_SECRET": "hush-hush"}, folder=tmp_path)
    assert again == settings


@pytest.mark.parametrize("told", [{"text": "edge_secret: hush"}, {"flags": {"edge_secret": "hush"}}])
def test_a_secret_is_taken_from_the_environment_only(told: dict[str, object], tmp_path: Path) -> None:
    text, flags = str(told.get("text", "")), told.get("flags", {})
    assert isinstance(flags, dict)
    message = refusal(text, folder=tmp_path, flags=flags)
    assert "MEMPROXY_EDGE_SECRET" in message
    assert "hush" not in message


def test_a_child_gets_secrets_but_no_setting_that_would_beat_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMPROXY_PORT", "5")
    monkeypatch.setenv("MEMPROXY_EDGE_SECRET", "hush")
    monkeypatch.setenv("UNRELATED", "stays")
    environ = loader.child_environment(loader.from_process(None, {}), {"EXTRA": "1"})
    assert {k: environ.get(k) for k in ("MEMPROXY_PORT", "MEMPROXY_EDGE_SECRET", "UNRELATED", "EXTRA")} == {
        "MEMPROXY_PORT": None,
        "MEMPROXY_EDGE_SECRET": "hush",
        "UNRELATED": "stays",
        "EXTRA": "1",
    }


def test_the_file_may_be_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.yaml").write_text("port: 5")
    monkeypatch.setenv("MEMPROXY_CONFIG", str(tmp_path / "one.yaml"))
    assert loader.from_process(None, {}).port == 5


def test_every_setting_says_what_it_means() -> None:
    docs = list(loader.every_setting())
    assert {"upstream", "memory.token_budget", "memory.milvus.address", "external_models"} <= {doc.path for doc in docs}
    assert len({doc.environment for doc in docs}) == len(docs)
    assert [doc.path for doc in docs if not doc.meaning.endswith(".")] == []


SIGNALS = """
memory:
  upstream_signals:
    - {name: X-My-Router, values: [weather], means: tool}
    - {name: "envoy.filters.http.rbac:kind", means: personal}
"""


def test_signals_come_by_file_and_by_environment_and_survive_the_way_to_a_part(tmp_path: Path) -> None:
    assert settings_of(folder=tmp_path).memory.upstream_signals is None
    by_file = settings_of(SIGNALS, folder=tmp_path)
    assert by_file.memory.upstream_signals == (
        UpstreamSignal(name="X-My-Router", values=("weather",), means="tool"),
        UpstreamSignal(name="envoy.filters.http.rbac:kind", means="personal"),
    )
    environ = {"MEMPROXY_MEMORY_UPSTREAM_SIGNALS": "[{name: x-a, means: skip}]"}
    by_environment = settings_of(SIGNALS, environ=environ, folder=tmp_path)
    assert by_environment.memory.upstream_signals == (UpstreamSignal(name="x-a", means="skip"),)
    nobody = settings_of("memory: {upstream_signals: []}", folder=tmp_path)
    assert nobody.memory.upstream_signals == ()
    for settings in (by_file, nobody, loader.load(None, {}, {})):
        assert settings_of(loader.dump(settings), folder=tmp_path) == settings


@pytest.mark.parametrize(
    ("signal", "says"),
    [
        ("{name: x-a, mean: skip}", "unknown setting memory.upstream_signals.mean"),
        ("{name: x-a, means: perhaps}", "memory.upstream_signals"),
        ("{name: 'x a', means: skip}", "memory.upstream_signals"),
        ("{name: ':path', means: skip}", "memory.upstream_signals"),
        ("{name: 'space:', means: skip}", "memory.upstream_signals"),
        ("{name: '', means: skip}", "memory.upstream_signals"),
        ("{means: skip}", "memory.upstream_signals"),
        ("{name: Authorization, means: skip}", "clients need for something else"),
        ("{name: x-authz-user-id, means: skip}", "clients need for something else"),
    ],
)
def test_a_signal_that_cannot_be_or_would_take_something_from_clients_is_refused(
    signal: str, says: str, tmp_path: Path
) -> None:
    assert says in refusal(f"memory: {{upstream_signals: [{signal}]}}", folder=tmp_path)


@pytest.mark.parametrize("key", ["rewrite", "placement"])
def test_the_bare_word_off_means_off_though_yaml_reads_it_as_false(key: str, tmp_path: Path) -> None:
    assert getattr(settings_of(f"memory: {{{key}: off}}", folder=tmp_path).memory, key) == "off"
