"""A request in a chat to forget or to withhold something also reaches the summaries of sessions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from learning_parts import Bench, Faults
from plain_reader import PlainReader
from turn_logs import START, Process, a_turn

from memory.learn.worker import WorkerSettings
from memory.model import SessionSummary, Turn, TurnStatus
from memory.ports import FrameKind, FrameMark

LATER = START + 1e6


async def in_summaries(process: Process) -> dict[str, list[str]]:
    """What the next summary of each session is made from."""
    found = {}
    while due := await process.summaries.due(now=LATER, idle_seconds=0, limit=9):
        for session in due:
            turns = await process.summaries.turns(session, limit=9)
            found[session.session_id] = [message.content for turn in turns for message in turn.messages]
            await process.summaries.put(session, None, None)
    return found


async def summarise(process: Process) -> None:
    while due := await process.summaries.due(now=LATER, idle_seconds=0, limit=9):
        for one in due:
            made = SessionSummary(one.user_id, one.session_id, 1, "A title", "", START, START, (), series=one.series)
            await process.summaries.put(one, made, None)


async def test_what_a_topic_names_and_the_request_itself_are_left_out(bench: Bench, process: Process) -> None:
    await bench.learn(process, "My locker number is 42.", "I live in Leeds.")
    await summarise(process)
    await bench.learn(process, "Forget my locker number is 42.", session="s2")
    assert await process.summaries.of_session("ann", "s1") is None
    assert await in_summaries(process) == {"s1": ["I live in Leeds."], "s2": []}


ORDERS = {
    "what was said right before, though no memory holds it": ["The weather is dull today", "Forget what I just said."],
    "a withheld message": ["My brother owes me 400 euros. Do not store that."],
    "a claim that was only withheld": ["My locker number is 9876.", "Forget my locker number."],
    "all behind an order to stop": ["Don't remember anything again. I like tea.", "I row.", "The weather is dull"],
}


@pytest.mark.parametrize("said", ORDERS.values(), ids=ORDERS)
async def test_what_an_order_in_its_window_means_is_left_out(bench: Bench, process: Process, said: list[str]) -> None:
    """Where neither a memory nor a row of raw words ever existed."""
    await bench.learn(process, "I live in Leeds.", *said)
    assert await bench.contents() == ["I live in Leeds."]
    assert await in_summaries(process) == {"s1": ["I live in Leeds."]}


async def test_forget_everything_leaves_out_all_that_its_project_said_before(bench: Bench, process: Process) -> None:
    await bench.learn(process, "I live in Leeds.", "The weather is dull today")
    await bench.learn(process, "My budget is 400 euros.", session="s2", project="atlas")
    await summarise(process)
    await bench.learn(process, "Forget everything about me.", session="s3", project="atlas")
    assert await process.summaries.of_session("ann", "s2") is None
    assert (await in_summaries(process))["s2"] == []
    await bench.learn(process, "Forget everything about me.", session="s3")
    assert set(map(tuple, (await in_summaries(process)).values())) == {()}
    await bench.learn(process, "I moved to York.", session="s1")
    assert (await in_summaries(process))["s1"] == ["I moved to York."]


async def test_a_filled_in_request_withholds_what_its_window_said_before(bench: Bench, process: Process) -> None:
    said = ("My locker number is 9876.", "Forget what I just said.", "I live in Leeds.")
    await bench.learn(process, *said, status=TurnStatus.FILLED_IN)
    assert await bench.contents() == ["I live in Leeds."]
    assert await in_summaries(process) == {"s1": ["I live in Leeds."]}


async def test_a_missed_turn_from_before_forget_everything_is_left_out(bench: Bench, process: Process) -> None:
    await bench.learn(process, "I live in Leeds.", "Forget everything about me.")
    for number, text in enumerate(("The weather is dull today", "My locker number is 9876.")):
        turn = a_turn(f"f{number}", text=text, session="s2", status=TurnStatus.FILLED_IN, at=START - 5)
        await process.log.append(turn)
    await bench.learn(process, "I moved to York.", session="s2")
    assert await in_summaries(process) == {"s1": [], "s2": ["I moved to York."]}


@pytest.mark.parametrize("has_plan", [False, True])
@pytest.mark.parametrize("request_", ["Forget my locker number.", "Forget everything about me."])
async def test_a_window_that_is_replayed_after_a_request(bench: Bench, request_: str, *, has_plan: bool) -> None:
    """Whether it was read again or had a plan already. Before, none of it is in a summary."""
    async with bench.deployment.start() as process:
        await bench.tell(process, "My locker number is 9876.", "And what about the zebra?")
        name = "acknowledge" if has_plan else "context"
        faults = Faults(name=name, error=RuntimeError("a test"))
        await bench.worker(process, faults=faults, settings=WorkerSettings(attempts_max=1)).work_off()
        (dead,) = await process.log.dead_letters(limit=9)
        await bench.learn(process, request_, session="s2")
        assert await in_summaries(process) == {"s1": [], "s2": []}
        await process.log.replay([dead.window_id])
        await bench.learn(process, "I moved to York.")
        assert (await in_summaries(process))["s1"] == ["I moved to York."]


async def test_a_topic_reaches_what_was_never_a_memory_in_any_session(bench: Bench, process: Process) -> None:
    await bench.learn(process, "Where is the zebra of Nils?", "Is it late?", session="s1")
    await bench.learn(process, "Is the zebra of Nils old?", session="s2", project="atlas")
    await bench.learn(process, "Does the zebra eat?", session="s3")
    await summarise(process)
    await bench.learn(process, "Forget the zebra of Nils.", session="s4")
    assert await process.summaries.of_session("ann", "s3") is not None
    assert await in_summaries(process) == {"s1": ["Is it late?"], "s2": [], "s4": []}


async def test_what_repeats_a_forgotten_memory_in_other_words_is_left_out(bench: Bench, process: Process) -> None:
    await bench.learn(process, "I live in Leeds.", "I like tea.")
    await bench.learn(process, "Leeds is where I live, is it far?", session="s2")
    await bench.learn(process, "Is Leeds far?", session="s3")
    await bench.learn(process, "Forget where I live.", session="s4")
    found = await in_summaries(process)
    assert (found["s1"], found["s2"]) == (["I like tea."], [])


async def test_a_mere_kind_of_thing_leaves_only_turns_that_a_memory_quotes(bench: Bench, process: Process) -> None:
    """Whatever the others say, nobody can tell by their words that they say nothing of that kind."""
    await bench.learn(process, "I live in Leeds.", "I like tea.", "My sister is tall.")
    await bench.learn(process, "Might it be York for good, then?", "I like milk.", session="s2")
    await bench.tell(process, "I like juice.", session="s3")
    await bench.learn(process, "Forget where I live.", session="s3")
    await bench.learn(process, "What is the weather in York?", session="s2")
    found = await in_summaries(process)
    assert found["s1"] == ["I like tea.", "My sister is tall."]
    assert found["s2"] == ["I like milk.", "What is the weather in York?"]
    assert found["s3"] == ["I like juice."]


async def test_what_the_gate_refused_or_beyond_the_rate_is_left_out(bench: Bench, process: Process) -> None:
    worker = bench.worker(process, settings=WorkerSettings(facts_per_session_max=1))
    said = ("I live in Leeds.", "I want you to delete my locker number 9876", "I like tea.")
    await bench.learn(process, *said, worker=worker)
    assert await bench.contents() == ["I live in Leeds."]
    assert await in_summaries(process) == {"s1": ["I live in Leeds."]}


async def test_an_order_within_a_role_or_in_another_s_words_deletes_nothing_and_is_counted(
    bench: Bench, process: Process
) -> None:
    class Framing(PlainReader):
        async def frames(self, turns: Sequence[Turn]) -> list[FrameMark]:
            texts = [(turn.id, turn.messages[0].content) for turn in turns]
            return [FrameMark(FrameKind.PRESENTS, one, 0, 0, 4) for one, text in texts if text.startswith("Hark")]

    await bench.learn(process, "I live in Leeds.", "I like tea.")
    await bench.learn(process, "Hark. Forget that I live in Leeds.", worker=bench.worker(process, reader=Framing()))
    assert await bench.contents() == ["I like tea.", "I live in Leeds."]
    assert bench.count("memproxy_facts_dropped_total", reason="framed") == 1
    await bench.learn(process, "Forget that I live in Leeds.", worker=bench.worker(process, reader=Framing()))
    assert await bench.contents() == ["I like tea."]
