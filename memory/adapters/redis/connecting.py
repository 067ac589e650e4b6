"""Connects to the Redis or Valkey server, or cluster, that a URL names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from memory.adapters.redis.log_client import LogClient

CLUSTER = "+cluster"
TLS_SCHEME = "rediss"
CONNECT_SECONDS_MAX = 2.0
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.005, 0.3  # before a call is sent again, doubling
SENT_AGAIN_MAX = 6  # over a connection that was lost: half a second, in which a server starts again


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """`url`: `redis://HOST[:PORT][/DATABASE]`, `rediss://` with TLS, `redis+cluster://` or `rediss+cluster://` of any
    node of a cluster. `certificate_authority`: a PEM file; empty: the authorities of the system.
    """

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    certificate_authority: str = ""


@asynccontextmanager
async def connected(address: RedisAddress) -> AsyncIterator[LogClient]:
    """Nothing is sent before the first call."""
    scheme, _, rest = address.url.partition("://")
    again = Retry(ExponentialBackoff(cap=PAUSE_SECONDS_MAX, base=PAUSE_SECONDS_MIN), SENT_AGAIN_MAX)
    options: dict[str, Any] = {"socket_connect_timeout": CONNECT_SECONDS_MAX, "retry": again}
    if address.username:
        options["username"] = address.username
    if address.password:
        options["password"] = address.password
    if scheme.startswith(TLS_SCHEME) and address.certificate_authority:
        options["ssl_ca_certs"] = address.certificate_authority
    kind = RedisCluster if scheme.endswith(CLUSTER) else Redis
    # Closed only: entered, a cluster's client would ask its nodes at once.
    async with aclosing(kind.from_url(f"{scheme.removesuffix(CLUSTER)}://{rest}", **options)) as client:
        yield LogClient(client)


__all__ = ["RedisAddress", "connected"]
