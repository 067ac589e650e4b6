"""Keys under several hash tags: whoever dies between two calls leaves all or nothing, or what ends by itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from redis.asyncio import Redis
from redis_parts import MortalClient
from summarised_sessions import due, talk
from suspensions import crash_seed
from tellers import Teller, sent
from turn_logs import START, Deployment, Process, a_turn

from memory.adapters import tree_rules
from memory.adapters.redis import erasures as redis_erasures
from memory.adapters.redis.erasures import RedisErasures
from memory.adapters.redis.ledger import RedisUserLedger
from memory.adapters.redis.log_client import Command, LogClient, Reply
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.project_values import name_keys
from memory.adapters.redis.projects import RedisProjects
from memory.adapters.redis.whole_log import RedisTurnLog
from memory.errors import Unavailable
from memory.model import SentConversation, TurnStatus
from memory.model.projects import ProjectRole, SharedProject
from memory.ports.erasures import ErasureRequest, ScanReport

pytestmark = pytest.mark.full("what the adapter of Redis alone has; the contracts run there, too")

CALLS_MAX = 60
EVERY = 2  # call of a longer story is the last one; which, follows from the day
FEW_CALLS = 16


async def test_a_death_at_any_call_leaves_a_turn_with_all_that_it_fills_in_or_nothing(
    process: Process, deployment: Deployment, connected: Redis
) -> None:
    recorded, cut_short = 0, 0
    for calls in range(crash_seed() % EVERY, CALLS_MAX, EVERY):
        tell = Teller(process, user=f"user-{calls}")
        _, session = await tell("a")
        turn = a_turn(f"late-{calls}", user=tell.user, session="new", text="d", at=START + 50)
        async with RedisOwners(LogClient(connected)) as owners:
            log = RedisTurnLog(MortalClient(connected, calls), owners, clock=deployment.clock)
            with suppress(Unavailable):
                await log.trees.open(turn, sent("abcd"))
        said = [one.messages[0].content for one in await tell.record()]
        assert said in (["a"], ["a", "b", "c", "d"])
        recorded, cut_short = recorded + (len(said) == 4), cut_short + (len(said) == 1)
        await process.log.recover()
        assert await process.log.trees.open(turn, sent("abcd")) == session
        await process.log.finish(turn.id, status=TurnStatus.CLOSED, answer="x", answered_at=START + 51)
        record = await tell.record()
        assert [one.messages[0].content for one in record] == ["a", "b", "c", "d"]
        assert (record[-1].status, record[-1].answer) in ((TurnStatus.CLOSED, "x"), (TurnStatus.UNKNOWN, ""))
        assert len(await tell.learn()) == 4
    assert recorded > 0
    assert cut_short > 0


async def test_a_shift_is_found_whenever_the_process_dies_that_abandons_a_learnt_turn(
    process: Process, deployment: Deployment, connected: Redis
) -> None:
    shifted = 0
    for calls in range(crash_seed() % EVERY, CALLS_MAX, EVERY):
        tell = Teller(process, user=f"user-{calls}")
        await tell("a")
        old, _ = await tell("ab")
        await tell.learn()
        async with RedisOwners(LogClient(connected)) as owners:
            log = RedisTurnLog(MortalClient(connected, calls), owners, clock=deployment.clock)
            with suppress(Unavailable):
                turn = a_turn(f"new-{calls}", user=tell.user, session="new", text="c", at=START + 50)
                await log.trees.open(turn, sent("ac"))
        is_recorded = len(await tell.record()) == 3
        trees = process.log.trees
        assert await trees.next_shift() == (tell.user if is_recorded else None)
        shift = await trees.shift(tell.user)
        assert [one.turn_id for one in shift.abandoned] == ([old] if is_recorded else [])
        await trees.settle(tell.user, shift)
        shifted += is_recorded
    assert 0 < shifted < CALLS_MAX / EVERY - 1


async def test_the_oldest_digests_of_what_was_said_go(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_rules, "DIGESTS_MAX", 3)
    monkeypatch.setattr(tree_rules, "PRUNED_EVERY", 1)
    trees, tell = process.log.trees, Teller(process)
    texts = [f"The {number}th thing that I said today." for number in range(6)]
    for number, text in enumerate(texts):
        turn = a_turn(f"t{number}", session=f"s{number}", text=text, at=START + number)
        await trees.open(turn, SentConversation((text,)))
    said = [replace(sent("ab").earlier[0], key="", said=turn.messages) for turn in await tell.record()]
    assert await trees.known("ann", said) == [False, False, False, True, True, True]


async def test_a_write_that_was_cut_short_makes_its_user_stale_if_it_changed_the_revision(
    process: Process, deployment: Deployment, connected: Redis
) -> None:
    written = 0
    for calls in range(FEW_CALLS):
        user = f"user-{calls}"
        async with RedisOwners(LogClient(connected)) as owners:
            ledger = RedisUserLedger(MortalClient(connected, calls), owners, clock=deployment.clock)
            with suppress(Unavailable):
                async with ledger.write(user) as held:
                    held.touch(["m"])
        await process.log.recover()
        revision = await process.ledger.revision(user)
        assert revision.is_settled
        assert await process.profiles.stale(limit=9) == ([user] if revision.number else [])
        await process.profiles.put(user, {}, revision=revision.number, now=START)
        written += bool(revision.number)
    assert 0 < written < FEW_CALLS


async def test_users_of_a_dead_process_are_looked_at_again_whatever_became_of_its_marks(
    process: Process, deployment: Deployment, connected: Redis
) -> None:
    await talk(process, "t1")
    client = LogClient(connected)
    async with RedisOwners(client) as owners:
        log = RedisTurnLog(client, owners, clock=deployment.clock)
        await log.open(a_turn("t2"))
        await log.finish("t2", status=TurnStatus.FAILED, answer="", answered_at=START)
    for name in ("members", "marks"):
        await client.call("DEL", f"memproxy:{{due_summaries}}:{name}")
    assert await due(process) == []
    await process.log.recover()
    assert [one.session_id for one in await due(process)] == ["s1"]


AT = 1_750_000_000.0


def asked(erasure_id: str) -> ErasureRequest:
    return ErasureRequest(erasure_id, AT, AT, {"memories": 1})


async def keys_left(connected: Redis) -> list[str]:
    """Without the last numbers of lists."""
    names = [key.decode() if isinstance(key, bytes) else key for key in await connected.keys()]
    return [name for name in names if not name.endswith(":number")]


async def test_whoever_dies_while_deleting_old_records_leaves_none_for_ever(connected: Redis) -> None:
    erasures, broken_off = RedisErasures(LogClient(connected)), 0
    for calls in range(FEW_CALLS):
        for part in ("", "red"):
            await erasures.begun("ann", asked(f"e{calls}{part}"), part=part)
        await erasures.rewritten(await erasures.pending(), at=AT)
        assert await erasures.pending() == []
        with suppress(Unavailable):
            await RedisErasures(MortalClient(connected, calls)).expire(before=AT + 1)
        broken_off += bool(await keys_left(connected))
        await erasures.expire(before=AT + 1)
        assert await keys_left(connected) == []
    assert 3 < broken_off < FEW_CALLS


async def test_whoever_dies_while_beginning_an_erasure_leaves_nothing_for_ever(connected: Redis) -> None:
    erasures, begun = RedisErasures(LogClient(connected)), 0
    for calls in range(FEW_CALLS):
        with suppress(Unavailable):
            await RedisErasures(MortalClient(connected, calls)).begun("ann", asked(f"e{calls}"))
            begun += 1
        await erasures.rewritten(await erasures.pending(), at=AT)
        assert await erasures.pending() == []
        await erasures.expire(before=AT + 1)
        assert await keys_left(connected) == []
    assert 0 < begun < FEW_CALLS - 2


async def test_an_erasure_that_begins_while_old_records_are_deleted_is_listed(connected: Redis) -> None:
    erasures = RedisErasures(LogClient(connected))

    async def expire() -> None:
        await erasures.expire(before=AT + 1)

    await RedisErasures(SteppedClient(connected, expire)).begun("ann", asked("e1"))
    assert [one.request for one in await erasures.latest(limit=9)] == [asked("e1")]


async def test_an_erasure_that_is_recorded_has_begun_although_earlier_ones_could_not_be_deleted(
    connected: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_erasures, "ERASURES_PER_USER_MAX", 1)
    erasures = RedisErasures(LogClient(connected))
    for number, calls in enumerate((3, 3, 4, 5, 6)):
        await RedisErasures(MortalClient(connected, calls)).begun("ann", asked(f"e{number}"))
        assert await erasures.get("ann", f"e{number}") is not None
    await erasures.begun("ann", asked("last"))
    assert next(one.request.id for one in await erasures.latest(limit=9)) == "last"
    await erasures.rewritten(await erasures.pending(), at=AT)
    await erasures.scanned("last", ScanReport(AT, 1, 1))
    await erasures.expire(before=AT + 1)
    assert await erasures.latest(limit=9) == []


class SteppedClient(LogClient):
    """Something else happens between any two commands, as on a server with other clients."""

    def __init__(self, client: Redis, between: Callable[[], Awaitable[object]]) -> None:
        super().__init__(client)
        self._between = between

    async def calls(self, commands: Sequence[Command]) -> list[Reply]:
        replies = []
        for command in commands:
            replies += await super().calls([command])
            await self._between()
        return replies


async def test_files_rewritten_for_an_earlier_request_are_not_for_one_that_begins_at_that_moment(
    connected: Redis,
) -> None:
    erasures = RedisErasures(LogClient(connected))
    await erasures.begun("ann", asked("e1"))
    found = await erasures.pending()
    again = replace(asked("e1"), deleted_at=AT + 9)

    async def rewritten() -> None:
        await erasures.rewritten(found, at=AT + 5)

    await RedisErasures(SteppedClient(connected, rewritten)).begun("ann", again)
    assert await erasures.pending() == [again]


async def test_whoever_dies_while_creating_a_project_leaves_its_name_free_or_created_it(connected: Redis) -> None:
    projects, created = RedisProjects(LogClient(connected)), 0
    for calls in range(FEW_CALLS):
        cut_short = SharedProject(f"cut{calls}", "acme", f"apollo {calls}", AT)
        with suppress(Unavailable):
            await RedisProjects(MortalClient(connected, calls)).create(cut_short, "ann")
        is_there = await projects.access("ann", cut_short.project_id) is not None
        created += is_there
        assert [one.project for one in await projects.joined("ann")] == ([cut_short] if is_there else [])
        assert (
            await projects.create(SharedProject(f"k{calls}", "acme", cut_short.project_id, AT), "bob") is not is_there
        )
        await projects.set_roles(cut_short.key, {"ann": None} if is_there else {}, at=AT)
    assert 0 < created < FEW_CALLS
    left = [f"cut{calls}" for calls in range(FEW_CALLS)]
    assert [key for key in left if await projects.access_by_key(key, "ann")] != left[-created:]
    await projects.forget_user("ann")  # she is erased
    assert [key for key in left if await projects.access_by_key(key, "ann")] == left[-created:]


async def test_whoever_dies_while_deleting_a_project_has_deleted_all_of_it_or_nothing(connected: Redis) -> None:
    projects, deleted = RedisProjects(LogClient(connected)), 0
    for calls in range(FEW_CALLS):
        project = SharedProject(f"k{calls}", "acme", f"apollo {calls}", AT)
        assert await projects.create(project, "ann")
        await projects.add_reader(project.key, "bob")
        with suppress(Unavailable):
            await RedisProjects(MortalClient(connected, calls)).delete(project.key)
        if await projects.access("ann", project.project_id) is not None:
            assert [one.user_id for one in await projects.members(project.key)] == ["ann"]
            assert await projects.readers(project.key) == ["bob"]
            await projects.delete(project.key)
            continue
        deleted += 1
        assert await projects.joined("ann") == []
        again = SharedProject(f"again{calls}", "acme", project.project_id, AT)
        assert await projects.create(again, "cid")
        found = await projects.access("cid", project.project_id)
        assert found is not None
        assert (found.project, found.role) == (again, ProjectRole.OWNER)
    assert 0 < deleted < FEW_CALLS


async def test_a_project_without_a_tenant_of_an_earlier_release_keeps_its_members(connected: Redis) -> None:
    """Its name was one for all users."""
    projects, project = RedisProjects(LogClient(connected)), SharedProject("k1", "", "boats of before", AT)
    await projects.create(project, "ann")
    own, one_for_all = name_keys(project)
    await connected.rename(own, one_for_all)
    found = await projects.access("ann", "boats of before")
    assert found is not None
    assert (found.project, found.role) == (project, ProjectRole.OWNER)
    await projects.delete("k1")
    assert await connected.exists(one_for_all) == 0
