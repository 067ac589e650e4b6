"""What the assistant answered is stored in passages, and goes with the turn, with what it says, and with every note."""

from __future__ import annotations

import pytest
from learning_parts import Bench
from turn_logs import START, Process

from memory.learn.worker import WorkerSettings
from memory.model import MemoryStatus, PastNote, Role, Scope, Turn
from memory.model.raw_words import ANSWER_ROWS_MAX, ANSWERED, PASSAGE_CHARACTERS_MAX, passages_of
from memory.ports import MemoryBank, MemoryFilter, RequestTraces
from memory.service.erasure import Erasure
from memory.service.requests import ListedContent

KEEPS = WorkerSettings(words_of=frozenset({Role.ASSISTANT}))
ANSWER = "Try Trattoria Sole near the station.\nIt closes at ten."
ULM = "I live in Ulm."


def test_passages_hold_the_whole_answer_in_lines_and_sentences() -> None:
    items = "\n".join(f"{number}. " + "An item of the list. " * 5 for number in range(1, 9))
    answer = f"Here are some:\n\n{items}\n---\n{'One long line. ' * 60}{'x' * 900}"
    passages = passages_of(answer)
    assert "".join("".join(passages).split()) == "".join(answer.split())
    assert max(map(len, passages)) <= PASSAGE_CHARACTERS_MAX
    assert all(one[0] in "12345678HO-x" for one in passages)  # where a line or a sentence begins
    assert passages_of(" \n---\n") == []


async def answers(bench: Bench, user: str = "ann") -> list[str]:
    rows = await bench.store.load(MemoryFilter(user, status=MemoryStatus.RAW, source=ANSWERED), limit=99)
    return sorted(row.memory.content for row in rows)


async def learn(bench: Bench, process: Process, said: str, answer: str) -> Turn:
    turn = await bench.tell(process, said, answer=answer)
    await bench.worker(process, settings=KEEPS).work_off()
    return turn


async def noted(bench: Bench, process: Process) -> None:
    """A note of a chat that holds all answers."""
    rows = await bench.store.load(MemoryFilter("ann", status=MemoryStatus.RAW), limit=99)
    note = PastNote("a note", tuple(row.memory.id for row in rows), 9)
    await process.notes.keep("ann", "chat", note, made_at=START)


def erasure(bench: Bench, process: Process) -> Erasure:
    traces = RequestTraces(
        process.notes, process.receipts, process.usage_counts, process.profiles, summaries=process.summaries
    )
    memories = MemoryBank(bench.store, process.ledger, bench.embedder)
    return Erasure(memories=memories, turn_log=process.log, traces=traces, clock=bench.deployment.clock)


async def test_an_answer_is_stored_as_the_assistants_and_is_no_memory(bench: Bench, process: Process) -> None:
    turn = await learn(bench, process, "Where can we eat?", ANSWER)
    assert await answers(bench) == [ANSWER]
    (record,) = await bench.store.load(MemoryFilter("ann", status=MemoryStatus.RAW), limit=9)
    (quoted,) = record.memory.evidence
    assert (quoted.role, quoted.turn_id, record.memory.said_at) == (Role.ASSISTANT, turn.id, turn.at)
    assert await bench.memories() == []
    assert await bench.store.count(ListedContent().filter_for(Scope("ann"), MemoryStatus.RAW)) == 0
    await learn(bench, process, "And then?", "A very long list.\n" * 9_000)
    assert len(await answers(bench)) == 1 + ANSWER_ROWS_MAX


async def test_without_the_setting_no_answer_is_stored(bench: Bench, process: Process) -> None:
    await bench.tell(process, "Where can we eat?", answer=ANSWER)
    await bench.worker(process, settings=WorkerSettings(words_of=frozenset({Role.USER}))).work_off()
    assert await answers(bench) == []


@pytest.mark.parametrize("way", ["the turn is deleted", "the turn is forgotten", "the fact is forgotten", "everything"])
async def test_answers_go_with_what_they_say_and_so_do_the_notes_that_hold_them(
    bench: Bench, process: Process, way: str
) -> None:
    await learn(bench, process, ULM, "Noted.")
    asked = await learn(bench, process, "Where can we eat?", "As you live in Ulm, try Trattoria Sole.")
    await noted(bench, process)
    match way:
        case "the turn is deleted":
            await process.log.messages.delete_turns("ann", [asked.id])
            await bench.worker(process, settings=KEEPS).work_off()
        case "the turn is forgotten":
            await erasure(bench, process).source("ann", asked.id)
        case "the fact is forgotten":
            (home,) = await bench.memories()
            await erasure(bench, process).memory("ann", home.id)
        case "everything":
            await erasure(bench, process).scope("ann", "")
    assert [one for one in await answers(bench) if "Sole" in one] == []
    assert await process.notes.find("ann", ["chat"]) == {}


@pytest.mark.parametrize("asked", ["Forget Trattoria Sole.", "Forget everything about me."])
async def test_a_request_to_forget_reaches_earlier_answers(bench: Bench, process: Process, asked: str) -> None:
    await learn(bench, process, "Where can we eat?", ANSWER)
    await learn(bench, process, asked, "Done, Trattoria Sole is forgotten.")
    assert await answers(bench) == []


async def test_of_whoever_opted_out_no_answer_is_stored(bench: Bench, process: Process) -> None:
    await process.opt_outs.set("ann", at=START)
    await learn(bench, process, "Where can we eat?", ANSWER)
    assert await answers(bench) == []
