"""What a chat needs is read at once: as each part's own port says it, and with what is on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from note_lookup import notes_of
from turn_logs import START, Deployment, Process

from memory.adapters.sql import chat_states
from memory.adapters.sql.chat_states import KNOWN_SECONDS_MAX, LOOK_SECONDS, UNSEEN_SECONDS_MAX
from memory.adapters.sql.model_capabilities import LESSON_SECONDS_MAX
from memory.errors import Unavailable
from memory.model import ChainLink, PastNote, Placement, ProfileLine
from memory.ports import ChatState, ChatStateQuery, Revision

NOTE = PastNote("<memory>\n- it's 你 \\ é\n</memory>", ("m1",), 21)
VEGAN = ProfileLine("I am vegan", 4, "m1")
LEEDS = ProfileLine("I live in Leeds", 5, "m2")
BRIEF = ProfileLine("Be brief.", 3, "")


async def test_every_part_is_what_its_port_wrote(deployment: Deployment, process: Process, other: Process) -> None:
    query = ChatStateQuery("ann", ["k1", "k2"], link_name="resp_1", model="qwen3", project_ids={"", "atlas"})
    assert await other.chat_states.read(query) == ChatState(revision=Revision(0))
    await process.opt_outs.set("ann", at=START)
    for key, user in (("k1", "ann"), ("k2", "bob"), ("k3", "ann")):
        await process.notes.keep(user, key, NOTE, made_at=START)
    await process.log.chains.keep("ann", ("resp_1",), ChainLink("s1", "t1", ("k3",)), at=START)
    await process.capabilities.learn("qwen3", Placement.SYSTEM)
    for user in ("ann", "bob"):
        await process.profiles.set_own(user, "atlas", pinned=[BRIEF], is_enabled=user == "bob", now=START)
    async with process.ledger.write("ann") as change:
        change.touch(["m1"])
    state = await other.chat_states.read(query)
    assert state == ChatState(
        START,
        await other.ledger.revision("ann"),
        await notes_of(other.notes, "ann", ["k1", "k2", "k3"]),
        ChainLink("s1", "t1", ("k3",)),
        await other.profiles.get("ann", ["", "atlas"]),
        Placement.SYSTEM,
    )
    assert set(state.notes) == {"k1", "k3"}
    assert not state.profiles["atlas"].is_enabled
    assert await other.chat_states.read(ChatStateQuery("ann")) == ChatState(START, state.revision)
    deployment.clock.now += LESSON_SECONDS_MAX + 1
    assert (await other.chat_states.read(ChatStateQuery("ann", model="qwen3"))).placement is None


@pytest.mark.parametrize("written", [[], ["m2"], ["m1", "m2", "m3"]])
async def test_profiles_come_without_the_lines_of_memories_written_since(process: Process, written: list[str]) -> None:
    async with process.ledger.write("ann") as change:
        change.touch(["m1", "m2"])
    revision = (await process.ledger.revision("ann")).number
    assert await process.profiles.put("ann", {"": [VEGAN], "atlas": [LEEDS]}, revision=revision, now=START)
    if written:
        async with process.ledger.write("ann") as change:
            change.touch(written)
    state = await process.chat_states.read(ChatStateQuery("ann", project_ids={"", "atlas"}))
    assert state.profiles == await process.profiles.get("ann", ["", "atlas"])
    assert (LEEDS in state.profiles["atlas"].lines) is ("m2" not in written)


async def test_a_user_who_was_erased_goes_on_at_a_later_revision(process: Process) -> None:
    async with process.ledger.write("ann") as change:
        change.touch(["m1"])
    async with process.ledger.write("ann") as change:
        await change.advance_erase_epoch()
    assert (await process.chat_states.read(ChatStateQuery("ann"))).revision == await process.ledger.revision("ann")
    assert (await process.ledger.revision("ann")).number > 2


async def test_many_notes_are_read_at_once_or_none_of_them(deployment: Deployment) -> None:
    keys = [f"k{number}" for number in range(120)]
    async with deployment.start() as process:
        states = process.chat_states
        for key in keys:
            await process.notes.keep("ann", key, NOTE, made_at=START)
        assert set((await states.read(ChatStateQuery("ann", keys))).notes) == set(keys)
    with pytest.raises(Unavailable):
        await states.read(ChatStateQuery("ann"))


# While the log cannot be read

ANN, BOB = ChatStateQuery("ann", ["k1"], model="qwen3"), ChatStateQuery("bob")


async def test_without_the_log_what_was_read_is_known_but_for_notes_and_other_models(deployment: Deployment) -> None:
    async with deployment.start() as process:
        states = process.chat_states
        await process.capabilities.learn("qwen3", Placement.SYSTEM)
        await process.notes.keep("ann", "k1", NOTE, made_at=START)
        await states.read(ANN)
        assert states.last_known(ANN) is None  # nobody follows
        await states.forget_withdrawn()
        assert states.last_known(ANN) is None  # read before anybody did
        async with process.ledger.write("ann") as change:
            change.touch(["m1"])
        read = await states.read(ANN)
    with pytest.raises(Unavailable):
        await states.read(ANN)
    assert states.last_known(ANN) == ChatState(revision=read.revision, placement=Placement.SYSTEM)
    assert [states.last_known(one) for one in (ChatStateQuery("ann"), BOB)] == [None, None]
    deployment.clock.now += KNOWN_SECONDS_MAX
    assert states.last_known(ANN) is not None
    deployment.clock.now += 1
    assert states.last_known(ANN) is None


async def opt_out(process: Process) -> None:
    await process.opt_outs.set("ann", at=START)


async def erase(process: Process) -> None:
    async with process.ledger.write("ann") as change:
        await change.advance_erase_epoch()


async def forget_one(process: Process) -> None:
    await process.notes.drop("ann", ["m1"], now=START)


async def forget_all(process: Process) -> None:
    await process.notes.drop("ann", (), now=START)


@pytest.mark.parametrize("withdraw", [opt_out, erase, forget_one, forget_all])
async def test_what_a_user_withdrew_is_forgotten_by_every_process_at_its_next_look_and_nobody_else_s(
    deployment: Deployment, process: Process, other: Process, withdraw: Callable[[Process], Awaitable[None]]
) -> None:
    states = process.chat_states
    await states.forget_withdrawn()
    for query in (ANN, ChatStateQuery("ann"), BOB):
        before = await states.read(query)
    await withdraw(other)
    await states.forget_withdrawn()
    assert [states.last_known(one) for one in (ANN, ChatStateQuery("ann"), BOB)] == [None, None, before]
    for is_known in (False, True):  # a state may have been on its way while it looked, and comes after it
        deployment.clock.now += LOOK_SECONDS
        state = await states.read(ANN)
        await states.forget_withdrawn()
        assert states.last_known(ANN) == (state if is_known else None)
    assert (state.opted_out_at is not None) is (withdraw is opt_out)


async def test_who_did_not_look_for_long_knows_nobody_before_a_read(deployment: Deployment, process: Process) -> None:
    states = process.chat_states
    for seconds, is_known in ((0.0, False), (UNSEEN_SECONDS_MAX, True), (UNSEEN_SECONDS_MAX + 1, False)):
        await states.read(BOB)
        deployment.clock.now += seconds
        await states.forget_withdrawn()
        assert (states.last_known(BOB) is not None) is is_known
    await states.read(BOB)
    assert states.last_known(BOB) is not None


async def test_states_of_the_users_read_last_are_known(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_states, "KNOWN_MAX", 2)
    users = [ChatStateQuery(user) for user in ("ann", "bob", "cid")]
    async with deployment.start() as process:
        states = process.chat_states
        await states.forget_withdrawn()
        for query in (*users[:2], users[0], users[2]):
            await states.read(query)
        assert [states.last_known(one) is not None for one in users] == [True, False, True]


async def test_following_goes_on_through_an_outage(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_states, "LOOK_SECONDS", 0.001)
    async with deployment.start() as other, deployment.start() as process, asyncio.TaskGroup() as group:
        states, looks = process.chat_states, 0
        following = group.create_task(states.follow_withdrawals())
        while states.last_known(ANN) is None:
            await states.read(ANN)
            await asyncio.sleep(0)

        async def down(_: object) -> None:
            nonlocal looks
            looks += 1
            raise Unavailable("turn_log", "it is down")

        with monkeypatch.context() as outage:
            outage.setattr(states.database, "read_now", down)
            while looks < 2:
                await asyncio.sleep(0.001)
        assert states.last_known(ANN) is not None
        await other.opt_outs.set("ann", at=START)
        while states.last_known(ANN) is not None:
            await asyncio.sleep(0.001)
        following.cancel()
