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

from memory.adapters.redis.cluster_calls import PAUSE_SECONDS_MAX, PAUSE_SECONDS_MIN, SENT_AGAIN_MAX, ClusterCalls
from memory.adapters.redis.log_client import LogClient

CLUSTER = "+cluster"
TLS_SCHEME = "rediss"
CONNECT_SECONDS_MAX = 2.0


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
    url = f"{scheme.removesuffix(CLUSTER)}://{rest}"
    if scheme.endswith(CLUSTER):
        cluster = RedisCluster.from_url(url, **options)
        async with aclosing(ClusterCalls(cluster)), LogClient(cluster) as client:
            yield client
    else:
        async with aclosing(Redis.from_url(url, **options)) as server, LogClient(server) as client:
            yield client


__all__ = ["RedisAddress", "connected"]
