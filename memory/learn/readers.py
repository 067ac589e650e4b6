"""Who reads: the trained reader always can; a chat model reads windows once it is trusted with that."""

from __future__ import annotations

from collections.abc import Sequence

from memory.model import Claim, Turn
from memory.ports import PairRelation, PairVerdict, StatementPair, StatementReader


class Readers:
    """`ready` answers at once and always; `first` reads windows, and is `ready` until a model is promoted."""

    def __init__(self, ready: StatementReader, first: StatementReader | None = None) -> None:
        self.ready = ready
        self.first = first or ready

    @property
    def is_slow(self) -> bool:
        """Whether windows are read by calls that are worth saving up, and storing, for they may differ the next
        time.
        """
        return self.first is not self.ready

    def promote(self, reader: StatementReader) -> None:
        """From the next window on, `reader` reads."""
        self.first = reader


class OffReader:
    """`StatementReader` of an operator who wants nothing learnt: it finds nothing."""

    name = "off"

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        return []

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        return [PairVerdict(PairRelation.UNRELATED, 1.0) for _ in pairs]
