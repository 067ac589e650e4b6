"""The order of a rolling restart, when it stops, and how `memproxy restart` meets `up`."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

import pytest
import structlog

from extproc.supervisor import rolling_restart
from extproc.supervisor.locks_and_ports import CannotStart, data_directory, owner_of
from extproc.supervisor.rolling_restart import RollingRestart, request_restart, restart_order
from memory.runtime.release import RUNNING


def test_filters_go_first_the_store_last_and_what_holds_clients_stays() -> None:
    names = ["envoy", "api", "milvus", "worker-0", "filter-0", "model", "worker-1", "filter-1"]
    assert restart_order(names) == ["filter-0", "filter-1", "worker-0", "worker-1", "api", "milvus"]


class Part:
    """As far as a restart knows a child process."""

    pids = itertools.count(1_000)

    def __init__(self) -> None:
        self.pid = next(self.pids)

    async def restart(self) -> int:
        ended, self.pid = self.pid, next(self.pids)
        return ended


class Run:
    """Parts that work unless told otherwise."""

    def __init__(self, names: list[str], folder: Path) -> None:
        self.ended: list[int] = []
        self.broken: set[str] = set()
        self.broken_by_restart: set[str] = set()  # from when the first part has ended for its restart
        self.parts = {name: Part() for name in names}
        self.restart = RollingRestart(
            self.parts,  # type: ignore[arg-type]
            missing=self.missing,
            forget=self.ended.append,
            data_dir=folder,
            logger=structlog.get_logger(),
        )

    async def missing(self) -> list[str]:
        return sorted(self.broken | (self.broken_by_restart if self.ended else set()))

    def pids(self) -> dict[str, int]:
        return {name: part.pid for name, part in self.parts.items()}


@asynccontextmanager
async def running(names: list[str], folder: Path) -> AsyncIterator[Run]:
    run = Run(names, folder)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(run.restart.run())
        yield run
        serving.cancel()


async def state_of(folder: Path, *wanted: str) -> dict[str, object]:
    async with asyncio.timeout(60):
        while True:
            file = folder / rolling_restart.STATE_FILE
            state: dict[str, object] = json.loads(file.read_text()) if file.exists() else {}
            if state.get("state") in wanted:
                return state
            await asyncio.sleep(0.02)


async def test_each_part_is_replaced_in_its_order_and_no_other_beside_it(tmp_path: Path) -> None:
    async with running(["envoy", "worker-0", "filter-0", "filter-1"], tmp_path) as run:
        before = run.pids()
        run.restart.request()
        state = await state_of(tmp_path, "done")
        assert state == {"pid": os.getpid(), "number": 1, "state": "done", "part": "", "release": asdict(RUNNING)}
        assert run.ended == [before["filter-0"], before["filter-1"], before["worker-0"]]
        assert run.pids()["envoy"] == before["envoy"]
        assert set(run.pids().values()).isdisjoint(run.ended)
    assert not (tmp_path / rolling_restart.STATE_FILE).exists()


@pytest.mark.parametrize(
    ("names", "broken", "by_restart", "ended"),
    [
        (["filter-0", "filter-1"], {"filter-1"}, set(), 0),
        (["filter-0", "filter-1"], set(), {"filter-0"}, 1),
        (["filter-0"], set(), {"filter-0"}, 1),
    ],
    ids=["another part is down", "a part does not return", "the last part does not return"],
)
async def test_it_stops_where_a_part_does_not_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    names: list[str],
    broken: set[str],
    by_restart: set[str],
    ended: int,
) -> None:
    monkeypatch.setattr(rolling_restart, "BACK_SECONDS_MAX", 0.0)
    async with running(names, tmp_path) as run:
        before = run.pids()
        run.broken, run.broken_by_restart = broken, by_restart
        run.restart.request()
        assert (await state_of(tmp_path, "failed"))["part"] in broken | by_restart
        assert run.ended == [before["filter-0"]] * ended


def test_the_command_asks_only_an_up_that_takes_the_signal(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="no `memproxy up` runs"):
        request_restart(tmp_path, report=print)
    with data_directory(tmp_path):  # as `memproxy reembed` holds it: the signal would end it
        assert owner_of(tmp_path) == os.getpid()
        with pytest.raises(CannotStart, match="not ready yet"):
            request_restart(tmp_path, report=print)
    assert owner_of(tmp_path) == 0
