"""A user to whom others write while the reader is asked about pairs: what was written meanwhile is looked at, too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from learning_parts import Bench
from plain_reader import PlainReader
from suspensions import WRITTEN_TO, awaits_of
from turn_logs import Process, sqlite_deployment

from memory.learn import window
from memory.learn.window import VERDICT_ROUNDS_MAX
from memory.model import MemoryStatus
from memory.ports import PairVerdict, StatementPair


class WrittenTo(PlainReader):
    """While it is asked about pairs, another process moves the user once more, the first `times`."""

    def __init__(self, bench: Bench, other: Process, *, times: int) -> None:
        super().__init__()
        self._bench = bench
        self._other = other
        self._times = times
        self.asked = 0

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        self.asked += 1
        if self.asked <= self._times:
            await self._bench.tell(self._other, f"I live in Town{self.asked}.", session=f"other-{self.asked}")
            await self._bench.worker(self._other, reader=PlainReader()).work_off()
        return await super().relate(pairs)


@pytest.mark.parametrize("times", [1, VERDICT_ROUNDS_MAX])
async def test_the_newest_statement_alone_stands_however_often_others_wrote(tmp_path: Path, times: int) -> None:
    bench = Bench(sqlite_deployment(tmp_path))
    async with bench.deployment.start() as process, bench.deployment.start() as other:
        await bench.tell(process, "I live in Paris.", session="s0")
        await bench.worker(process).work_off()
        await bench.tell(process, "I live in Rome.", session="s1")
        reader = WrittenTo(bench, other, times=times)
        await bench.worker(process, reader=reader).work_off()
        memories = await bench.memories(status=None)
        active = [memory.content for memory in await bench.memories(status=MemoryStatus.ACTIVE)]
    assert reader.asked >= times
    assert active == [f"I live in Town{times}."]  # it was said last
    assert len(memories) == times + 2


def test_what_is_left_out_elsewhere_is_there() -> None:
    assert awaits_of(Path(str(window.__file__)), only=WRITTEN_TO)
