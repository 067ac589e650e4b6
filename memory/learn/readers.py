"""Selects the reader: the trained reader is always available; a chat model reads windows once it passed the exam."""

from __future__ import annotations

from collections.abc import Sequence

from memory.model import Claim, Turn
from memory.ports import FrameMark, PairRelation, PairVerdict, ReadyReader, StatementPair, StatementReader


class Readers:
    """`ready` always answers at once; `first` reads windows, and equals `ready` until a model is promoted."""

    def __init__(self, ready: ReadyReader, first: StatementReader | None = None) -> None:
        self.ready = ready
        self.first: StatementReader = first or ready

    @property
    def is_slow(self) -> bool:
        """Whether windows are read by expensive, non-deterministic calls, which are batched and whose results are
        stored.
        """
        return self.first is not self.ready

    def promote(self, reader: StatementReader) -> None:
        """Let `reader` read from the next window on."""
        self.first = reader


class OffReader:
    """The `ReadyReader` of the setting `off`: it finds nothing."""

    name = "off"

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        return []

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        return [PairVerdict(PairRelation.UNRELATED, 1.0) for _ in pairs]

    async def frames(self, turns: Sequence[Turn]) -> list[FrameMark]:
        return []
