"""A worker stores nothing about a user who has opted out, whenever they did, and still forgets what they asked for."""

from __future__ import annotations

import asyncio

import pytest
from learning_parts import Bench, Faults, Killed
from turn_logs import START

from memory.service.opt_outs import OptOutService


async def test_turns_that_waited_are_not_learnt_and_later_ones_are(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, "I live in Ulm.")
        await process.opt_outs.set("ann", at=START)
        await bench.tell(process, "I live in Bonn.", user="bob")
        await bench.worker(process).work_off()
        assert await bench.contents() == []
        assert await bench.contents("bob") == ["I live in Bonn."]
        await process.opt_outs.clear("ann")
        await bench.tell(process, "I like tea.")
        await bench.worker(process).work_off()
        assert await bench.contents() == ["I like tea."]


async def test_what_the_user_asked_to_forget_is_forgotten_all_the_same(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, "I live in Ulm.")
        await bench.worker(process).work_off()
        await bench.tell(process, "Please forget where I live. I like tea.")
        await process.opt_outs.set("ann", at=START)
        await bench.worker(process).work_off()
    assert await bench.contents() == []


async def test_a_stored_plan_is_not_applied_after_the_opt_out(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, "I live in Ulm.")
        with pytest.raises(Killed):
            await bench.worker(process, faults=Faults(name="apply", error=Killed())).work_off()
        await process.opt_outs.set("ann", at=START)
        bench.deployment.clock.now += 60
        await bench.worker(process).work_off()
    assert await bench.contents() == []


class OptsOutMeanwhile(Faults):
    """The user opts out while the worker holds their lock, right before the call of that name."""

    def __init__(self, service: OptOutService, before: str) -> None:
        super().__init__()
        self._service = service
        self._before = before
        self.opting: asyncio.Task[float] | None = None

    async def strike(self, name: str, *, is_after: bool) -> None:
        if name == self._before and self.opting is None:
            self.opting = asyncio.get_running_loop().create_task(self._service.opt_out("ann"))
            await asyncio.sleep(0.02)
        await super().strike(name, is_after=is_after)


@pytest.mark.parametrize("before", ["lock", "apply"])
async def test_once_an_opt_out_has_returned_nothing_more_is_written(bench: Bench, before: str) -> None:
    """What is being written at that moment is either complete on return, or is never written."""
    async with bench.deployment.start() as process:
        service = OptOutService(opt_outs=process.opt_outs, ledger=process.ledger, clock=bench.deployment.clock)
        await bench.tell(process, "I live in Ulm.")
        faults = OptsOutMeanwhile(service, before)
        working = asyncio.get_running_loop().create_task(bench.worker(process, faults=faults).work_off())
        while faults.opting is None:
            await asyncio.sleep(0.001)
        await faults.opting
        at_return = await bench.contents()
        await working
        assert await bench.contents() == at_return
        assert (at_return == []) == (before == "lock")
