"""Where a request continues a conversation, what it abandons, and what is filled in. On every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest
from turn_logs import START, Deployment, Process, a_turn, ids_of, lease_at

from memory.adapters.sqlite import branch_positions
from memory.adapters.sqlite import conversation_trees as sqlite_trees
from memory.model import Message, SentConversation, SentExchange, Turn, TurnStatus


@pytest.fixture
async def process(deployment: Deployment) -> AsyncIterator[Process]:
    async with deployment.start() as started:
        yield started


def sent(path: str, *, given: bool = False, answers: str = "") -> SentConversation:
    """A conversation of messages of one letter each, with the answers that are shown ("x" where not stated)."""
    earlier = tuple(
        SentExchange(path[: n + 1], (Message("user", path[n]),), answers[n : n + 1] or "x")
        for n in range(len(path) - 1)
    )
    return SentConversation((path,), earlier, is_session_given=given)


@dataclass
class Teller:
    """Opens turns, each in a new session unless it continues another; and closes them."""

    process: Process
    user: str = "ann"
    count: int = 0

    async def __call__(
        self, path: str, *, answer: str = "x", session: str = "", answers: str = "", is_open: bool = False
    ) -> tuple[str, str]:
        self.count += 1
        turn_id = f"{self.user}-t{self.count}"
        turn = a_turn(
            turn_id, user=self.user, session=session or f"new-{turn_id}", text=path[-1], at=START + self.count
        )
        found = await self.process.log.trees.open(turn, sent(path, given=bool(session), answers=answers))
        if not is_open:
            await self.process.log.finish(
                turn_id, status=TurnStatus.CLOSED, answer=answer, answered_at=START + self.count
            )
        return turn_id, found

    async def learn(self) -> list[str]:
        """The turns that are learnt now."""
        learnt: list[str] = []
        while (lease := await lease_at(self.process.log, START + 10_000)) is not None:
            learnt += ids_of(lease)
            await self.process.log.acknowledge(lease)
        return learnt

    async def record(self) -> list[Turn]:
        return [turn async for turn in self.process.log.turns(self.user)]


@pytest.fixture
def tell(process: Process) -> Teller:
    return Teller(process)


async def test_a_resent_history_continues_its_session(tell: Teller) -> None:
    _, session = await tell("a")
    assert (await tell("ab"))[1] == session
    assert (await tell("abc"))[1] == session
    assert [turn.scope.session_id for turn in await tell.record()] == [session] * 3


async def test_it_does_so_after_a_restart_and_in_another_process(deployment: Deployment) -> None:
    async with deployment.start() as one:
        _, session = await Teller(one)("a")
    async with deployment.start() as one, deployment.start() as two:
        assert (await Teller(one, count=1)("ab"))[1] == session
        assert (await Teller(two, count=2)("abc"))[1] == session


async def test_two_conversations_that_begin_alike_stay_two_sessions(tell: Teller) -> None:
    _, first = await tell("a", answer="1")
    _, second = await tell("a", answer="2")
    assert first != second
    assert (await tell("ab", answers="1"))[1] == first
    assert (await tell("ac", answers="2"))[1] == second
    assert (await tell("ad", answers="2"))[1] == second


async def test_where_the_answers_are_equal_the_one_without_a_continuation_goes_on(tell: Teller) -> None:
    (_, first), (_, second) = await tell("a"), await tell("a")
    found = {(await tell("ab"))[1], (await tell("ac"))[1]}
    assert found == {first, second}


async def test_nobody_continues_the_conversation_of_another_user(process: Process) -> None:
    _, session = await Teller(process)("a")
    assert (await Teller(process, user="bob")("ab"))[1] != session


async def test_a_given_session_is_never_left(tell: Teller) -> None:
    await tell("a", session="s1")
    assert (await tell("ab", session="s2"))[1] == "s2"
    assert (await tell("ab", session="s1"))[1] == "s1"


async def test_an_edited_turn_leaves_the_queue_and_is_not_learnt(tell: Teller) -> None:
    root, _ = await tell("a")
    old, session = await tell("ab")
    new, same = await tell("ac")
    assert same == session
    assert await tell.learn() == [root, new]
    assert [turn.id for turn in await tell.record()] == [root, old, new]  # all of it was said


async def test_an_abandoned_turn_comes_back_if_the_client_continues_from_it(tell: Teller) -> None:
    root, _ = await tell("a")
    old, _ = await tell("ab")
    new, _ = await tell("ac")
    later, _ = await tell("abd")
    assert await tell.learn() == [root, old, later]
    assert new not in await tell.learn()
    assert (await tell.process.log.trees.shift("ann")).is_empty  # nothing of it was learnt


async def test_a_turn_that_was_learnt_is_told_by_a_shift_until_that_is_settled(tell: Teller) -> None:
    await tell("a")
    old, _ = await tell("ab")
    await tell.learn()
    trees = tell.process.log.trees
    assert await trees.next_shift() is None
    new, _ = await tell("ac")
    assert await trees.next_shift() == "ann"
    shift = await trees.shift("ann")
    assert [(turn.turn_id, turn.parent_id) for turn in shift.abandoned] == [(old, "ann-t1")]
    await trees.settle("ann", shift)
    assert await trees.next_shift() is None
    await tell.learn()
    await tell("abd")
    back = await trees.shift("ann")
    assert ([t.turn_id for t in back.abandoned], [t.turn_id for t in back.resumed]) == ([new], [old])
    await trees.settle("ann", shift)  # a late one changes nothing
    assert await trees.shift("ann") == back


async def test_a_turn_that_is_being_learnt_is_taken_from_its_window(tell: Teller) -> None:
    await tell("a")
    await tell("ab")
    lease = await lease_at(tell.process.log, START + 100)
    assert lease is not None
    old = lease.turns[-1].id
    await tell("ac")
    assert [turn.turn_id for turn in (await tell.process.log.trees.shift("ann")).abandoned] == [old]
    assert old not in await tell.learn()


async def test_a_regenerated_turn_stands_for_the_one_before_until_that_is_chosen(tell: Teller) -> None:
    root, _ = await tell("a")
    first, _ = await tell("ab", answer="1")
    again, _ = await tell("ab", answer="2")
    later, _ = await tell("abc", answers="x1")
    assert await tell.learn() == [root, first, later]
    assert again not in [root, first, later]


async def test_a_turn_that_is_still_open_can_be_abandoned_and_resumed(tell: Teller) -> None:
    await tell("a")
    old, _ = await tell("ab", is_open=True)
    await tell("ac")
    await tell.process.log.finish(old, status=TurnStatus.CLOSED, answer="x", answered_at=START)
    assert old not in await tell.learn()
    await tell("abd")
    assert old in await tell.learn()


async def test_missed_turns_are_filled_in_marked_and_learnt_once(tell: Teller) -> None:
    root, session = await tell("a")
    later, _ = await tell("abcd")
    record = await tell.record()
    assert [turn.messages[0].content for turn in record] == list("abcd")
    assert [turn.status for turn in record[1:3]] == [TurnStatus.FILLED_IN] * 2
    assert [turn.answer for turn in record[1:3]] == ["x", "x"]
    assert {turn.scope.session_id for turn in record} == {session}
    assert [turn.at for turn in record] == sorted(turn.at for turn in record)
    learnt = await tell.learn()
    assert (len(learnt), learnt[0], learnt[-1]) == (4, root, later)
    await tell("abcde")
    assert len(await tell.learn()) == 1


async def test_a_conversation_that_began_while_we_were_down_is_filled_in(tell: Teller) -> None:
    _, session = await tell("abc")
    assert [turn.messages[0].content for turn in await tell.record()] == list("abc")
    assert (await tell("abcd"))[1] == session
    assert len(await tell.learn()) == 4


async def test_examples_before_a_question_are_no_branch_of_one_conversation(tell: Teller) -> None:
    one, first = await tell("aab")
    two, second = await tell("aac")
    assert first != second
    learnt = await tell.learn()
    assert {one, two} <= set(learnt)
    assert len(learnt) == 4  # the examples once


async def test_two_processes_fill_in_the_same_turn_once(deployment: Deployment) -> None:
    async with deployment.start() as one, deployment.start() as two:
        first, second = Teller(one), Teller(two, count=10)
        await asyncio.gather(first("abc"), second("abc"))
        assert [turn.messages[0].content for turn in await first.record()].count("a") == 1


async def test_what_must_not_be_recorded_is_not_filled_in(tell: Teller) -> None:
    await tell.process.log.trees.leave_out("ann", "ab")
    await tell("abc")
    assert [turn.messages[0].content for turn in await tell.record()] == ["a", "c"]


async def test_texts_beyond_the_limit_are_not_filled_in(tell: Teller) -> None:
    await tell("a")
    conversation = sent("abc")
    cut = replace(conversation, earlier=(conversation.earlier[0], replace(conversation.earlier[1], said=(), answer="")))
    await tell.process.log.trees.open(a_turn("late", session="new", text="c"), cut)
    assert [turn.messages[0].content for turn in await tell.record()] == ["a", "c"]


async def test_messages_that_repeat_an_unanswered_first_turn_replace_it(tell: Teller) -> None:
    first, session = await tell("a")
    turn = a_turn("both", session="new", text="a and b")
    assert await tell.process.log.trees.open(turn, SentConversation(("a", "ab"))) == session
    assert first not in await tell.learn()


async def test_a_named_response_is_continued_and_may_be_continued_twice(tell: Teller) -> None:
    root, session = await tell("a")
    chained = SentConversation(("r1-b",), continues=root, is_session_given=True)
    log = tell.process.log
    await log.trees.open(a_turn("one", session=session, text="b"), chained)
    await log.trees.open(a_turn("two", session=session, text="c"), replace(chained, keys=("r1-c",)))
    for turn_id in ("one", "two"):
        await log.finish(turn_id, status=TurnStatus.CLOSED, answer="x", answered_at=START)
    assert await tell.learn() == [root, "two"]
    foreign = replace(chained, keys=("r1-d",))
    await log.trees.open(a_turn("three", user="bob", session=session, text="d"), foreign)
    assert await tell.learn() == []


async def test_a_repeated_write_changes_nothing(tell: Teller) -> None:
    _, session = await tell("a")
    turn = a_turn("ann-t1", session="other", text="a")
    assert await tell.process.log.trees.open(turn, sent("a")) == session
    assert len(await tell.record()) == 1


async def test_what_the_user_deletes_is_not_learnt_when_its_branch_comes_back(tell: Teller) -> None:
    await tell("a")
    old, _ = await tell("ab")
    await tell("ac")
    await tell.process.log.withdraw("ann", opened_before=START + 1_000)
    await tell("abd")
    assert old not in await tell.learn()


async def test_erased_conversations_are_not_recognised_and_not_filled_in(tell: Teller) -> None:
    _, session = await tell("a")
    await Teller(tell.process, user="bob")("a")
    await tell.process.log.trees.erase("ann")
    turn_id, found = await tell("ab")
    assert found != session
    assert [turn.id for turn in await tell.record()] == ["ann-t1", turn_id]
    await tell("abcd")  # a gap in what was said since is filled in
    assert [turn.messages[0].content for turn in await tell.record()] == ["a", "b", "c", "d"]
    assert len(await Teller(tell.process, user="bob").record()) == 1


async def test_the_oldest_positions_go_and_nobody_else_s(tell: Teller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_trees, "POSITIONS_MAX", 3)
    monkeypatch.setattr(sqlite_trees, "PRUNED_EVERY", 1)
    bob = Teller(tell.process, user="bob")
    _, of_bob = await bob("a")
    _, session = await tell("a")
    for letter in "vwxyz":
        await tell(letter)
    assert (await tell("ab"))[1] != session
    assert (await bob("ab"))[1] == of_bob


async def test_a_flush_waits_for_branches(tell: Teller) -> None:
    await tell("a")
    await tell("ab")
    await tell.learn()
    new, _ = await tell("ac")
    await tell.learn()
    assert new
    assert (await tell.process.log.backlog("ann", opened_before=START + 1_000)).pending == 1
    await tell.process.log.trees.settle("ann", await tell.process.log.trees.shift("ann"))
    assert (await tell.process.log.backlog("ann", opened_before=START + 1_000)).pending == 0


async def test_history_that_was_imported_is_known_in_its_session(tell: Teller) -> None:
    for letter in "ab":
        await tell.process.log.append(a_turn(f"imported-{letter}", session="s1", text=letter, status=TurnStatus.CLOSED))
    await tell("abc", session="s1")
    assert [turn.messages[0].content for turn in await tell.record()] == ["a", "b", "c"]
    await tell.learn()
    await tell("ad", session="s1")
    shift = await tell.process.log.trees.shift("ann")
    assert [turn.turn_id for turn in shift.abandoned] == ["imported-b", "ann-t1"]


async def test_a_beginning_that_thousands_of_chats_share_costs_no_more(
    tell: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branch_positions, "CANDIDATES_MAX", 3)
    for _ in range(5):
        _, session = await tell("a", answer="same")
    assert (await tell("ab", answers="same"))[1] == session
