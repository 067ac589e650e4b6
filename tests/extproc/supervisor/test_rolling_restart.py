"""The order of a rolling restart, when it stops, and how `memproxy restart` meets `up`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

import pytest
import structlog

from extproc.supervisor import rolling_restart
from extproc.supervisor.locks_and_ports import CannotStart, data_directory, owner_of
from extproc.supervisor.log_lines import LogLines
from extproc.supervisor.process_specs import ProcessSpec
from extproc.supervisor.processes import ChildProcess, ProcessCommand
from extproc.supervisor.rolling_restart import RollingRestart, request_restart, restart_order
from memory.runtime.release import RUNNING

ENDS_IN_ORDER = "import signal; print('up', flush=True); signal.sigwait({signal.SIGTERM})"


def test_filters_go_first_the_store_last_and_what_holds_clients_stays() -> None:
    names = ["envoy", "api", "milvus", "worker-0", "filter-0", "model", "worker-1", "filter-1"]
    assert restart_order(names) == ["filter-0", "filter-1", "worker-0", "worker-1", "api", "milvus"]


class Run:
    """Real child processes, which work while they run unless told otherwise."""

    def __init__(self, names: list[str], folder: Path) -> None:
        self.deaths: list[str] = []
        self.ended: list[int] = []
        self.broken: set[str] = set()
        self.broken_by_restart: set[str] = set()  # from when the first part has ended for its restart
        self.running_at_once: list[int] = []
        descriptor = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
        self.log = LogLines(descriptor, as_json=False)
        self.parts = {name: self._part(name) for name in names}
        self.restart = RollingRestart(
            self.parts,
            missing=self.missing,
            forget=self.ended.append,
            data_dir=folder,
            logger=structlog.get_logger(),
        )

    def _part(self, name: str) -> tuple[ProcessSpec, ChildProcess]:
        async def works() -> bool:
            return True

        command = ProcessCommand(name=name, argv=(sys.executable, "-c", ENDS_IN_ORDER), environment={})
        part = ChildProcess(
            command,
            log=self.log,
            logger=structlog.get_logger(),
            on_death=lambda part, _: self.deaths.append(part.name),
        )
        return ProcessSpec(command, works), part

    async def missing(self) -> list[str]:
        running = [name for name, (_, part) in self.parts.items() if part.is_running]
        self.running_at_once.append(len(running))
        broken = self.broken | (self.broken_by_restart if self.ended else set())
        return [name for name in self.parts if name not in running or name in broken]

    def pids(self) -> dict[str, int | None]:
        return {name: part.pid for name, (_, part) in self.parts.items()}


@asynccontextmanager
async def running(names: list[str], folder: Path) -> AsyncIterator[Run]:
    run = Run(names, folder)
    async with asyncio.TaskGroup() as tasks:
        for _, part in run.parts.values():
            tasks.create_task(part.keep_running())
        while await run.missing() or not all("up" in part.tail for _, part in run.parts.values()):
            await asyncio.sleep(0.02)
        serving = tasks.create_task(run.restart.run())
        try:
            yield run
        finally:
            serving.cancel()
            for _, part in run.parts.values():
                await part.stop(at_once=True)
    run.log.close()


async def state_of(folder: Path, *wanted: str) -> dict[str, object]:
    async with asyncio.timeout(20):
        while True:
            file = folder / rolling_restart.STATE_FILE
            state: dict[str, object] = json.loads(file.read_text()) if file.exists() else {}
            if state.get("state") in wanted:
                return state
            await asyncio.sleep(0.02)


async def test_each_part_is_replaced_while_all_others_run_and_no_restart_counts_as_a_death(tmp_path: Path) -> None:
    async with running(["envoy", "filter-0", "filter-1", "worker-0"], tmp_path) as run:
        before = run.pids()
        run.running_at_once.clear()
        run.restart.request()
        state = await state_of(tmp_path, "done")
        after = run.pids()
        assert state == {"pid": os.getpid(), "number": 1, "state": "done", "part": "", "release": asdict(RUNNING)}
        assert run.ended == [before["filter-0"], before["filter-1"], before["worker-0"]]
        assert after["envoy"] == before["envoy"]
        assert set(after.values()).isdisjoint(run.ended)
        assert min(run.running_at_once) >= 3
        assert run.deaths == []
    assert not (tmp_path / rolling_restart.STATE_FILE).exists()


async def test_it_stops_where_a_part_does_not_return(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling_restart, "BACK_SECONDS_MAX", 0.5)
    async with running(["filter-0", "filter-1"], tmp_path) as run:
        before = run.pids()
        run.parts["filter-0"][1].command = ProcessCommand("filter-0", ("/does/not/exist",), {})
        run.broken_by_restart.add("filter-0")  # also in the moment in which its process runs and has not failed yet
        run.restart.request()
        state = await state_of(tmp_path, "failed")
        assert (state["part"], run.pids()["filter-1"]) == ("filter-0", before["filter-1"])


async def test_nothing_is_restarted_while_another_part_is_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling_restart, "BACK_SECONDS_MAX", 0.3)
    async with running(["filter-0", "filter-1"], tmp_path) as run:
        before = run.pids()
        run.broken.add("filter-1")
        run.restart.request()
        assert (await state_of(tmp_path, "failed"))["part"] == "filter-1"
        assert run.pids() == before


def test_the_command_asks_only_an_up_that_takes_the_signal(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="no `memproxy up` runs"):
        request_restart(tmp_path, report=print)
    with data_directory(tmp_path):  # as `memproxy reembed` holds it: the signal would end it
        assert owner_of(tmp_path) == os.getpid()
        with pytest.raises(CannotStart, match="not ready yet"):
            request_restart(tmp_path, report=print)
    assert owner_of(tmp_path) == 0
