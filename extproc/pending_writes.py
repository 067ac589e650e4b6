"""How much waits for the turn log, by number and by bytes: a log that hangs must not fill the filter's memory."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from extproc.exchange import CloseTurn, LeaveOut, Observed, OpenTurn
from extproc.turn_links import ContinueTurn
from memory.model import SentExchange

PENDING_MAX = 10_000  # tasks: of small turns, whose texts are the smaller part of what waits
PENDING_BYTES_MAX = 256 << 20  # of texts: a turn has some KB, but the conversation that it came in has up to 16 MiB


class PendingWrites:
    """Counts what waits. `size`: bytes of its texts, as `text_bytes` says."""

    def __init__(self) -> None:
        self._count = 0
        self._bytes = 0

    @property
    def is_empty(self) -> bool:
        return not self._count

    def has_room(self, size: int = 0) -> bool:
        return self._count < PENDING_MAX and self.has_room_for_bytes(size)

    def has_room_for_bytes(self, size: int) -> bool:
        return self._bytes + size <= PENDING_BYTES_MAX

    def add(self, size: int) -> None:
        self._count += 1
        self._bytes += size

    def remove(self, size: int) -> None:
        self._count -= 1
        self._bytes -= size


def text_bytes(command: Observed) -> int:
    """The memory that the texts of this command take."""
    return sum(map(sys.getsizeof, _texts(command)))


def _texts(command: Observed) -> Iterator[str]:
    match command:
        case OpenTurn(turn, _, sent):
            yield from (message.content for message in turn.messages)
            yield from _said(sent.earlier)
        case LeaveOut(_, exchange):
            yield from _said((exchange,))
        case CloseTurn():
            yield command.answer
        case ContinueTurn():
            yield command.answer
            yield from (message.content for message in command.tools)


def _said(exchanges: Iterable[SentExchange]) -> Iterator[str]:
    for exchange in exchanges:
        yield from (message.content for message in exchange.said)
        yield exchange.answer
