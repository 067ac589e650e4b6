"""A stored plan whose turns are forgotten while it is tried again, before it holds the user's lock, is not applied."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from learning_parts import Bench, Faults, Killed
from turn_logs import Process, sqlite_deployment

from memory.errors import Unavailable
from memory.learn.worker import WorkerSettings
from memory.ports import MemoryBank, RequestTraces
from memory.service.erasure import Erasure

LATER_SECONDS = 1000.0
SAID = "My cat is called Tom. The weather felt strange near Tom the whole afternoon."
KEEPS_RAW_WORDS = WorkerSettings(keeps_raw_words=True)


def _erasure(bench: Bench, process: Process) -> Erasure:
    return Erasure(
        memories=MemoryBank(bench.store, process.ledger, bench.embedder),
        turn_log=process.log,
        traces=RequestTraces(
            process.notes,
            process.receipts,
            process.usage_counts,
            process.profiles,
            summaries=process.summaries,
            opt_outs=process.opt_outs,
        ),
        clock=bench.deployment.clock,
    )


async def _forget(erasure: Erasure, process: Process, how: str, turn_id: str) -> None:
    if how == "the user":
        await erasure.scope("ann", "")
    elif how == "the turn":
        await erasure.source("ann", turn_id)
    else:
        await erasure.withdraw("ann", [turn_id])
        await erasure.sources("ann", [turn_id])
        await process.log.messages.delete_turns("ann", [turn_id])
        await erasure.drop_states("ann")


@pytest.mark.parametrize("error", [Killed(), Unavailable("milvus", "down")], ids=["killed", "unavailable"])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("how", ["the user", "the turn", "the session"])
async def test_what_is_forgotten_while_its_plan_is_tried_again_does_not_return(
    tmp_path: Path, how: str, error: BaseException, *, known: bool
) -> None:
    bench = Bench(sqlite_deployment(tmp_path))
    async with bench.deployment.start() as process:
        if known:
            await bench.tell(process, "I live in Rome.", session="s0")
            await bench.worker(process).work_off()
        turn = await bench.tell(process, SAID, session="s1")
        with suppress(Killed):
            faults = Faults(name="apply", error=error)
            await bench.worker(process, settings=KEEPS_RAW_WORDS, faults=faults).work_off()
    bench.deployment.clock.now += LATER_SECONDS
    async with bench.deployment.start() as process:
        await process.log.recover()
        with pytest.MonkeyPatch.context() as patch:
            is_leased, may_go_on = _paused_embedding(bench, patch)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(bench.worker(process, settings=KEEPS_RAW_WORDS).work_off())
                await asyncio.wait_for(is_leased.wait(), 30)
                bench.deployment.clock.now += 1
                await _forget(_erasure(bench, process), process, how, turn.id)
                may_go_on.set()
        bench.deployment.clock.now += LATER_SECONDS
        await bench.worker(process, settings=KEEPS_RAW_WORDS).work_off()
        assert (await process.log.backlog("ann", opened_before=1e12)).pending == 0
    assert [one for one in await bench.contents() if "Tom" in one] == []
    assert [one for one in await bench.raw_words() if "Tom" in str(one)] == []


def _paused_embedding(bench: Bench, patch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """The worker holds the lease, and not the user's lock yet, until the second event is set."""
    is_leased, may_go_on = asyncio.Event(), asyncio.Event()
    embed = bench.embedder.embed

    async def waits(texts: Sequence[str], **options: Any) -> Any:
        if any("Tom" in text for text in texts):
            is_leased.set()
            await may_go_on.wait()
        return await embed(texts, **options)

    patch.setattr(bench.embedder, "embed", waits)
    return is_leased, may_go_on
