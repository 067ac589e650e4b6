"""A user who was erased is named by no key, and by no file of the server once its files are rewritten."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis_server import redis_server
from summarised_sessions import LATER, due, summarised, talk
from turn_logs import START, Deployment, Process, redis_deployment

from memory.adapters.file_scan import scanned
from memory.adapters.redis.deleted_keys import RedisDeletedKeys
from memory.adapters.redis.log_client import LogClient
from memory.errors import Conflict
from memory.model import PastNote, ProfileLine, RecallStatus, Receipt, WithdrawnSummary
from memory.model.projects import MemoryVisibility, ProjectRole, SharedMemory, SharedProject


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return redis_deployment(tmp_path)


@pytest.fixture
async def process(deployment: Deployment) -> AsyncIterator[Process]:
    async with deployment.start() as one:
        yield one


@pytest.fixture
async def client(process: Process) -> AsyncIterator[LogClient]:
    async with Redis(port=redis_server().port) as connected:
        yield LogClient(connected)


@pytest.fixture
def user() -> str:
    return f"ann-{uuid.uuid4().hex[:12]}"


async def keep_everything_of(process: Process, user: str) -> None:
    """Without turns."""
    async with process.ledger.write(user) as held:
        held.touch(["m1"])
        await held.forget(["m2"], raw_ids=["r1"])
    revision = (await process.ledger.revision(user)).number
    await process.profiles.put(user, {"": [ProfileLine("- I sail", 3, "m1")]}, revision=revision, now=START)
    await process.projects.create(SharedProject(uuid.uuid4().hex, "", f"boats of {user}", START), "bob")
    (joined,) = await process.projects.joined("bob")
    key = joined.project.key
    await process.projects.set_roles(key, {user: ProjectRole.EDITOR}, at=START)
    await process.projects.put([SharedMemory(f"{key}.1", key, user, MemoryVisibility.MEMBERS, START)])
    await process.projects.add_reader(key, user)
    await process.notes.keep(user, "k1", PastNote(f"about {user}", ("m1",), 7), made_at=START)
    await process.opt_outs.set(user, at=START)
    process.receipts.keep(Receipt("r1", user, START, RecallStatus.USED, "found", query=f"who is {user}"))
    process.usage_counts.count(user, ["m1"], at=START)
    while await process.receipts.get(user, "r1") is None:
        await asyncio.sleep(0.01)


async def erase(process: Process, user: str, *, drops: bool = True) -> None:
    """As the erasure of the service does; without `drops`, what was kept since then is left to the end of the life."""
    await process.projects.drop([entry.memory_id for entry in await process.projects.authored(user)])
    for access in await process.projects.joined(user):
        await process.projects.set_roles(access.project.key, {user: None}, at=START)
    await process.projects.forget_user(user)
    for access in await process.projects.joined("bob"):
        await process.projects.delete(access.project.key)  # its name has the user's in it
    await process.profiles.erase(user)
    await process.summaries.erase(user)
    if drops:
        await process.notes.drop(user, [], now=START)
        await process.receipts.erase(user)
        await process.usage_counts.drop(user, [])
    async with process.ledger.write(user) as held:
        await held.end_life()


@pytest.mark.parametrize("drops", [True, False])
async def test_no_key_and_no_file_names_an_erased_user(
    process: Process, client: LogClient, user: str, *, drops: bool
) -> None:
    await keep_everything_of(process, user)
    assert redis_server().keys_with(user) != []
    await erase(process, user, drops=drops)
    assert redis_server().keys_with(user) == []
    assert scanned([redis_server().folder], [user])[2] != []
    await RedisDeletedKeys(client).rewrite()
    assert scanned([redis_server().folder], [user])[2] == []


async def test_nor_are_turns_and_summaries_left(process: Process, client: LogClient, user: str) -> None:
    log = process.log
    await talk(process, "t1", "t2", user=user)
    await summarised(process, "t1", "t2", user=user)
    await keep_everything_of(process, user)
    await log.messages.erase(user, before=LATER)
    await log.trees.erase(user)
    await erase(process, user)
    assert redis_server().keys_with(user) == []
    await RedisDeletedKeys(client).rewrite()
    assert scanned([redis_server().folder], [user])[2] == []


async def test_nobody_looks_for_an_erased_user_and_their_next_life_is_a_new_one(process: Process, user: str) -> None:
    await talk(process, "t1", user=user)
    await keep_everything_of(process, user)
    before = (await process.ledger.revision(user)).number
    await erase(process, user)
    assert await process.profiles.stale(limit=9) == []
    assert await process.profiles.unwritten(settled_before=LATER, limit=9) == []
    assert await due(process) == []
    assert not await process.profiles.is_stale(user)
    assert (await process.ledger.revision(user)).number > before
    await talk(process, "t3", session="s3", user=user)
    async with process.ledger.write(user) as held:
        held.touch(["m9"])
    assert await process.profiles.stale(limit=9) == [user]
    assert [one.session_id for one in await due(process)] == ["s3"]


async def test_whoever_was_at_work_for_them_writes_nothing_that_names_them(
    process: Process, deployment: Deployment, client: LogClient, user: str
) -> None:
    """A lock that was lost, or is taken afterwards and written nothing under, a profile, and a summary to settle."""
    async with deployment.start() as other:
        await keep_everything_of(process, user)
        withdrawn = WithdrawnSummary(user, "s1", 7, 1)
        (profile,) = await other.profiles.all(user)
        revision = (await other.ledger.revision(user)).number
        slow = other.ledger.write(user)
        held = await slow.__aenter__()
        held.touch(["m3"])
        deployment.clock.now += 60
        await erase(process, user)
        with pytest.raises(Conflict):
            await slow.__aexit__(None, None, None)
        async with other.ledger.write(user):
            assert redis_server().keys_with(user) != []
        assert not await other.profiles.put(user, {"": profile.lines}, revision=revision, now=START)
        erased = (await other.ledger.revision(user)).number
        assert await other.profiles.put(user, {}, revision=erased, now=START)
        assert not await other.profiles.put_prose(profile, None)
        await other.profiles.drop(user, ["m1"], now=START)
        await other.summaries.settle([withdrawn])
        await other.summaries.end(user, "s1")
        await other.summaries.leave_out(user, ["t1"])
        await other.log.make_due_now(user)
        await other.log.withdraw(user, opened_before=LATER)
    await process.log.recover()
    assert redis_server().keys_with(user) == []


async def test_a_project_that_they_join_while_they_are_erased_is_one_of_their_next_life(
    process: Process, user: str
) -> None:
    project = SharedProject(uuid.uuid4().hex, "", "boats", START)
    await process.projects.create(project, "bob")
    async with process.ledger.write(user) as held:
        await process.projects.set_roles(project.key, {user: ProjectRole.EDITOR}, at=START)
        await held.end_life()
    assert [one.project for one in await process.projects.joined(user)] == [project]


async def test_an_untouched_lock_of_a_user_with_turns_keeps_their_name(process: Process, user: str) -> None:
    await talk(process, "t1", user=user)
    async with process.ledger.write(user):
        pass
    assert [one.user_id for one in await due(process)] == [user]
