"""What a conversation was told goes along whatever becomes of the search; nobody's wait costs somebody else theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hashing_embedder import HashingEmbedder
from recall_rig import KAYAK, NOW, Rig, request_of, request_with, rigged

from memory.errors import Unavailable
from memory.model import Change, ChangeKind, Memory, RecallStatus, RequestOptions, Scope, Vector
from memory.recall.pipeline import RecallSettings
from memory.recall.search_flow import CALLERS_AT_ONCE

FIRST = {"role": "user", "content": "Where is my kayak stored?"}
SECOND = [
    FIRST,
    {"role": "assistant", "content": "At the boathouse."},
    {"role": "user", "content": "And where did I put the paddles of it?"},
]
PATIENT = RecallSettings(deadline_seconds=1.0)


async def nothing(*_: object, **__: object) -> None:
    """No set."""


async def out_of_order(*_: object, **__: object) -> None:
    raise Unavailable("milvus", "it is down")


async def told_once(rig: Rig) -> str:
    """The note that the first question was given."""
    outcome = await rig.recall.recall(Scope("u"), request_with([FIRST]))
    assert outcome.status is RecallStatus.USED
    return outcome.notes[0].text


@pytest.mark.parametrize("failing", ["embedder", "sets"])
async def test_earlier_notes_are_put_back_though_the_search_fails_at_once(
    tmp_path: Path, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rigged(tmp_path, PATIENT) as rig:
        note = await told_once(rig)
        if failing == "embedder":
            rig.embedder.is_down = True
        else:
            monkeypatch.setattr(rig.corpora, "corpus", nothing)
            monkeypatch.setattr(rig.store, "search", out_of_order)
        outcome = await rig.recall.recall(Scope("u"), request_with(SECOND))
        assert [one.text for one in outcome.notes] == [note]
        assert (outcome.status, outcome.reason) == (RecallStatus.USED, "put_back")


async def test_who_waits_for_the_store_takes_no_place_from_who_needs_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rigged(tmp_path, RecallSettings(deadline_seconds=1.0, in_flight_max=1)) as rig:
        assert await rig.corpora.corpus("u", waits=True) is not None
        search, may_search = rig.store.search, asyncio.Event()

        async def slow(*given: object, **named: object) -> object:
            await may_search.wait()
            return await search(*given, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(rig.store, "search", slow)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(rig.recall.recall(Scope("new"), request_of("Where is my tent?")))
            await asyncio.sleep(0.03)  # it is embedded, and waits for the store, since there is no set
            outcome = await rig.recall.recall(Scope("u"), request_of("Where did I store my kayak?"))
            assert not waiting.done()
            may_search.set()
        assert outcome.status is RecallStatus.USED


async def test_while_its_set_is_loading_a_user_s_memories_are_searched_in_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rigged(tmp_path, PATIENT) as rig:

        async def never(*_: object, **__: object) -> object:
            await asyncio.sleep(3600)
            raise AssertionError

        kayak = Memory("w1", "w", KAYAK, NOW, NOW, NOW)
        vectors = await HashingEmbedder(dimension=384).embed([KAYAK], is_urgent=False)
        await rig.store.apply("w", [Change(ChangeKind.CREATE, kayak)], np.asarray(vectors))
        monkeypatch.setattr(rig.store, "load_few", never)
        outcome = await rig.recall.recall(Scope("w"), request_of("Where is my kayak stored?"))
        assert (outcome.status, outcome.count) == (RecallStatus.USED, 1)


async def test_of_two_alike_the_one_of_this_session_comes_first(tmp_path: Path) -> None:
    async with rigged(tmp_path, PATIENT) as rig:
        said = [
            Memory(f"s{number}", "v", KAYAK + where, NOW, NOW, NOW, session_id=f"session-{number}")
            for number, where in enumerate((" one", " two", " six"))
        ]
        vectors = await HashingEmbedder(dimension=384).embed([KAYAK] * 3, is_urgent=False)
        await rig.store.apply("v", [Change(ChangeKind.CREATE, memory) for memory in said], np.asarray(vectors))
        for number in range(3):
            outcome = await rig.recall.recall(
                Scope("v", session_id=f"session-{number}"), request_of("Where is my kayak stored?")
            )
            receipt = await rig.receipt(outcome, user_id="v")
            assert receipt.candidates[0].memory_id == f"s{number}"


async def test_where_no_note_may_be_placed_nothing_is_searched_for(tmp_path: Path) -> None:
    async with rigged(tmp_path, PATIENT) as rig:
        outcome = await rig.recall.recall(Scope("u"), request_of("Where is my kayak stored?", placement="off"))
        assert (outcome.status, outcome.reason) == (RecallStatus.DISABLED, "placement_off")
        assert rig.embedder.calls == 0


async def test_a_flood_of_searches_through_the_api_leaves_the_embedder_to_the_chats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rigged(tmp_path, PATIENT) as rig:
        embed, under_way, most = rig.embedder.embed, 0, 0

        async def counted(texts: Sequence[str], *, is_urgent: bool, as_query: bool = False) -> Vector:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.01)
            under_way -= 1
            return await embed(texts, is_urgent=is_urgent, as_query=as_query)

        monkeypatch.setattr(rig.embedder, "embed", counted)
        async with asyncio.TaskGroup() as group:
            for number in range(3 * CALLERS_AT_ONCE):
                asked = {"query": f"kayak {number}", "history": (), "options": RequestOptions()}
                group.create_task(rig.recall.search(Scope("u"), **asked))  # type: ignore[arg-type]
        assert most == CALLERS_AT_ONCE
