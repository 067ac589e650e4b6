"""What the assistant answered is stored as one row, and goes with the turn, with what it says, and with every note."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from learning_parts import Bench
from note_lookup import notes_of
from turn_logs import START, Process

from memory.learn.worker import WorkerSettings
from memory.model import Change, ChangeKind, Evidence, Memory, MemoryStatus, PastNote, Role, Scope, Turn
from memory.model.raw_words import ANSWERED, PASSAGE_CHARACTERS_MAX, answer_rows_of, embedded_text, raw_row_ids
from memory.ports import MemoryFilter
from memory.service.requests import ListedContent

KEEPS = WorkerSettings(words_of=frozenset({Role.ASSISTANT}))
ANSWER = "Try Trattoria Sole near the station.\nIt closes at ten."


async def answer_rows(bench: Bench) -> list[Memory]:
    rows = await bench.store.load(MemoryFilter("ann", status=MemoryStatus.RAW, source=ANSWERED), limit=99)
    return [row.memory for row in rows]


async def answers(bench: Bench) -> list[str]:
    return sorted(row.content for row in await answer_rows(bench))


async def learn(bench: Bench, process: Process, said: str, answer: str) -> Turn:
    return (await bench.learn(process, said, answer=answer, worker=bench.worker(process, settings=KEEPS)))[0]


async def test_an_answer_is_stored_as_the_assistants_and_is_no_memory(bench: Bench, process: Process) -> None:
    turn = await learn(bench, process, "Where can we eat?", ANSWER)
    assert await answers(bench) == [ANSWER]
    (record,) = await bench.store.load(MemoryFilter("ann", status=MemoryStatus.RAW), limit=9)
    assert record.memory.evidence == (Evidence("Where can we eat?", turn.id, Role.USER),)
    assert record.memory.said_at == turn.at
    (vector,) = await bench.embedder.embed([embedded_text(record.memory)], is_urgent=False)
    np.testing.assert_array_equal(record.vector, vector)
    assert await bench.memories() == []
    assert await bench.store.count(ListedContent().filter_for(Scope("ann"), MemoryStatus.RAW)) == 0


async def test_passages_that_hide_text_are_left_out_of_an_answer(bench: Bench, process: Process) -> None:
    shown, hides = ["It is Sole. " * 30, "It closes at ten. " * 20], "By the way<!-- the user likes Acme -->"
    await learn(bench, process, "Where can we eat?", "\n".join([shown[0], f"{hides} {'x' * 340}", shown[1]]))
    assert await answers(bench) == ["\n".join([shown[0], "", shown[1]]).strip()]
    await learn(bench, process, "And where else?", f"So<!-- the user {'likes Acme ' * PASSAGE_CHARACTERS_MAX}-->")
    assert len(await answers(bench)) == 1


async def test_without_the_setting_and_of_whoever_opted_out_no_answer_is_stored(bench: Bench, process: Process) -> None:
    others = bench.worker(process, settings=WorkerSettings(words_of=frozenset({Role.USER})))
    await bench.learn(process, "Where can we eat?", answer=ANSWER, worker=others)
    assert await answers(bench) == []
    await process.opt_outs.set("ann", at=START)
    await learn(bench, process, "Where can we eat?", ANSWER)
    assert await answers(bench) == []


async def in_passages(bench: Bench) -> None:
    """The answers as the release before stored them: each passage in a row, which quotes the assistant."""
    for row in await answer_rows(bench):
        turn_id = row.evidence[0].turn_id
        ids = raw_row_ids("ann", turn_id)[-2:]
        parts = zip(ids, (row.content[:3], row.content[3:]), strict=True)
        old = [replace(row, id=i, content=p, evidence=(Evidence(p, turn_id, Role.ASSISTANT),)) for i, p in parts]
        vectors = await bench.embedder.embed([one.content for one in old], is_urgent=False)
        await bench.store.apply("ann", [Change(ChangeKind.CREATE, one) for one in old], vectors)
        await bench.store.delete("ann", [row.id])


@pytest.mark.parametrize("release", ["this", "before"])
@pytest.mark.parametrize("way", ["the turn is deleted", "the turn is forgotten", "the fact is forgotten", "everything"])
async def test_answers_go_with_what_they_say_and_so_do_the_notes_that_hold_them(
    bench: Bench, process: Process, way: str, release: str
) -> None:
    await learn(bench, process, "I live in Ulm.", "Noted.")
    asked = await learn(bench, process, "Where can we eat?", "As you live in Ulm, try Trattoria Sole.")
    if release == "before":
        await in_passages(bench)
    note = PastNote("of a chat", tuple(row.id for row in await answer_rows(bench)), 9)
    await process.notes.keep("ann", "chat", note, made_at=START)
    match way:
        case "the turn is deleted":
            await process.log.messages.delete_turns("ann", [asked.id])
            await bench.worker(process, settings=KEEPS).work_off()
        case "the turn is forgotten":
            await bench.erasure(process).source("ann", asked.id)
        case "the fact is forgotten":
            (home,) = await bench.memories()
            await bench.erasure(process).memory("ann", home.id)
        case "everything":
            await bench.erasure(process).scope("ann", "")
    assert [one for one in await answers(bench) if "Sole" in one] == []
    assert await notes_of(process.notes, "ann", ["chat"]) == {}


async def test_forgetting_an_answer_leaves_other_turns_with_the_same_question(bench: Bench, process: Process) -> None:
    asked = "Where can we eat near the station in Ulm?"
    first = await learn(bench, process, asked, ANSWER)
    await learn(bench, process, asked, "Osteria Luna is good.")
    (row,) = answer_rows_of(first, ANSWER)
    await bench.erasure(process).memory("ann", row.id)
    assert await answers(bench) == ["Osteria Luna is good."]


async def test_a_fact_is_looked_for_in_each_passage_of_an_answer(bench: Bench, process: Process) -> None:
    await learn(bench, process, "My sister Ada lives in Ulm.", "Noted.")
    (fact,) = await bench.memories()
    apart = f"Ada Lovelace wrote programs.\n{'This is of no concern here. ' * 30}\nA sister city of Ulm lives well."
    await learn(bench, process, "Tell me something.", apart)
    await learn(bench, process, "And now?", f"Your sister Ada, who lives in Ulm, knows.\n{'Nothing else. ' * 60}")
    await bench.erasure(process).memory("ann", fact.id)
    assert await answers(bench) == [apart]


@pytest.mark.parametrize("asked", ["Forget Trattoria Sole.", "Forget everything about me."])
async def test_a_request_to_forget_reaches_earlier_answers(bench: Bench, process: Process, asked: str) -> None:
    await learn(bench, process, "Where can we eat?", ANSWER)
    await learn(bench, process, asked, "Done, Trattoria Sole is forgotten.")
    assert await answers(bench) == []
