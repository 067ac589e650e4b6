"""Checks of the settings about identity, which concern several of them. Reads no file and no network."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from memory.errors import BadSetting
from memory.model import is_valid_id
from memory.model.page_origins import origin_problem
from memory.settings.tree import Settings

JWT = "jwt"
RESERVED_NAME = "unknown"
_KEY_SOURCES = ("jwks", "jwks_file", "jwks_url")
_HEADER_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
# Headers that mean something else to Envoy, to us or to HTTP itself.
_NO_TOKEN_HEADERS = frozenset(
    """connection content-encoding content-length content-type cookie expect host te traceparent transfer-encoding
    upgrade x-authz-user-id x-memory x-memory-compact x-memory-edge-secret x-memory-token-claims x-request-id""".split()
)
_KEY_PARTS = {"RSA": ("kty", "n", "e"), "EC": ("kty", "crv", "x", "y"), "OKP": ("kty", "crv", "x")}
_PRIVATE_PARTS = frozenset({"d", "k"})  # of an RSA or elliptic key; of a symmetric one


class _KeySet(msgspec.Struct):
    keys: list[dict[str, object]]


def check_identity(settings: Settings) -> None:
    """Raise `BadSetting` for settings that would identify nobody, or the wrong one."""
    if settings.identity == JWT:
        _check_jwt(settings)
    _check_tokens(settings)
    for origin in settings.memory.identity.trusted_origins:
        if problem := origin_problem(origin):
            raise BadSetting(
                f"memory.identity.trusted_origins: {problem}; got {origin!r:.80}. Write what `location.origin` "
                "shows in the console of the page"
            )


def _check_jwt(settings: Settings) -> None:
    jwt = settings.jwt
    if not jwt.issuer:
        raise BadSetting("jwt.issuer: identity `jwt` needs the issuer of the tokens, as their claim `iss` names it")
    if not jwt.user_claim:
        raise BadSetting("jwt.user_claim: identity `jwt` needs the claim that names the user; `sub` is usual")
    given = [name for name in _KEY_SOURCES if getattr(jwt, name)]
    if len(given) != 1:
        raise BadSetting(
            f"identity `jwt` needs the issuer's keys from exactly one of {', '.join(f'jwt.{n}' for n in _KEY_SOURCES)};"
            f" got {' and '.join(given) or 'none'}"
        )
    if jwt.token_header in _NO_TOKEN_HEADERS or not jwt.token_header or set(jwt.token_header) - _HEADER_CHARACTERS:
        raise BadSetting(
            f"jwt.token_header: expected a header in lower case that may hold a token, such as authorization or "
            f"x-user-token; got {jwt.token_header!r:.80}"
        )
    if jwt.token_header in {signal.name.lower() for signal in settings.memory.upstream_signals or ()}:
        raise BadSetting(
            f"jwt.token_header: {jwt.token_header} is a signal in memory.upstream_signals, which the filter would see; "
            "tokens stay at the edge: use another header for one of them"
        )
    if jwt.jwks and (problem := key_set_problem(jwt.jwks.encode())):
        raise BadSetting(f"jwt.jwks: {problem}")
    if jwt.jwks_url and not _is_plain_url(jwt.jwks_url):
        raise BadSetting("jwt.jwks_url: expected a URL such as https://login.example/keys.json, without credentials")


def key_set_problem(text: bytes) -> str:
    """What is wrong with a JWK set; "" if it has public keys and nothing else."""
    try:
        keys = msgspec.json.decode(text, type=_KeySet).keys
    except (msgspec.DecodeError, UnicodeDecodeError):
        return 'this is no JWK set: expected JSON such as {"keys": [{"kty": "RSA", …}]}'
    if not keys:
        return "this JWK set holds no key"
    if any(_PRIVATE_PARTS & key.keys() for key in keys):
        return "this JWK set holds a private or symmetric key; publish and configure public keys only"
    for key in keys:
        lacking = [part for part in _KEY_PARTS.get(str(key.get("kty")), ("kty",)) if not isinstance(key.get(part), str)]
        if lacking:
            return f"a key of this JWK set lacks {' and '.join(f'`{part}`' for part in lacking)}"
    return ""


def _check_tokens(settings: Settings) -> None:
    tokens = settings.service_tokens
    for field, values in (("name", [t.name for t in tokens]), ("sha256", [t.sha256 for t in tokens])):
        if len(set(values)) < len(values):
            raise BadSetting(f"service_tokens: two tokens have the same {field}; take one out")
    for token in tokens:
        if token.any_user == bool(token.users):
            raise BadSetting(f"service_tokens: {token.name} needs either users, or any_user: true")
        if token.name == RESERVED_NAME:
            raise BadSetting(f"service_tokens: {RESERVED_NAME} is what metrics call a token that nobody knows")
        if not token.scopes:
            raise BadSetting(f"service_tokens: {token.name} has no scope; give it read, write, operate, or several")
        if "operate" in token.scopes and not token.any_user:
            raise BadSetting(f"service_tokens: {token.name} has the scope operate, which needs any_user: true")
        if not all(map(is_valid_id, token.users)):
            raise BadSetting(f"service_tokens: {token.name} names a user whose id is not valid")


def _is_plain_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_http and not (parts.username or parts.password or parts.fragment) and url.isascii() and url.isprintable()
