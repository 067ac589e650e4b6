"""Checks the URL of a Redis server before anything connects to it."""

from __future__ import annotations

from urllib.parse import urlsplit

from memory.errors import BadSetting

CLUSTER = "+cluster"
SCHEMES = ("redis", "rediss", f"redis{CLUSTER}", f"rediss{CLUSTER}")


def check_redis_url(url: str) -> None:
    """Raises `BadSetting`, which shows no password."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise BadSetting(f"redis_url: {error}") from error
    if "@" in parts.netloc or parts.query:
        raise BadSetting(
            "redis_url: expected a URL without user, password and options (not shown here); set memory.redis.username, "
            "and MEMPROXY_MEMORY_REDIS_PASSWORD in the environment"
        )
    if not is_address or not _is_database(parts.path, scheme=parts.scheme):
        raise BadSetting(
            f"redis_url: expected redis://HOST:PORT/DATABASE, rediss:// with TLS, or redis{CLUSTER}://HOST:PORT of any "
            f"node of a cluster, got {url!r:.80}"
        )


def _is_database(path: str, *, scheme: str) -> bool:
    """A cluster has one database only."""
    number = path.removeprefix("/")
    return not number or (number.isdecimal() and not scheme.endswith(CLUSTER))


__all__ = ["check_redis_url"]
