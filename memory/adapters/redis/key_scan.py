"""Looks for strings in all that a Redis server shows: the names and values of all keys of the database, and its logs of
commands.

Values are read by their type and not as `DUMP` gives them, which may be compressed. Files of the server cannot be read
from here; once they are rewritten (`deleted_keys`), they hold what the keys hold. Names of keys hold ids that others
have chosen, so a report says of what kind a key is.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from memory.adapters.file_scan import forms_of
from memory.adapters.redis.failure_reasons import is_refused
from memory.adapters.redis.log_client import Command, LogClient, Reply
from memory.errors import Unavailable
from memory.ports.erasures import PlaceReport

REDIS = "redis"
SEARCHED = "the name and value of every key of the database, after the append-only file was rewritten, and slow logs"
SCAN_SECONDS_MAX = 300.0
FIRST_BYTES = 64 << 10  # of each text of a page of keys: few have more
PIECE_BYTES = 4 << 20
MEMBERS_IN_A_PIECE = 50
FOREIGN = "keys that are not memproxy's"
COMMAND_LOGS: tuple[tuple[str, ...], ...] = (
    ("SLOWLOG", "GET", "-1"),
    ("COMMANDLOG", "GET", "-1", "large-request"),  # Valkey's
    ("COMMANDLOG", "GET", "-1", "large-reply"),
)

_MEMBERS = {b"hash": "HSCAN", b"set": "SSCAN", b"zset": "ZSCAN"}
_GONE = b"none"
_KIND = re.compile(rb"memproxy:(?:\{(?:u:)?[a-z_0-9]+\}:)?([a-z_]+)")

Piece: TypeAlias = tuple[Sequence[bytes], Command | None]
"""Texts, and the command that gives the next ones."""


@dataclass(slots=True)
class _Look:
    """What was read and found so far."""

    needles: Sequence[bytes]
    keys: int = 0
    size: int = 0
    found_in: dict[str, None] = field(default_factory=dict)
    not_searched: dict[str, None] = field(default_factory=dict)

    def read(self, place: str, texts: Sequence[bytes]) -> bool:
        """Whether one of them holds what is looked for, which is then noted for that place."""
        self.size += sum(map(len, texts))
        holds = any(needle in text for text in texts for needle in self.needles)
        if holds:
            self.found_in[place] = None
        return holds


class RedisKeyScan:
    """`memory.ports.erasures.PlaceScan`."""

    def __init__(self, client: LogClient, *, seconds_max: float = SCAN_SECONDS_MAX) -> None:
        self._client = client
        self._seconds_max = seconds_max

    async def scan(self, wanted: Sequence[str]) -> PlaceReport:
        look = _Look([form for text in wanted for form in forms_of(text)])
        try:
            async with asyncio.timeout(self._seconds_max):
                await self._read_logs(look)
                await self._read_keys(look)
        except TimeoutError:
            look.not_searched[f"keys that are not among those {look.keys} read within {self._seconds_max:.0f} s"] = None
        except Unavailable as error:
            if not is_refused(error):
                raise
            look.not_searched["keys: the server refuses the user that we connect as a command that reads them"] = None
        await self._look_for_replicas(look)
        return PlaceReport(REDIS, SEARCHED, look.keys, look.size, tuple(look.found_in), tuple(look.not_searched))

    async def _read_keys(self, look: _Look) -> None:
        async for keys in self._client.keys():
            look.keys += len(keys)
            kinds = await self._client.calls([("TYPE", key) for key in keys])
            readable: dict[bytes, Command] = {}
            for key, kind in zip(keys, kinds, strict=True):
                look.read(_kind_of(key), [key])
                if command := _beginning(key, kind):
                    readable[key] = command
                elif kind != _GONE:
                    look.not_searched[f"keys of the type {kind.decode(errors='replace')}"] = None
            replies = await self._client.calls(list(readable.values()))
            for (key, beginning), reply in zip(readable.items(), replies, strict=True):
                await self._read_value(look, key, beginning, reply)

    async def _read_value(self, look: _Look, key: bytes, command: Command | None, reply: Reply) -> None:
        """All of it, unless a part already holds what is looked for."""
        overlap = max(map(len, look.needles), default=1) - 1
        before = b""
        while command is not None:
            texts, following = _piece(command, reply)
            if command[0] == "GETRANGE" and texts:  # what is looked for may stand between two pieces
                texts = [before + texts[0]]
                before = texts[0][max(0, len(texts[0]) - overlap) :]
            if look.read(_kind_of(key), texts) or following is None:
                return
            command, reply = following, await self._client.call(*following)

    async def _read_logs(self, look: _Look) -> None:
        """Servers keep the latest slow commands in memory, with the beginning of what they wrote."""
        for command in COMMAND_LOGS:
            for reply in await self._client.of_each_node(*command):
                if reply is not None:
                    look.read(f"{command[0]} of the server", list(_texts(reply)))
                elif command[0] == "SLOWLOG":
                    look.not_searched["the log of slow commands: the server refuses SLOWLOG"] = None

    async def _look_for_replicas(self, look: _Look) -> None:
        """Those of a cluster are asked to rewrite their files like all its servers."""
        if self._client.is_cluster:
            return
        (info,) = await self._client.of_each_node("INFO", "replication")
        if not isinstance(info, Mapping):
            look.not_searched["whether it has replicas, which keep files of their own: the server refuses INFO"] = None
        elif replicas := int(info.get("connected_slaves", 0)):
            look.not_searched[f"files of {replicas} replicas: only their operator can rewrite them"] = None


def _kind_of(key: bytes) -> str:
    found = _KIND.match(key)
    return FOREIGN if found is None else f"keys of the kind {found[1].decode()}"


def _beginning(key: bytes, kind: bytes) -> Command | None:
    """The command that reads a value first; None for a type that cannot be read here, or a key that is gone."""
    if kind == b"string":
        return ("GETRANGE", key, 0, FIRST_BYTES - 1)
    if kind == b"list":
        return ("LRANGE", key, 0, MEMBERS_IN_A_PIECE - 1)
    return (_MEMBERS[kind], key, 0, "COUNT", MEMBERS_IN_A_PIECE) if kind in _MEMBERS else None


def _piece(command: Command, reply: Reply) -> Piece:
    name, key, first, *rest = command
    match name, rest:
        case "GETRANGE", [int(last)]:
            is_more = len(reply) == last - int(first) + 1
            return [reply], ("GETRANGE", key, last + 1, last + PIECE_BYTES) if is_more else None
        case "LRANGE", [int(last)]:
            return reply, ("LRANGE", key, last + 1, last + MEMBERS_IN_A_PIECE) if reply else None
    cursor, members = reply
    return list(_texts(members)), (name, key, int(cursor), *rest) if int(cursor) else None


def _texts(reply: Reply) -> Iterator[bytes]:
    """All texts in a reply, however deep."""
    if isinstance(reply, bytes):
        yield reply
    elif isinstance(reply, str):
        yield reply.encode("utf-8", "surrogateescape")
    elif isinstance(reply, Mapping):
        for name, value in reply.items():
            yield from _texts(name)
            yield from _texts(value)
    elif isinstance(reply, Sequence):
        for one in reply:
            yield from _texts(one)


__all__ = ["REDIS", "RedisKeyScan"]
