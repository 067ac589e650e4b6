"""Whether Redis servers are what the setting says and keep what they acknowledge, checked once at the start.

A turn that was recorded has to survive. Servers that evict keys, or have no append-only file, lose turns; with
`appendfsync everysec` the last second is lost when the machine of the server dies, not when the server does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog

from memory.adapters.redis.failure_reasons import IS_A_CLUSTER, mistake_in_url, was_closed
from memory.adapters.redis.log_client import LogClient
from memory.errors import BadSetting, Unavailable

OLDEST_MAJOR_VERSION = 7
MODES = ("redis_mode", "server_mode")  # as Redis calls it, and Valkey

_log = structlog.get_logger(__name__)


async def check_servers(client: LogClient, *, survives_power_failure: bool) -> None:
    """Raises `BadSetting` for a server that would lose turns, and where one node of a cluster is taken for all of it or
    a single server for a cluster. `survives_power_failure`: also that of its machine.

    Where `CONFIG` is forbidden, as on many hosted servers, a warning says what could not be checked.
    """
    for info in await _introductions(client):
        check_version(info)
        _check_mode(info, is_cluster=client.is_cluster)
    wanted = _wanted(survives_power_failure=survives_power_failure)
    settings = await configured(client, *wanted)
    if None in settings:
        _log.warning(
            "redis.not_checked",
            reason="it refuses CONFIG GET: see for yourself that turns survive",
            **{name.replace("-", "_"): " or ".join(values) for name, values in wanted.items()},
        )
    for node in settings:
        if node is not None:
            _check_settings(node, wanted)


async def _introductions(client: LogClient) -> Sequence[Mapping[str, object] | None]:
    try:
        return await client.of_each_node("INFO", "server")
    except Unavailable as error:
        if was_closed(error):
            raise Unavailable(
                "turn_log", "Redis closes the connection: a port for TLS needs rediss:// in redis_url"
            ) from error
        if mistake := mistake_in_url(error):
            raise BadSetting(mistake) from None
        raise


async def server_time(client: LogClient) -> float:
    """What a server calls now, in Unix seconds."""
    (reply, *_) = await client.of_each_node("TIME")
    seconds, microseconds = reply
    return float(int(seconds)) + int(microseconds) / 1e6


async def configured(client: LogClient, *names: str) -> list[Mapping[str, str] | None]:
    """These settings of each server; None of one that does not tell."""
    return [None if reply is None else _settings(reply) for reply in await client.of_each_node("CONFIG", "GET", *names)]


def _settings(reply: object) -> Mapping[str, str]:
    if isinstance(reply, Mapping):
        return {_text(name): _text(value) for name, value in reply.items()}
    assert isinstance(reply, list)  # names and values in turn
    return {_text(name): _text(value) for name, value in zip(reply[::2], reply[1::2], strict=True)}


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def check_version(info: Mapping[str, object] | None) -> None:
    """Raises `BadSetting`. `info`: the server's reply to INFO, or None if it refuses. Valkey, whose first version was
    7.2, calls itself Redis 7 as well.
    """
    version = str((info or {}).get("redis_version", ""))
    major = version.partition(".")[0]
    if major.isdigit() and int(major) < OLDEST_MAJOR_VERSION:
        raise BadSetting(f"Redis {OLDEST_MAJOR_VERSION} or later is needed, or Valkey; this server is {version}")


def _check_mode(info: Mapping[str, object] | None, *, is_cluster: bool) -> None:
    """Such a node answers what it is asked about itself, and refuses the keys of the other nodes."""
    if not is_cluster and any((info or {}).get(name) == "cluster" for name in MODES):
        raise BadSetting(IS_A_CLUSTER)


def _wanted(*, survives_power_failure: bool) -> dict[str, tuple[str, ...]]:
    """Settings with the values that are accepted."""
    wanted: dict[str, tuple[str, ...]] = {"appendonly": ("yes",), "maxmemory-policy": ("noeviction",)}
    if survives_power_failure:
        return wanted | {"appendfsync": ("always",), "no-appendfsync-on-rewrite": ("no",)}
    return wanted | {"appendfsync": ("always", "everysec")}


def _check_settings(node: Mapping[str, str], wanted: Mapping[str, tuple[str, ...]]) -> None:
    for name, values in wanted.items():
        if node.get(name) not in values:
            raise BadSetting(
                f"this Redis server would lose turns: its {name} must be {' or '.join(values)}, "
                f"and is {node.get(name, 'unknown')}; change redis.conf, or CONFIG SET and CONFIG REWRITE"
            )
