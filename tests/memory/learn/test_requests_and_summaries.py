"""A request in a chat to forget or to withhold something also reaches the summaries of sessions."""

from __future__ import annotations

from learning_parts import Bench
from turn_logs import START, Process

from memory.model import SessionSummary, Turn

LATER = START + 1e6


async def learn(bench: Bench, process: Process, *said: str, session: str = "s1", project: str = "") -> list[Turn]:
    turns = [await bench.tell(process, one, session=session, project=project) for one in said]
    await bench.worker(process).work_off()
    return turns


async def in_summaries(process: Process) -> dict[str, list[str]]:
    """What the next summary of each session is made from."""
    due = await process.summaries.due(now=LATER, idle_seconds=0, limit=9)
    found = {}
    while due:
        for session in due:
            turns = await process.summaries.turns(session, limit=9)
            found[session.session_id] = [message.content for turn in turns for message in turn.messages]
            await process.summaries.put(session, None, None)
        due = await process.summaries.due(now=LATER, idle_seconds=0, limit=9)
    return found


async def summarise(process: Process) -> None:
    for session in await process.summaries.due(now=LATER, idle_seconds=0, limit=9):
        made = SessionSummary(session.user_id, session.session_id, 1, "A title", "", START, START, ())
        await process.summaries.put(session, made, None)


async def test_what_a_topic_names_and_the_request_itself_are_left_out(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await learn(bench, process, "My locker number is 42.", "I live in Leeds.")
        await summarise(process)
        await learn(bench, process, "Forget my locker number is 42.", session="s2")
        assert await process.summaries.of_session("ann", "s1") is None
        assert await in_summaries(process) == {"s1": ["I live in Leeds."], "s2": []}


async def test_what_was_said_right_before_is_left_out_though_no_memory_holds_it(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await learn(bench, process, "The weather is dull today", "Forget what I just said.")
        assert await in_summaries(process) == {"s1": []}


async def test_a_withheld_message_is_left_out(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await learn(bench, process, "I live in Leeds.", "My brother owes me 400 euros. Do not store that.")
        assert await in_summaries(process) == {"s1": ["I live in Leeds."]}


async def test_forget_everything_leaves_out_all_that_was_said_before_it_in_its_project(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await learn(bench, process, "I live in Leeds.", "The weather is dull today")
        await learn(bench, process, "My budget is 400 euros.", session="s2", project="atlas")
        await summarise(process)
        await learn(bench, process, "Forget everything about me.", session="s3", project="atlas")
        assert await process.summaries.of_session("ann", "s2") is None
        assert (await in_summaries(process))["s2"] == []
        await learn(bench, process, "Forget everything about me.", session="s3")
        assert set(map(tuple, (await in_summaries(process)).values())) == {()}
        await learn(bench, process, "I moved to York.", session="s1")
        assert (await in_summaries(process))["s1"] == ["I moved to York."]
