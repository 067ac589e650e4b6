"""Settings about identity: what is refused before anything starts, and what is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from token_issuer import TokenIssuer

from memory.errors import BadSetting
from memory.model.token_claims import ClaimNames
from memory.processes.from_settings import caller_rules, claim_names
from memory.settings.loader import dump, load

JWT: dict[str, Any] = {"issuer": "https://login.example", "jwks_url": "https://login.example/keys.json"}
HASH = "0" * 64


def loaded(tmp_path: Any, **written: Any) -> Any:
    file = tmp_path / "settings.yaml"
    file.write_text(json.dumps(written))
    return load(file, {}, {})


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
        ({"token_header": "Authorization"}, "jwt.token_header"),
        ({"token_header": "x-authz-user-id"}, "jwt.token_header"),
        ({"token_header": "x-memory-token-claims"}, "jwt.token_header"),
        ({"token_header": "cookie"}, "jwt.token_header"),
        ({"token_header": ""}, "jwt.token_header"),
        ({"jwks_cache_seconds": 0}, "from 1"),
    ],
)
def test_tokens_that_could_not_be_verified_are_refused(tmp_path: Any, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(BadSetting) as error:
        loaded(tmp_path, identity="jwt", jwt=JWT | changes)
    assert says in str(error.value)


def test_the_header_of_tokens_is_no_signal_that_the_filter_would_see(tmp_path: Any) -> None:
    signals = {"upstream_signals": [{"name": "X-User-Token", "means": "skip"}]}
    with pytest.raises(BadSetting, match="is a signal"):
        loaded(tmp_path, identity="jwt", jwt=JWT | {"token_header": "x-user-token"}, memory=signals)


def test_a_mode_with_tokens_listens_beyond_loopback_and_survives_its_dump(tmp_path: Any) -> None:
    jwt = JWT | {"jwks_url": "", "jwks": TokenIssuer().key_set(), "tenant_claim": "org.id"}
    settings = loaded(tmp_path, identity="jwt", host="0.0.0.0", api_host="0.0.0.0", jwt=jwt)
    (tmp_path / "again.yaml").write_text(dump(settings))
    assert load(tmp_path / "again.yaml", {}, {}) == settings
    assert claim_names(settings) == ClaimNames("sub", "org.id", "")
    assert loaded(tmp_path, jwt={"issuer": ""}).identity == "development", "which reads none of it"


def test_settings_of_tokens_come_from_the_environment_too() -> None:
    environ = {
        "MEMPROXY_IDENTITY": "jwt",
        "MEMPROXY_JWT_ISSUER": "i",
        "MEMPROXY_JWT_AUDIENCES": "chat, api",
        "MEMPROXY_JWT_JWKS": TokenIssuer().key_set(),
        "MEMPROXY_JWT_REQUIRED": "true",
        "MEMPROXY_SERVICE_TOKENS": f'[{{name: importer, sha256: "{HASH}", any_user: true}}]',
    }
    settings = load(None, {}, environ)
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
def test_service_tokens_that_say_too_little_or_too_much_are_refused(
    tmp_path: Any, tokens: list[Any], says: str
) -> None:
    with pytest.raises(BadSetting) as error:
        loaded(tmp_path, service_tokens=tokens)
    assert says in str(error.value)
