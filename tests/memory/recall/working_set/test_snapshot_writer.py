"""Snapshots of working sets: written by who writes memories, read by who has none, gone with what is forgotten."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from in_memory_copies import InMemorySnapshots
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs
from working_set_world import DIMENSION, HANG_SECONDS, Watched, World, memory, until

from memory.adapters.snapshot_files import FileSnapshots
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.errors import Unavailable
from memory.model import VectorOrigin
from memory.ports import Snapshots
from memory.recall.working_set import working_sets
from memory.recall.working_set.snapshot_codec import SnapshotCodec, stamp_of
from memory.recall.working_set.snapshot_writer import SnapshotTiming, SnapshottingLedger, SnapshotWriter
from memory.recall.working_set.working_sets import WorkingSetLimits, WorkingSets
from memory.runtime.metrics import Metrics

QUICK = SnapshotTiming(soon=0.02, late=0.05, flush=HANG_SECONDS, rest_per_second=0.0)
NEVER = SnapshotTiming(soon=1000.0, late=1000.0, flush=HANG_SECONDS)


@dataclass
class Process(World):
    """One of ours: its working sets, and the ledger that its writes go through."""

    metrics: Metrics = field(default_factory=lambda: Metrics(CollectorRegistry()))

    async def tell(self, *memory_ids: str, text: str = "content of", forget: tuple[str, ...] = ()) -> None:
        await self.write(*(memory(one, f"{text} {one}") for one in memory_ids), forget=forget)

    def count(self, outcome: str) -> float:
        return self.metrics.registry.get_sample_value("memproxy_snapshots_total", {"outcome": outcome}) or 0.0


@asynccontextmanager
async def process(
    folder: Path, store: Watched, kept: Snapshots, *, timing: SnapshotTiming = NEVER, **bounds: Any
) -> AsyncIterator[Process]:
    """Chats wait for sets as if time were nothing. `bounds`: further limits of theirs; and a `model` of vectors."""
    metrics, stamp = Metrics(CollectorRegistry()), stamp_of(origin=VectorOrigin(bounds.pop("model", ""), DIMENSION))
    codec = SnapshotCodec(kept, stamp=stamp, metrics=metrics)
    limits = WorkingSetLimits(patience=HANG_SECONDS, search_patience=HANG_SECONDS, **bounds)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(SqliteDatabase(folder / "turns.sqlite"))
        ledger = SqlUserLedger(database, clock=lambda: 0.0)
        sets = WorkingSets(store=store, ledger=ledger, dimension=DIMENSION, snapshots=codec, limits=limits)
        await stack.enter_async_context(sets)
        writer = await stack.enter_async_context(SnapshotWriter(sets, codec, timing=timing))
        watched = SnapshottingLedger(ledger, writer)
        yield Process(sets, store, (watched, watched), metrics=metrics)


async def test_a_user_who_was_only_written_to_is_found_at_once_by_a_process_that_never_saw_them(tmp_path: Path) -> None:
    store, kept = Watched(), InMemorySnapshots()
    async with process(tmp_path, store, kept, timing=QUICK) as api:
        await api.tell("a", "b")
        await until(lambda: "ann" in kept.kept)
        store.calls.clear()
        async with process(tmp_path, store, kept) as chats:
            assert await chats.seen(waits=False) == {"a": "content of a", "b": "content of b"}
    assert "load_few" not in store.calls


@pytest.mark.parametrize(("spare", "times"), [(1, 2), (1 << 30, 1)])
async def test_used_up_memory_is_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spare: int, times: int
) -> None:
    allocated: list[None] = []
    monkeypatch.setattr(working_sets, "SPARE_USED_MAX", spare)
    monkeypatch.setattr(working_sets, "SPARE_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(working_sets, "preallocate", lambda: allocated.append(None))
    store, kept = Watched(), InMemorySnapshots()
    async with process(tmp_path, store, kept) as api:
        await api.tell("a")
        await api.sets.save("ann")
    assert allocated == []  # no chat waits for this one
    async with process(tmp_path, store, kept, preallocates=True) as chats:
        await until(lambda: len(allocated) == 1)
        assert await chats.seen(waits=False) == {"a": "content of a"}
        await until(lambda: len(allocated) >= times)
        await asyncio.sleep(0.05)
    assert len(allocated) == times


async def test_what_was_written_after_the_snapshot_is_fetched(tmp_path: Path) -> None:
    store, kept = Watched(), InMemorySnapshots()
    async with process(tmp_path, store, kept) as api:
        await api.tell("a", "b", "c")
        await api.sets.save("ann")
        old = kept.kept["ann"]
        await api.tell("b", "d", text="changed:", forget=("c",))
    kept.kept["ann"] = old  # as if the process had been killed, and the file of before had come back
    store.calls.clear()
    async with process(tmp_path, store, kept) as chats:
        assert await chats.seen(waits=False) == {"a": "content of a", "b": "changed: b", "d": "changed: d"}
    assert "load_few" not in store.calls


async def test_a_few_changes_wait_and_many_do_not(tmp_path: Path) -> None:
    store, kept = Watched(), InMemorySnapshots()
    timing = SnapshotTiming(soon=0.02, late=1000.0, flush=0.0, rest_per_second=0.0)
    async with process(tmp_path, store, kept, timing=timing) as api:
        await api.tell("a")
        await until(lambda: api.count("written") == 1)
        for number in range(20):
            await api.tell(f"m{number}")
        await asyncio.sleep(0.1)
        assert api.count("written") == 1
        await api.tell(*(f"n{number}" for number in range(40)))
        await until(lambda: api.count("written") == 2)


async def test_what_is_forgotten_is_in_no_snapshot_before_it_is_deleted_and_the_others_come_back(
    tmp_path: Path,
) -> None:
    store, kept = Watched(), InMemorySnapshots()
    async with process(tmp_path, store, kept) as api:
        await api.tell("a", "secret")
        await api.sets.save("ann")
        assert b"content of secret" in kept.kept["ann"]
        async with api.writers[0].write("ann") as held:
            await held.forget(["secret"])
            assert "ann" not in kept.kept
            await store.delete("ann", ["secret"])
        assert "ann" not in kept.kept
        store.calls.clear()
    assert b"content of a" in kept.kept["ann"]
    assert b"secret" not in kept.kept["ann"]
    assert "load_few" not in store.calls


async def test_a_snapshot_written_by_another_process_while_something_is_forgotten_does_not_stay(tmp_path: Path) -> None:
    class Slow(InMemorySnapshots):
        is_writing, may_write = asyncio.Event(), asyncio.Event()

        async def write(self, user_id: str, snapshot: bytes) -> None:
            self.is_writing.set()
            await self.may_write.wait()
            await super().write(user_id, snapshot)

    store, kept = Watched(), Slow()
    async with process(tmp_path, store, kept, timing=SnapshotTiming(1000.0, 1000.0, flush=0.0)) as api:
        await api.tell("a", "secret")
        async with process(tmp_path, store, kept, timing=NEVER) as chats, asyncio.TaskGroup() as group:
            saving = group.create_task(chats.sets.save("ann"))
            await kept.is_writing.wait()  # it is about to write what it read
            await api.tell(forget=("secret",))
            kept.may_write.set()
            await saving
            assert b"secret" not in kept.kept.get("ann", b"")


async def test_what_cannot_be_erased_is_not_said_to_be_forgotten(tmp_path: Path) -> None:
    class Stuck(InMemorySnapshots):
        async def erase(self, user_id: str) -> None:
            raise Unavailable("snapshots", "read-only file system")

    store = Watched()
    async with process(tmp_path, store, Stuck()) as api:
        await api.tell("a")
        with pytest.raises(Unavailable):
            await api.tell(forget=("a",))
        assert await store.get("ann", ["a"])


@pytest.mark.parametrize("damage", ["cut in half", "deleted", "another model", "not ours", "somebody else's"])
async def test_whatever_becomes_of_a_snapshot_the_user_is_served_and_gets_another(tmp_path: Path, damage: str) -> None:
    store, folder = Watched(), tmp_path / "snapshots"
    async with FileSnapshots(folder, bytes_max=1 << 30, clock=lambda: 0.0) as files:
        async with process(tmp_path, store, files, model="other" * (damage == "another model")) as api:
            await api.tell("a")
        [file] = folder.iterdir()
        if damage == "cut in half":
            os.truncate(file, file.stat().st_size // 2)
        elif damage == "deleted":
            file.unlink()
        elif damage == "not ours":
            file.write_bytes(b"PK\x03\x04" + bytes(1000))
        elif damage == "somebody else's":
            await files.write("ann", file.read_bytes().replace(b"\xa3ann", b"\xa3bob"))
        async with process(tmp_path, store, files) as chats:
            assert await chats.seen(waits=False) is None  # its chat searches the store
            assert await chats.seen(waits=True) == {"a": "content of a"}
            await until(lambda: chats.count("written") == 1)
        async with process(tmp_path, store, files) as chats:
            assert await chats.seen(waits=False) == {"a": "content of a"}


async def test_a_disk_that_cannot_be_written_to_is_told_once_and_chats_go_on(tmp_path: Path) -> None:
    (tmp_path / "snapshots").write_text("a file where the folder should be")
    store = Watched()
    with capture_logs() as logs:
        async with (
            FileSnapshots(tmp_path / "snapshots", bytes_max=1 << 30, clock=lambda: 0.0) as files,
            process(tmp_path, store, files, timing=QUICK) as api,
        ):
            for number in range(3):
                await api.tell(f"m{number}")
                await until(lambda number=number: api.count("write_failed") > number)  # type: ignore[misc]
            assert len(await api.seen(waits=False) or ()) == 3
            (tmp_path / "snapshots").unlink()
            await api.tell("m3")
            await until(lambda: api.count("written") == 1)
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == [
        "snapshots of working sets cannot be kept: first questions are slower"
    ]
    assert [line["event"] for line in logs if line["log_level"] == "info"] == ["snapshots can be written again"]


@pytest.mark.parametrize(("more", "forgotten"), [(["d"], ()), ([], ("a", "b", "c"))])
async def test_who_outgrew_the_limit_or_has_nothing_has_no_snapshot(tmp_path: Path, more: Any, forgotten: Any) -> None:
    store, kept = Watched(), InMemorySnapshots()
    async with process(tmp_path, store, kept, memories_max=3) as api:
        await api.tell("a", "b", "c")
        await api.sets.save("ann")
        assert "ann" in kept.kept
        await api.tell(*more, forget=forgotten)
        await api.sets.save("ann")
    assert kept.kept == {}


async def test_files_are_private_and_their_names_do_not_tell_whose_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "snapshots"
    async with FileSnapshots(folder, bytes_max=1 << 20, clock=lambda: 0.0) as files:
        await files.write("ann", b"text")
    [file] = folder.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600
    assert "ann" not in file.name


async def test_past_the_bound_those_go_that_were_not_used_for_longest(tmp_path: Path) -> None:
    folder = tmp_path / "snapshots"
    clock = iter(range(1_000_000, 10_000_000, 10_000))
    async with FileSnapshots(folder, bytes_max=100_000, clock=lambda: float(next(clock))) as files:
        for number in range(8):
            await files.write(f"u{number}", bytes(10_000))
            for file in folder.iterdir():  # as if each was written long after the one before
                os.utime(file, (file.stat().st_mtime - 7_200,) * 2)
        await files.read("u0")
        for number in range(8, 14):
            await files.write(f"u{number}", bytes(10_000))
        assert sum(file.stat().st_size for file in folder.iterdir()) <= 100_000
        assert await files.read("u1") is None
        assert await files.read("u13") is not None
        await files.write("u13", bytes(200_000))  # too large for any room: what was there is outdated
        assert await files.read("u13") is None


async def test_what_a_process_left_when_it_died_is_taken_away(tmp_path: Path) -> None:
    folder = tmp_path / "snapshots"
    folder.mkdir()
    (folder / "abc.123.part").write_bytes(b"half")
    os.utime(folder / "abc.123.part", (0, 0))
    async with FileSnapshots(folder, bytes_max=1 << 20, clock=lambda: 1_000.0) as files:
        await files.write("ann", b"text")
    assert len(list(folder.iterdir())) == 1


def test_another_model_or_ranking_has_another_stamp() -> None:
    one, others = VectorOrigin("a", 8), (VectorOrigin("b", 8), VectorOrigin("a", 9))
    assert stamp_of(origin=one) == stamp_of(origin=one)
    assert len({stamp_of(origin=one), stamp_of(origin=one, tokens=len), *(stamp_of(origin=o) for o in others)}) == 4
