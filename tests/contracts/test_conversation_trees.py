"""Where a request continues a conversation, and what it abandons. On every adapter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from recorded import all_of
from tellers import Teller, sent
from turn_logs import START, Deployment, Process, a_turn, leased

from memory.adapters.sql import branch_positions, conversation_trees, known_exchanges
from memory.model import BranchShift, Message, MessageFilter, SentConversation, SentExchange, TurnStatus


@pytest.fixture
def tell(process: Process) -> Teller:
    return Teller(process)


async def test_a_resent_history_continues_its_session_in_every_process(deployment: Deployment, tell: Teller) -> None:
    _, session = await tell("a")
    assert (await tell("ab"))[1] == session
    async with deployment.start() as later:
        assert (await Teller(later, count=2)("abc"))[1] == session
        assert (await Teller(later, user="bob")("abcd"))[1] != session  # another user's
    again = a_turn("ann-t1", session="other", text="a")
    assert await tell.process.log.trees.open(again, sent("a")) == session  # a repeated write changes nothing
    assert [turn.scope.session_id for turn in await tell.record()] == [session] * 3


async def test_two_conversations_that_begin_alike_stay_two_sessions(tell: Teller) -> None:
    """Where their answers are equal, the one without a continuation goes on."""
    (_, first), (_, second) = await tell("a", answer="1"), await tell("a", answer="2")
    assert first != second
    assert (await tell("ab", answers="1"))[1] == first
    assert [(await tell(path, answers="2"))[1] for path in ("ac", "ad")] == [second] * 2
    bob = Teller(tell.process, user="bob")
    begun = {(await bob("a"))[1] for _ in range(2)}
    assert {(await bob(path))[1] for path in ("ab", "ac")} == begun
    assert len(begun) == 2


async def test_a_given_session_is_never_left(tell: Teller) -> None:
    await tell("a", session="s1")
    assert (await tell("ab", session="s2"))[1] == "s2"
    assert (await tell("ab", session="s1"))[1] == "s1"


async def test_an_abandoned_turn_is_not_learnt_unless_the_client_continues_from_it(tell: Teller) -> None:
    root, _ = await tell("a")
    old, _ = await tell("ab")
    await tell("ac")
    later, _ = await tell("abd")
    assert await tell.learn() == [root, old, later]
    assert await tell.process.log.trees.shift("ann") == BranchShift()  # nothing of "ac" was learnt


async def test_what_is_live_and_where_branches_were_left_is_told_apart(tell: Teller) -> None:
    root, session = await tell("a")
    old, _ = await tell("ab")
    older_end, _ = await tell("abc")
    new, _ = await tell("ad")
    last, _ = await tell("ade")
    record = tell.process.log.messages
    live = await all_of(record, MessageFilter("ann", session, only_live=True))
    assert list(dict.fromkeys(message.turn_id for message in live)) == [root, new, last]
    assert len(await all_of(record, MessageFilter("ann", session))) == 10, "the record has all of it"
    (left,) = await record.abandoned("ann", session, limit=9)
    assert (left.left_after, left.left_at, left.turn_ids, left.title) == (root, 1, (old, older_end), "b")
    assert left.begun_at == START + 2
    await tell("abcf")  # goes back to it
    (left,) = await record.abandoned("ann", session, limit=9)
    assert (left.left_after, left.turn_ids) == (root, (new, last))
    assert await record.abandoned("bob", session, limit=9) == []


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
    lease = await leased(tell.process.log, START + 100)
    old = lease.turns[-1].id
    await tell("ac")
    assert [turn.turn_id for turn in (await tell.process.log.trees.shift("ann")).abandoned] == [old]
    assert old not in await tell.learn()
    await tell.process.log.withdraw("ann", opened_before=START + 1_000)
    await tell("abd")
    assert old not in await tell.learn(), "what the user deletes is not learnt when its branch comes back"


async def test_a_regenerated_turn_stands_for_the_one_before_until_that_is_chosen(tell: Teller) -> None:
    root, _ = await tell("a")
    first, _ = await tell("ab", answer="1")
    await tell("ab", answer="2")
    later, _ = await tell("abc", answers="x1")
    assert await tell.learn() == [root, first, later]


async def test_an_open_turn_is_abandoned_by_what_goes_on_elsewhere_and_can_be_resumed(tell: Teller) -> None:
    await tell("a")
    old, _ = await tell("ab", is_open=True)
    await tell("ac")
    await tell("acd")
    await tell.process.log.finish(old, status=TurnStatus.CLOSED, answer="x", answered_at=START)
    assert old not in await tell.learn()
    await tell("abe")
    assert old in await tell.learn()


@pytest.mark.parametrize("chosen", [0, 1])
async def test_of_two_requests_at_once_the_one_not_gone_on_from_is_abandoned_then(tell: Teller, chosen: int) -> None:
    (root, *both), trees = await two_at_once(tell, seconds=3.5), tell.process.log.trees
    assert await tell.learn() == [root, *both]
    assert await trees.shift("ann") == BranchShift()
    await tell(("abd", "acd")[chosen])
    shift = await trees.shift("ann")
    assert [turn.turn_id for turn in shift.abandoned] == [both[1 - chosen]]
    await tell(("abde", "acde")[chosen])
    assert await trees.shift("ann") == shift


async def two_at_once(tell: Teller, *, seconds: float) -> list[str]:
    """The root, and two turns that are open together after it; both end so long after the start."""
    turns = [(await tell("a"))[0], *[(await tell(path, is_open=True))[0] for path in ("ab", "ac")]]
    for turn_id in turns[1:]:
        await tell.process.log.finish(turn_id, status=TurnStatus.CLOSED, answer="x", answered_at=START + seconds)
    return turns


async def test_one_that_ended_before_the_other_began_is_abandoned_although_that_is_recorded_later(tell: Teller) -> None:
    root, old, new = await two_at_once(tell, seconds=3)
    assert await tell.learn() == [root, new]
    await tell("abd")
    assert old in await tell.learn()


async def test_the_same_request_sent_twice_is_learnt_once(tell: Teller) -> None:
    root, _ = await tell("a")
    one, _ = await tell("ab", is_open=True)
    two, _ = await tell("ab")
    await tell.process.log.finish(one, status=TurnStatus.CLOSED, answer="x", answered_at=START + 50)
    assert await tell.learn() == [root, two]


async def test_answers_that_the_client_edits_abandon_nothing(tell: Teller) -> None:
    """Nor do questions that it sends again in other words than at first, as clients with retrieved documents do."""
    said = ("I like tea very much", "I like milk very much", "I like juice very much", "I like beer very much")
    shown = ("One cup, please.", "Two cups of it, then.", "Three are too many.", "")
    turns = [await rewritten(tell, said[:1], ())]
    for count in range(2, len(said) + 1):
        edited = (f"An answer that was edited {count} times.", *shown[1 : count - 1])
        texts = (*said[: count - 1], f"{said[count - 1]} [1]")
        turns.append(await rewritten(tell, texts, edited, answer=shown[count - 1]))
    record = await tell.record()
    assert [turn.id for turn in record] == turns
    assert len({turn.scope.session_id for turn in record}) == 1
    assert await tell.learn() == turns


async def rewritten(tell: Teller, texts: Sequence[str], answers: Sequence[str], *, answer: str = "x") -> str:
    """A turn that says the last text, after the others with these answers; keys as a client's messages give them."""
    tell.count += 1
    earlier, path = [], ""
    for text, shown in zip(texts[:-1], answers, strict=True):
        path += "/" + text
        earlier.append(SentExchange(path, (Message("user", text),), shown))
        path += "/" + shown
    turn = a_turn(f"r{tell.count}", session=f"new-{tell.count}", text=texts[-1], at=START + tell.count)
    await tell.process.log.trees.open(turn, SentConversation((path + "/" + texts[-1],), tuple(earlier)))
    await tell.process.log.finish(turn.id, status=TurnStatus.CLOSED, answer=answer, answered_at=START + tell.count)
    return turn.id


async def test_messages_that_repeat_an_unanswered_first_turn_replace_it(tell: Teller) -> None:
    first, session = await tell("a")
    turn = a_turn("both", session="new", text="a and b")
    assert await tell.process.log.trees.open(turn, SentConversation(("a", "ab"))) == session
    assert first not in await tell.learn()


async def test_a_named_response_is_continued_and_may_be_continued_twice(tell: Teller) -> None:
    root, session = await tell("a")
    chained = SentConversation(("r1-b",), continues=root, is_session_given=True)
    log = tell.process.log
    for turn_id, text in (("one", "b"), ("two", "c")):
        conversation = replace(chained, keys=(f"r1-{text}",))
        await log.trees.open(a_turn(turn_id, session=session, text=text), conversation)
        await log.finish(turn_id, status=TurnStatus.CLOSED, answer="x", answered_at=START)
    assert await tell.learn() == [root, "two"]
    foreign = replace(chained, keys=("r1-d",))
    await log.trees.open(a_turn("three", user="bob", session=session, text="d"), foreign)
    assert await tell.learn() == []


async def test_the_oldest_positions_go_and_nobody_else_s(tell: Teller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_trees, "POSITIONS_MAX", 3)
    monkeypatch.setattr(known_exchanges, "PRUNED_EVERY", 1)
    bob = Teller(tell.process, user="bob")
    _, of_bob = await bob("a")
    _, session = await tell("a")
    for letter in "vwxyz":
        await tell(letter)
    assert (await tell("ab"))[1] != session
    assert (await bob("ab"))[1] == of_bob


async def test_a_flush_waits_for_branches(tell: Teller) -> None:
    log = tell.process.log
    for path in ("a", "ab"):
        await tell(path)
    await tell.learn()
    await tell("ac")
    await tell.learn()
    assert (await log.backlog("ann", opened_before=START + 1_000)).pending == 1
    await log.trees.settle("ann", await log.trees.shift("ann"))
    assert (await log.backlog("ann", opened_before=START + 1_000)).pending == 0


async def test_history_that_was_imported_is_known_in_its_session(tell: Teller) -> None:
    for letter in "ab":
        await tell.process.log.append(a_turn(f"imported-{letter}", session="s1", text=letter, status=TurnStatus.CLOSED))
    await tell("abc", session="s1")
    assert [turn.messages[0].content for turn in await tell.record()] == ["a", "b", "c"]
    await tell.learn()
    await tell("ad", session="s1")
    shift = await tell.process.log.trees.shift("ann")
    assert [turn.turn_id for turn in shift.abandoned] == ["imported-b", "ann-t1"]


async def test_a_beginning_that_many_chats_share_costs_no_more(tell: Teller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_positions, "CANDIDATES_MAX", 3)
    for _ in range(5):
        _, session = await tell("a", answer="same")
    assert (await tell("ab", answers="same"))[1] == session
