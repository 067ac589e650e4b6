"""Checks the URL of a PostgreSQL server before anything connects to it."""

from __future__ import annotations

from urllib.parse import urlsplit

from memory.errors import BadSetting

SCHEMES = ("postgresql", "postgres")


def check_database_url(url: str) -> None:
    """Raises `BadSetting`, which shows no password."""
    try:
        parts = urlsplit(url)
        hosts = [urlsplit(f"//{host}") for host in parts.netloc.rpartition("@")[2].split(",")]
        is_address = parts.scheme in SCHEMES and all(host.hostname and host.port != 0 for host in hosts)
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
