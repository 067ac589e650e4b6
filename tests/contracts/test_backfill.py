"""What is filled in from what a client sends again, how it is dated, and when nobody recorded. On every adapter."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest
from tellers import Teller, sent
from turn_logs import START, Deployment, ManualClock, Process, a_turn

from memory.adapters.sql import known_exchanges
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.model import Message, Scope, SentConversation, SentExchange, TurnStatus

LONG = "My sister lives in Lisbon."
NUMBERS = itertools.count()


@dataclass
class Missed(Teller):
    """Users of a deployment that has outages."""

    clock: ManualClock = field(default_factory=ManualClock)

    async def outage(self, *, seconds: float = 60.0) -> None:
        """A time in which nobody recorded, and which ends now."""
        await self.process.log.times.beat()
        await self.process.log.times.end()
        self.clock.now += seconds
        await self.process.log.times.beat()

    async def after(self, earlier: Sequence[SentExchange], text: str, *, scope: Scope | None = None) -> None:
        """A turn that follows these."""
        self.count += 1
        session = f"new-{self.count}"
        turn = a_turn(f"{self.user}-s{self.count}", user=self.user, session=session, text=text, at=START + 100)
        turn = replace(turn, scope=replace(scope, session_id=session) if scope else turn.scope)
        await self.process.log.trees.open(turn, SentConversation((f"key of {text}",), tuple(earlier)))


@pytest.fixture
def tell(deployment: Deployment, process: Process) -> Missed:
    return Missed(process, clock=deployment.clock)


async def says(tell: Missed, history: list[tuple[str, str]], text: str, *, scope: Scope | None = None) -> None:
    """A turn after this history of questions and answers, which is of no known conversation."""
    earlier = [SentExchange(f"{text}-{n}", (Message("user", one),), shown) for n, (one, shown) in enumerate(history)]
    await tell.after(earlier, text, scope=scope)


async def said(tell: Teller) -> list[str]:
    return [turn.messages[0].content for turn in await tell.record()]


async def test_they_are_dated_right_after_the_turn_before_them_or_when_nobody_recorded_any_more(tell: Missed) -> None:
    await tell("a")
    tell.count += 1_000
    await tell("abcd")
    assert all(START + 1 < turn.at < START + 2 for turn in (await tell.record())[1:3])
    bob = Teller(tell.process, user="bob")
    await bob("a")
    tell.clock.now += 500
    await tell.outage()
    bob.count += 1_000
    await bob("abc")
    assert START + 500 < (await bob.record())[1].at < START + 501


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


async def test_a_beginning_that_nobody_missed_is_not_filled_in_also_not_after_an_outage(tell: Missed) -> None:
    """Examples in a prompt, or a conversation that began with another service."""
    await tell("aab")
    await tell.outage()
    await tell("aac")
    assert await said(tell) == ["b", "c"]


async def test_examples_after_an_outage_are_filled_in_once_and_are_no_branch(tell: Missed) -> None:
    await tell.outage()
    one, first = await tell("aab")
    two, second = await tell("aac")
    assert first != second
    learnt = await tell.learn()
    assert {one, two} <= set(learnt)
    assert len(learnt) == 4


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_nobody_learns_from_their_own_record_what_another_user_said(tell: Missed, *, is_deleted: bool) -> None:
    """A guess about another user is filled in or not as if that user did not exist."""
    trees, guess = tell.process.log.trees, SentExchange("k", (Message("user", LONG),), "How nice.")
    turn = a_turn("of bob", user="bob", text=LONG, status=TurnStatus.CLOSED)
    await tell.process.log.append(replace(turn, answer="How nice."))
    if is_deleted:
        await tell.process.log.messages.delete_turns("bob", ["of bob"])
    assert await trees.known("ann", [guess]) == [False]
    assert await trees.known("bob", [guess]) == [True]
    await tell.outage()
    await says(tell, [(LONG, "How nice.")], "c")
    assert await said(tell) == [LONG, "c"]


async def test_digests_of_two_files_are_not_comparable(tmp_path: Path) -> None:
    digests = set()
    for name in ("one", "two"):
        async with SqliteDatabase(tmp_path / name) as database:
            await database.write(partial(known_exchanges.remember, turn=a_turn("t", text=LONG)))
            digests.add(await database.read(lambda c: c.raw.execute("SELECT words FROM known_exchanges").fetchone()[0]))
    assert len(digests) == 2


async def test_two_processes_fill_in_the_same_turn_once(process: Process, other: Process) -> None:
    first, second = Teller(process), Teller(other, count=10)
    await first("a")
    await asyncio.gather(first("abc"), second("abc"))
    assert (await said(first)).count("b") == 1


@pytest.mark.parametrize("scope", [Scope("ann", agent_id="other"), Scope("ann", "project")])
async def test_what_one_agent_or_project_has_is_not_filled_in_for_another(tell: Missed, scope: Scope) -> None:
    await tell("a", answer="x")
    await tell("ab", answer="x")
    await tell.outage()
    await says(tell, [("a", "x"), ("b", "x")], "c", scope=scope)
    assert await said(tell) == ["a", "b", "c"]


async def test_a_window_that_slides_over_the_history_fills_in_only_what_was_missed(tell: Missed) -> None:
    await tell("a")
    await tell("ab")
    await tell.outage()
    await says(tell, [("b", "x"), ("c", "x")], "d")
    await tell.process.log.finish("ann-s3", status=TurnStatus.CLOSED, answer="x", answered_at=START)
    await says(tell, [("c", "x"), ("d", "x")], "e")
    assert await said(tell) == ["a", "b", "c", "d", "e"]


async def test_the_same_words_missed_twice_are_filled_in_twice_and_texts_beyond_the_limit_never(tell: Missed) -> None:
    await tell("a")
    twice = [replace(one, occurrence=n) for one, n in zip(sent("abbc").earlier, (1, 1, 2), strict=True)]
    await tell.after(twice, "c")
    assert await said(tell) == ["a", "b", "b", "c"]
    bob = Missed(tell.process, user="bob")
    await bob("a")
    first, second = sent("abc").earlier
    await bob.after([first, replace(second, said=(), answer="")], "c")
    assert await said(bob) == ["a", "c"]


async def test_what_the_user_deleted_does_not_come_back(tell: Missed) -> None:
    messages = tell.process.log.messages
    await tell.process.log.append(a_turn("imported", text=LONG, status=TurnStatus.CLOSED))
    await tell("a")
    await tell("ab")
    assert await messages.delete_turns("ann", ["imported", "ann-t2"]) == 2
    await tell.outage()
    await tell("abc")
    await says(tell, [(LONG, "Oh."), ("b", "x")], "d")
    assert await said(tell) == ["a", "c", "d"]
    bob = Teller(tell.process, user="bob")
    first, _ = await bob("a")
    assert await messages.delete_turns("bob", [first]) == 1
    await bob("abc")
    assert await said(bob) == ["c"]  # nor does what followed it


@pytest.mark.parametrize(
    ("seconds", "since", "path"),
    [
        (6.5, 0.0, "abcdefgh"),
        (60.0, 86_400.0 + 1, "abcd"),
        (0.5, 0.0, "ab"),  # an example in a prompt may take no time at all, so that any gap would have room for it
    ],
)
async def test_nor_is_one_that_did_not_begin_in_it(tell: Missed, seconds: float, since: float, path: str) -> None:
    await tell.outage(seconds=seconds)
    tell.clock.now += since
    await tell(path)
    assert await said(tell) == [path[-1]]


async def test_what_must_not_be_recorded_is_never_filled_in_for_its_user(tell: Missed) -> None:
    trees = tell.process.log.trees
    await tell("a")
    await trees.leave_out("ann", sent("abc").earlier[-1])
    for user, text in (("ann", "e"), ("bob", LONG)):
        await trees.leave_out(user, SentExchange("k", (Message("user", text),), ""))
    await tell("abc")
    assert await said(tell) == ["a", "c"]
    await tell.outage()
    await says(tell, [("e", "an answer"), (LONG, "How nice.")], "d")  # whatever history it is shown with
    assert await said(tell) == ["a", "c", LONG, "d"]


async def test_without_a_key_only_distinctive_words_are_left_out_until_their_user_is_erased(tell: Missed) -> None:
    trees, exchange = tell.process.log.trees, SentExchange("", (Message("user", LONG),), "")
    await trees.leave_out("ann", exchange)
    await trees.leave_out("ann", SentExchange("", (Message("user", "b"),), ""))
    await tell.outage()
    await says(tell, [(LONG, "How nice."), ("b", "x")], "c")
    assert await said(tell) == ["b", "c"]
    assert await trees.known("ann", [exchange]) == [True]
    await trees.erase("ann")
    assert await trees.known("ann", [exchange]) == [False]


async def test_the_oldest_digests_of_a_user_go_and_nobody_else_s(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_exchanges, "DIGESTS_MAX", 3)
    monkeypatch.setattr(known_exchanges, "PRUNED_EVERY", 1)
    trees, exchange = process.log.trees, SentExchange("", (Message("user", LONG),), "")
    for user in ("ann", "bob"):
        await trees.leave_out(user, exchange)
    for number in range(4):
        await trees.leave_out("ann", SentExchange("", (Message("user", f"{LONG} It has {number} hills."),), ""))
    assert await trees.known("ann", [exchange]) == [False]
    assert await trees.known("bob", [exchange]) == [True]


async def test_erased_conversations_are_neither_recognised_nor_filled_in_from_their_beginning(tell: Missed) -> None:
    bob = Teller(tell.process, user="bob")
    await bob("a")
    _, session = await tell("a")
    await tell.process.log.trees.erase("ann")
    await tell.outage()
    assert (await tell("ab"))[1] != session
    assert await said(tell) == ["a", "b"]
    await tell("abcd")  # a gap in what was said since is filled in
    assert await said(tell) == ["a", "b", "c", "d"]
    assert await said(bob) == ["a"]


# When nobody recorded


async def has_gap(process: Process) -> bool:
    """Whether a conversation that a new user continues is filled in from its beginning."""
    tell = Teller(process, user=f"user {next(NUMBERS)}")
    await tell("ab")
    return len(await tell.record()) == 2


@pytest.mark.parametrize(
    ("pauses", "missed", "is_gap"),
    [
        ((), None, False),  # the first recording of all
        ((5.0,) * 10, None, False),
        ((60.0,), None, True),
        ((3.0,), 2.0, True),  # turns of the last two seconds were lost
        ((3.0,), 0.5, True),  # the first of a conversation may be lost at once
    ],
)
async def test_a_long_silence_is_a_gap_and_so_are_lost_turns(
    deployment: Deployment, process: Process, pauses: Sequence[float], missed: float | None, *, is_gap: bool
) -> None:
    await process.log.times.end()  # that of a process that never recorded is nothing
    deployment.clock.now += 60
    await process.log.times.beat()
    for pause in pauses:
        deployment.clock.now += pause
        await process.log.times.beat(missed_since=None if missed is None else deployment.clock.now - missed)
    assert await has_gap(process) is is_gap


@pytest.mark.parametrize(("seconds", "is_gap"), [(0.5, False), (4.5, False), (6.0, True)])
async def test_a_long_start_is_a_gap(deployment: Deployment, process: Process, seconds: float, *, is_gap: bool) -> None:
    await process.log.times.beat()
    await process.log.times.end()
    deployment.clock.now += seconds
    assert not await has_gap(process)  # it has not ended
    async with deployment.start() as second:
        await second.log.times.beat()
        assert await has_gap(second) is is_gap


async def test_a_start_or_end_of_another_is_no_gap(deployment: Deployment, process: Process, other: Process) -> None:
    await process.log.times.beat()
    deployment.clock.now += 5
    await other.log.times.beat()
    await process.log.times.end()
    deployment.clock.now += 5
    await other.log.times.beat()
    await process.log.times.beat()
    assert not await has_gap(other)


async def test_a_process_that_died_leaves_a_gap(deployment: Deployment, process: Process) -> None:
    await process.log.times.beat()
    async with deployment.start() as mortal:
        await mortal.log.times.beat()
    deployment.clock.now += 5
    assert not await has_gap(process)
    await process.log.times.beat()
    assert await has_gap(process)
