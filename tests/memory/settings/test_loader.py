"""Settings: who beats whom, what is refused before anything starts, and what a wrong one is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from token_issuer import TokenIssuer
from written_settings import written_settings

from memory.errors import BadSetting
from memory.model.token_claims import ClaimNames
from memory.processes.from_settings import caller_rules, claim_names
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


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def settings_of(text: str = "", **told: Mapping[str, Any]) -> loader.Settings:
    """`told`: flags and environ."""
    file = Path("memproxy.yaml")
    file.write_text(text, encoding="utf-8")
    return loader.load(file, told.get("flags", {}), told.get("environ", {}))


def refusal(text: str = "", **told: Mapping[str, Any]) -> str:
    with pytest.raises(BadSetting) as caught:
        settings_of(text, **told)
    return str(caught.value)


def test_flags_beat_environment_beats_file_beats_defaults() -> None:
    text = "port: 1\napi_port: 1\nfilters: 2"
    environ = {"MEMPROXY_PORT": "2", "MEMPROXY_API_PORT": "2", "MEMPROXY_FILTERS": "", "PATH": "/bin"}
    settings = settings_of(text, flags={"port": 3, "api_port": None}, environ=environ)
    assert (settings.port, settings.api_port, settings.filters, settings.workers) == (3, 2, 2, 1)


def test_the_keys_of_the_first_design_load_unchanged_and_count() -> None:
    settings = settings_of(SEED)
    assert (settings.memory.default_retrieval_limit, settings.memory.default_similarity_threshold) == (5, 0.6)
    assert settings.store_uri == "http://127.0.0.1:19530"
    by_flag = settings_of(SEED, flags={"milvus_uri": "http://milvus:19530"})
    assert by_flag.store_uri == "http://milvus:19530"
    rewrite = settings.model_for("memory_rewrite")
    assert rewrite is not None
    assert (rewrite.llm_model_name, rewrite.max_tokens, rewrite.llm_timeout_seconds) == ("qwen3", 100, 30.0)


def test_nested_settings_and_lists_come_by_environment() -> None:
    environ = {
        "MEMPROXY_MEMORY_EMBEDDING_THREADS": "7",
        "MEMPROXY_MEMORY_ENABLED": "false",
        "MEMPROXY_MEMORY_TURN_LOG_SYNCHRONOUS": "FULL",
        "MEMPROXY_TRUSTED_PEERS": "10.0.0.0/8, 192.0.2.1/32",
        "MEMPROXY_EXTERNAL_MODELS": "[{model_role: memory_rewrite, llm_endpoint: {address: h}, llm_model_name: m}]",
    }
    settings = settings_of(environ=environ)
    memory = settings.memory
    assert (memory.embedding.threads, memory.enabled, memory.turn_log.synchronous) == (7, False, "FULL")
    assert settings.trusted_peers == ("10.0.0.0/8", "192.0.2.1/32")
    assert settings.external_models[0].llm_endpoint.address == "h"


@pytest.mark.parametrize(
    ("text", "told", "nearest"),
    [
        ("prot: 1", {}, "port"),
        ("memory: {token_budgets: 1}", {}, "memory.token_budget"),
        ("memory: {milvus: {adress: x}}", {}, "memory.milvus.address"),
        ("external_models: [{model_rol: memory_rewrite}]", {}, "external_models.model_role"),
        ("memory: {hybrid_serch: true}", {}, "memory.hybrid_search"),  # from here on the router's own keys
        ("memory: {redis_cahce: {}}", {}, "memory.redis_cache"),
        ("memory: {reflection: {algoritm: x}}", {}, "memory.reflection.algorithm"),
        ("routng: {}", {}, "routing"),
        ("global: {store: {}}", {}, "global.stores"),
        ("global: {stores: {memroy: {}}}", {}, "global.stores.memory"),
        ("global: {stores: {memory: {auto_stor: true}}}", {}, "global.stores.memory.auto_store"),
        ("global: {stores: {memory: {valkey: {hots: x}}}}", {}, "global.stores.memory.valkey.host"),
        ("", {"environ": {"MEMPROXY_UPSTREM": "x"}}, "MEMPROXY_UPSTREAM"),
        ("", {"flags": {"data_dirr": "x"}}, "data_dir"),
    ],
)
def test_an_unknown_key_is_told_its_neighbour(text: str, told: Mapping[str, Mapping[str, str]], nearest: str) -> None:
    assert f"did you mean {nearest}?" in refusal(text, **told)


@pytest.mark.parametrize(
    ("text", "expected", "came"),
    [
        ("port: http", "a whole number from 0 to 65535", "'http'"),
        ("port: '8080'", "a whole number from 0 to 65535", "'8080'"),
        ("port: 70000", "a whole number from 0 to 65535", "70000"),
        ("identity: nobody", "one of development, header", "'nobody'"),
        ("memory: {token_budget: 2001}", "a whole number from 1 to 2000", "2001"),
        ("memory: {receipts: {keep_days: 0}}", "memory.receipts.keep_days", "got 0"),
        ("memory: {receipts: {total_mib: 0}}", "memory.receipts.total_mib", "got 0"),
        ("memory: {notes: {total_mib: 0.5}}", "memory.notes.total_mib", "0.5"),
        ("memory: {working_set: {patience_ms: 10000}}", "memory.working_set.patience_ms", "10000"),
        ("memory: {enabled: 1}", "true or false", "1"),
        ("memory: {envelopes: query}", "a list of text", "'query'"),
        ("memory: 5", "keys with values", "5"),
        ("upstream: localhost:8000", "http://", "'localhost:8000'"),
        ("upstream: http://[", "http://", "'http://['"),
        ("upstream: http://x:0", "http://", "'http://x:0'"),
        ("upstream: http://x:99999", "http://", "'http://x:99999'"),
        ("tracing: {endpoint: 'http://x:99999'}", "tracing.endpoint", "'http://x:99999'"),
        ("trusted_peers: [10.0.0.1/8]", "10.0.0.0/8", "10.0.0.1/8"),
        ("host: 0.0.0.0", "loopback", "'0.0.0.0'"),
        ("api_host: '::'", "loopback", "'::'"),
        ("memory: {milvus: {dimension: 1024}}", "384", "1024"),
        ("database_url: http://x/y", "postgresql://HOST", "'http://x/y'"),
        ("database_url: postgresql://x", "DATABASE", "'postgresql://x'"),
        ("database_url: postgresql://x:port/y", "database_url", "port"),
        ("redis_url: redis://x", "redis_url", "database_url: postgresql://"),
        ("memory: {redis: {username: x}}", "memory.redis", "memory.database"),
        ("external_models: [{model_role: guard, llm_endpoint: {address: x}, llm_model_name: x}]", "models", "guard"),
        (SEED.replace("memory_rewrite", "memory_extraction"), "one model for each", "two"),
        ("a: [", "is not YAML", "memproxy.yaml"),
    ],
)
def test_a_wrong_value_is_told_what_was_expected_and_what_came(text: str, expected: str, came: str) -> None:
    message = refusal(text)
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
def test_a_key_that_comes_twice_is_refused_with_its_line(text: str, key: str, line: int) -> None:
    message = refusal(text)
    assert f"the key {key} occurs twice" in message
    assert f"line {line}," in message


@pytest.mark.parametrize(
    ("key", "url", "says"),
    [
        ("database_url", "postgresql://:hush@x/y", "MEMPROXY_MEMORY_DATABASE_PASSWORD"),
        ("database_url", "postgresql://user:hush@x:5432/y", "MEMPROXY_MEMORY_DATABASE_PASSWORD"),
        ("database_url", "postgresql://x/y?password=hush", "MEMPROXY_MEMORY_DATABASE_PASSWORD"),
        ("upstream", "http://user:hush@x:8000/v1", "upstream: expected a URL without user and password"),
        ("upstream", "ftp://hush@x", "upstream: expected a URL without user and password"),
        ("upstream", "http://a@b:hush@x", "upstream: expected a URL without user and password"),
        ("edge_secret", "hush", "MEMPROXY_EDGE_SECRET"),
    ],
)
def test_a_secret_is_taken_from_the_environment_only_and_not_shown(key: str, url: str, says: str) -> None:
    for message in (refusal(f"{key}: '{url}'"), refusal(flags={key: url})):
        assert says in message
        assert "hush" not in message


def test_a_named_file_must_exist_and_an_unnamed_one_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path("memproxy.yaml").absolute()
    file.write_text("port: 5")
    assert loader.load(None, {}, {}).port == 8080
    monkeypatch.setenv("MEMPROXY_CONFIG", str(file))
    assert loader.from_process(None, {}).port == 5, "it is named by the environment"
    with pytest.raises(BadSetting, match=r"absent\.yaml cannot be read"):
        loader.load(file.with_name("absent.yaml"), {}, {})


def test_what_is_dumped_loads_to_the_same_settings_but_for_secrets() -> None:
    settings = settings_of(SEED, environ={"MEMPROXY_EDGE_SECRET": "hush-hush"})
    assert settings.edge_secret == "hush-hush"
    text = loader.dump(settings)
    assert "hush" not in text
    assert "hush" not in repr(settings)
    again = settings_of(text, environ={"MEMPROXY_EDGE_SECRET": "hush-hush"})
    assert again == settings


def test_a_child_gets_secrets_but_no_setting_that_would_beat_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMPROXY_PORT", "5")
    monkeypatch.setenv("MEMPROXY_EDGE_SECRET", "hush")
    monkeypatch.setenv("UNRELATED", "stays")
    environ = loader.child_environment(loader.from_process(None, {}), {"EXTRA": "1"})
    assert {"MEMPROXY_EDGE_SECRET": "hush", "UNRELATED": "stays", "EXTRA": "1"}.items() <= environ.items()
    assert "MEMPROXY_PORT" not in environ


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


def test_signals_come_by_file_and_by_environment_and_survive_the_way_to_a_part() -> None:
    assert settings_of().memory.upstream_signals is None
    by_file = settings_of(SIGNALS)
    assert by_file.memory.upstream_signals == (
        UpstreamSignal(name="X-My-Router", values=("weather",), means="tool"),
        UpstreamSignal(name="envoy.filters.http.rbac:kind", means="personal"),
    )
    environ = {"MEMPROXY_MEMORY_UPSTREAM_SIGNALS": "[{name: x-a, means: skip}]"}
    by_environment = settings_of(SIGNALS, environ=environ)
    assert by_environment.memory.upstream_signals == (UpstreamSignal(name="x-a", means="skip"),)
    nobody = settings_of("memory: {upstream_signals: []}")
    assert nobody.memory.upstream_signals == ()
    for settings in (by_file, nobody, loader.load(None, {}, {})):
        assert settings_of(loader.dump(settings)) == settings


@pytest.mark.parametrize(
    ("signal", "says"),
    [
        ("{name: x-a, mean: skip}", "unknown setting memory.upstream_signals.mean"),
        ("{name: x-a, means: perhaps}", "memory.upstream_signals"),
        *((f"{{name: '{name}', means: skip}}", "memory.upstream_signals") for name in ("x a", ":path", "space:", "")),
        ("{means: skip}", "memory.upstream_signals"),
        ("{name: Authorization, means: skip}", "clients need for something else"),
        ("{name: x-authz-user-id, means: skip}", "clients need for something else"),
    ],
)
def test_a_signal_that_cannot_be_or_would_take_something_from_clients_is_refused(signal: str, says: str) -> None:
    assert says in refusal(f"memory: {{upstream_signals: [{signal}]}}")


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        *(
            (f"database_url: '{url}'", "database_url", url)
            for url in ("postgresql://x/log", "postgres://[::1]:6432/log", "postgresql://a:1,b:2/log")
        ),
        (
            "memory: {milvus: &m {dimension: 384}, embedding: {<<: {dimension: 1}, dimension: 384}}",
            "memory.embedding.dimension",
            384,
        ),
        ("memory: {rewrite: off}", "memory.rewrite", "off"),  # which YAML reads as false
        ("memory: {placement: off}", "memory.placement", "off"),
    ],
)
def test_what_is_said_in_any_of_its_ways_is_what_counts(text: str, path: str, value: object) -> None:
    assert attrgetter(path)(settings_of(text)) == value


# Identity

JWT: dict[str, Any] = {"issuer": "https://login.example", "jwks_url": "https://login.example/keys.json"}
HASH = "0" * 64
TAKEN_HEADERS = ("Authorization", "x-authz-user-id", "x-memory-token-claims", "cookie", "")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"issuer": ""}, "jwt.issuer"),
        ({"jwks_url": ""}, "exactly one of jwt.jwks, jwt.jwks_file, jwt.jwks_url; got none"),
        ({"jwks_file": "keys.json"}, "got jwks_file and jwks_url"),
        ({"jwks_url": "", "jwks": "{}"}, "jwt.jwks: this is no JWK set"),
        ({"jwks_url": "", "jwks": '{"keys": []}'}, "holds no key"),
        ({"jwks_url": "", "jwks": '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}'}, "private or symmetric"),
        ({"jwks_url": "", "jwks": '{"keys": [{"kty": "RSA", "e": "AQAB"}]}'}, "lacks `n`"),
        ({"jwks_url": "", "jwks": '{"keys": [{"kid": "a"}]}'}, "lacks `kty`"),
        ({"jwks_url": "login.example/keys"}, "jwt.jwks_url"),
        ({"jwks_url": "https://u:p@login.example/keys"}, "without credentials"),
        ({"jwks_url": "https://login.example/keys\n"}, "jwt.jwks_url"),
        ({"user_claim": ""}, "jwt.user_claim"),
        *(({"token_header": name}, "jwt.token_header") for name in TAKEN_HEADERS),
    ],
)
def test_tokens_that_could_not_be_verified_are_refused(changes: dict[str, Any], says: str) -> None:
    assert says in refusal(json.dumps({"identity": "jwt", "jwt": JWT | changes}))


def test_the_header_of_tokens_is_no_signal_that_the_filter_would_see(tmp_path: Path) -> None:
    signals = {"upstream_signals": [{"name": "X-User-Token", "means": "skip"}]}
    with pytest.raises(BadSetting, match="is a signal"):
        written_settings(tmp_path, identity="jwt", jwt=JWT | {"token_header": "x-user-token"}, memory=signals)


def test_a_mode_with_tokens_listens_beyond_loopback_and_survives_its_dump(tmp_path: Path) -> None:
    jwt = JWT | {"jwks_url": "", "jwks": TokenIssuer().key_set(), "tenant_claim": "org.id"}
    settings = written_settings(tmp_path, identity="jwt", host="0.0.0.0", api_host="0.0.0.0", jwt=jwt)
    assert settings_of(loader.dump(settings)) == settings
    assert claim_names(settings) == ClaimNames("sub", "org.id", "")
    assert written_settings(tmp_path, jwt={"issuer": ""}).identity == "development", "which reads none of it"


def test_settings_of_tokens_come_from_the_environment_too() -> None:
    environ = {
        "MEMPROXY_IDENTITY": "jwt",
        "MEMPROXY_JWT_ISSUER": "i",
        "MEMPROXY_JWT_AUDIENCES": "chat, api",
        "MEMPROXY_JWT_JWKS": TokenIssuer().key_set(),
        "MEMPROXY_JWT_REQUIRED": "true",
        "MEMPROXY_SERVICE_TOKENS": f'[{{name: importer, sha256: "{HASH}", any_user: true}}]',
    }
    settings = loader.load(None, {}, environ)
    assert (settings.jwt.audiences, settings.jwt.required) == (("chat", "api"), True)
    [token] = caller_rules(settings).tokens
    assert (token.name, token.digest, token.scopes, token.users) == ("importer", bytes(32), {"read"}, None)


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ([{"name": "a", "sha256": HASH}], "either users, or any_user"),
        ([{"name": "a", "sha256": HASH, "users": ["ann"], "any_user": True}], "either users, or any_user"),
        ([{"name": "a", "sha256": HASH, "users": [" ann"]}], "not valid"),
        ([{"name": "a", "sha256": HASH, "users": ["ann"], "scopes": []}], "no scope"),
        ([{"name": "a", "sha256": HASH, "users": ["ann"], "scopes": ["admin"]}], "service_tokens"),
        ([{"name": "a", "sha256": "abc", "users": ["ann"]}], "service_tokens"),
        ([{"name": "A b", "sha256": HASH, "users": ["ann"]}], "service_tokens"),
        ([{"name": "a", "sha256": HASH, "any_user": True}] * 2, "same name"),
        ([{"name": "unknown", "sha256": HASH, "any_user": True}], "nobody knows"),
        ([{"name": n, "sha256": HASH, "any_user": True} for n in "ab"], "same sha256"),
        ([{"name": "a", "sha256": HASH, "scopes": ["operate"], "users": ["ann"]}], "needs any_user"),
        ([{"name": "a", "token": "mpt_x", "any_user": True}], "token"),
    ],
)
def test_service_tokens_that_say_too_little_or_too_much_are_refused(tokens: list[Any], says: str) -> None:
    assert says in refusal(json.dumps({"service_tokens": tokens}))
