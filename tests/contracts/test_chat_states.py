"""What a chat needs is read at once: as each part's own port says it, and with what is on its way."""

from __future__ import annotations

import pytest
from note_lookup import notes_of
from turn_logs import START, Deployment, Process

from memory.adapters.sql.model_capabilities import LESSON_SECONDS_MAX
from memory.errors import Unavailable
from memory.model import ChainLink, PastNote, Placement, ProfileLine
from memory.ports import ChatState, ChatStateQuery, Revision

NOTE = PastNote("<memory>\n- it's 你 \\ é\n</memory>", ("m1",), 21)
VEGAN = ProfileLine("I am vegan", 4, "m1")
LEEDS = ProfileLine("I live in Leeds", 5, "m2")
BRIEF = ProfileLine("Be brief.", 3, "")


async def test_of_an_unknown_user_nothing_is_stored(process: Process) -> None:
    query = ChatStateQuery("ann", ["k1"], link_name="resp_1", model="qwen3", project_ids={"", "atlas"})
    assert await process.chat_states.read(query) == ChatState(revision=Revision(0))


async def test_every_part_is_what_the_other_ports_wrote_for_this_user_in_any_process(deployment: Deployment) -> None:
    async with deployment.start() as one, deployment.start() as two:
        await one.opt_outs.set("ann", at=START)
        for key, user in (("k1", "ann"), ("k2", "bob"), ("k3", "ann")):
            await one.notes.keep(user, key, NOTE, made_at=START)
        await one.log.chains.keep("ann", ("resp_1",), ChainLink("s1", "t1", ("k3",)), at=START)
        await one.capabilities.learn("qwen3", Placement.SYSTEM)
        await one.profiles.set_own("ann", "atlas", pinned=[BRIEF], is_enabled=False, now=START)
        await one.profiles.set_own("bob", "atlas", pinned=[BRIEF], now=START)
        async with one.ledger.write("ann") as change:
            change.touch(["m1"])
        state = await two.chat_states.read(
            ChatStateQuery("ann", ["k1", "k2"], link_name="resp_1", model="qwen3", project_ids={"", "atlas"})
        )
        assert state == ChatState(
            START,
            await two.ledger.revision("ann"),
            await notes_of(two.notes, "ann", ["k1", "k2", "k3"]),
            ChainLink("s1", "t1", ("k3",)),
            await two.profiles.get("ann", ["", "atlas"]),
            Placement.SYSTEM,
        )
        assert set(state.notes) == {"k1", "k3"}
        assert not state.profiles["atlas"].is_enabled
        assert await two.chat_states.read(ChatStateQuery("ann")) == ChatState(START, state.revision)
        deployment.clock.now += LESSON_SECONDS_MAX + 1
        assert (await two.chat_states.read(ChatStateQuery("ann", model="qwen3"))).placement is None


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


async def test_many_notes_are_read_at_once(process: Process) -> None:
    keys = [f"k{number}" for number in range(120)]
    for key in keys:
        await process.notes.keep("ann", key, NOTE, made_at=START)
    assert set((await process.chat_states.read(ChatStateQuery("ann", keys))).notes) == set(keys)


async def test_where_nothing_can_be_read_there_is_no_half_of_it(deployment: Deployment) -> None:
    async with deployment.start() as process:
        states = process.chat_states
    with pytest.raises(Unavailable):
        await states.read(ChatStateQuery("ann"))
