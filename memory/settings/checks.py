"""Checks of single settings that no type makes, and of those that concern several. Reads no file and no network."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import msgspec

from memory.errors import BadSetting
from memory.model import is_valid_id
from memory.model.web_pages import origin_problem
from memory.model.zones import Zones
from memory.settings.switches import OffRoute
from memory.settings.tree import Settings
from memory.typed import from_json

# Headers that cannot carry signals: Envoy removes signal headers from untrusted clients, which need these headers, and
# shows signal headers to the filter, which must not see credentials.
_NO_SIGNAL_HEADERS = frozenset(
    """accept api-key authorization connection content-encoding content-length content-type cookie expect host
    proxy-authorization te traceparent transfer-encoding upgrade user-agent x-api-key x-authz-user-id x-forwarded-for
    x-memory-edge-secret x-memory-token-claims x-request-id""".split()
)
JWT = "jwt"
_DATABASE_SCHEMES = ("postgresql", "postgres")
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


def check(settings: Settings) -> None:
    """Checks that concern several settings."""
    _check_addresses(settings)
    _check_identity(settings)
    _check_signals(settings)
    for route in settings.memory.off_routes:
        OffRoute.parsed(route)
    if not Zones().is_known(settings.memory.timezone):
        raise BadSetting(
            f"memory.timezone: expected a name such as Europe/Berlin, or an offset such as +02:00; got "
            f"{settings.memory.timezone!r:.80}"
        )
    if settings.database_url:
        _check_database_url(settings.database_url)
    if settings.memory.milvus.dimension != settings.memory.embedding.dimension:
        raise BadSetting(
            f"memory.milvus.dimension is {settings.memory.milvus.dimension}, memory.embedding.dimension is "
            f"{settings.memory.embedding.dimension}: set both to the length of the model's vectors"
        )
    roles = [model.model_role for model in settings.external_models]
    if len(set(roles)) < len(roles):
        raise BadSetting("external_models: expected one model for each model_role, got two for one; take one out")


def _check_identity(settings: Settings) -> None:
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
        keys = from_json(text, _KeySet).keys
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
    if not _is_http_url(url) or not url.isascii() or not url.isprintable():
        return False
    parts = urlsplit(url)
    return not (parts.username or parts.password or parts.fragment)


def _check_database_url(url: str) -> None:
    """Raises `BadSetting`, which shows no password."""
    try:
        parts = urlsplit(url)
        hosts = [urlsplit(f"//{host}") for host in parts.netloc.rpartition("@")[2].split(",")]
        is_address = parts.scheme in _DATABASE_SCHEMES and all(host.hostname and host.port != 0 for host in hosts)
    except ValueError as error:
        raise BadSetting(f"database_url: {error}") from error
    if "@" in parts.netloc or parts.query:
        raise BadSetting(
            "database_url: expected a URL without user, password and options (not shown here); set "
            "memory.database.username, and MEMPROXY_MEMORY_DATABASE_PASSWORD in the environment"
        )
    if not is_address or parts.path.count("/") != 1 or len(parts.path) < 2:  # "/" and a name
        raise BadSetting(
            f"database_url: expected postgresql://HOST:PORT/DATABASE, or several HOST:PORT with commas between them, "
            f"got {url!r:.80}"
        )


def _check_signals(settings: Settings) -> None:
    for signal in settings.memory.upstream_signals or ():
        if signal.name.lower() in _NO_SIGNAL_HEADERS:
            raise BadSetting(
                f"memory.upstream_signals: {signal.name} is a header that clients need for something else, and signals "
                "are taken away from clients that are not trusted; use a header of its own, such as x-memory-intent"
            )


def _check_addresses(settings: Settings) -> None:
    if "@" in settings.upstream.partition("//")[2].partition("/")[0]:
        raise BadSetting(
            "upstream: expected a URL without user and password (not shown here): clients send their own Authorization "
            "header; take out what stands before the @"
        )
    for path, url in (("upstream", settings.upstream), ("tracing.endpoint", settings.tracing.endpoint)):
        if url and not _is_http_url(url):
            raise BadSetting(f"{path}: expected a URL such as http://127.0.0.1:8000, got {url!r:.80}")
    store = settings.store_uri
    if store and not store.startswith("unix:/") and not _is_http_url(store):
        raise BadSetting(
            f"milvus_uri: expected a URL such as http://127.0.0.1:19530, or unix:/PATH of a socket; got {store!r:.80}"
        )
    for peer in settings.trusted_peers:
        try:
            ipaddress.ip_network(peer)
        except ValueError as error:
            raise BadSetting(f"trusted_peers: expected networks such as 10.0.0.0/8: {error}") from error
    for path in ("host", "api_host"):
        host = getattr(settings, path)
        if settings.identity == "development" and not is_loopback(host):
            raise BadSetting(
                f"{path}: identity `development` believes whatever a client says it is, so it listens on loopback "
                f"only, got {host!r:.80}; use 127.0.0.1, or identity `header` or `jwt`"
            )


def _is_http_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
