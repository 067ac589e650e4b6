"""Summaries of sessions over REST: a session is ended, and shown and explained with its summary."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import httpx
from api_parts import BOB, assert_refused
from library_parts import NOW, Parts

from memory.model import CarriedNote, Message, RecallStatus, Receipt, Scope, SessionSummary, Turn, TurnStatus

ODD = "s 1/ü?#%2F"  # a session id as a client may choose it


async def tell(parts: Parts, turn_id: str, text: str, *, session: str = "s1", receipt: str = "") -> None:
    """A turn that is learnt."""
    scope = Scope("ann", session_id=session)
    turn = Turn(turn_id, scope, parts.now, (Message("user", text),), TurnStatus.CLOSED, receipt_id=receipt)
    await parts.turn_log.append(turn)
    while (lease := await parts.lease()) is not None:
        await parts.learn(lease)


async def test_a_session_is_ended_and_shown_with_its_summary(parts: Parts, api: httpx.AsyncClient) -> None:
    await tell(parts, "t1", "I want to buy a boat", session=ODD)
    path = f"/v1/sessions/{quote(ODD, safe='')}"
    before = (await api.get(path)).json()
    assert (before["status"], before["summary"]) == ("open", None)
    ended = await api.post(f"{path}/end")
    assert (ended.status_code, ended.json()) == (202, {"ended": True})
    assert (await api.get(path)).json()["status"] == "ended"
    assert [one["status"] for one in (await api.get("/v1/sessions")).json()["sessions"]] == ["ended"]
    (due,) = await parts.summaries.due(now=NOW, idle_seconds=9_999, limit=9)
    made = SessionSummary("ann", ODD, 1, "A boat \ud800", "text", NOW, NOW + 1, ("t1",), made_by="a test", made_at=NOW)
    assert await parts.summaries.put(due, made, None)
    shown = (await api.get(path)).json()["summary"]
    assert shown["id"] == made.id
    assert (shown["title"], shown["turn_ids"], shown["version"]) == ("A boat \ufffd", ["t1"], 1)


async def test_a_session_of_somebody_else_cannot_be_ended(parts: Parts, api: httpx.AsyncClient) -> None:
    await tell(parts, "t1", "I want to buy a boat")
    assert_refused(await api.post("/v1/sessions/s1/end", headers=BOB), 404, "not_found")
    assert_refused(await api.post("/v1/memory/sessions/s9/end"), 404, "not_found")
    assert not await parts.summaries.is_ended("ann", "s1")


async def test_a_note_with_a_summary_is_explained(parts: Parts, api: httpx.AsyncClient) -> None:
    await tell(parts, "t1", "I want to buy a boat")
    (due,) = await parts.summaries.due(now=NOW + 9_999, idle_seconds=1, limit=9)
    made = SessionSummary("ann", "s1", 1, "A boat", "for beginners", NOW, NOW, ("t1",))
    await parts.summaries.put(due, made, None)
    note = CarriedNote(before=0, memory_ids=(made.id, "m9"), tokens=9, is_new=True)
    parts.receipts.keep(Receipt("r1", "ann", NOW, RecallStatus.USED, "summary", notes=(note,)))
    await tell(parts, "t2", "What did we talk about?", session="s2", receipt="r1")
    for _ in range(100):
        (given,) = (await api.get("/v1/sessions/s2")).json()["notes"] or [None]
        if given:
            break
        await asyncio.sleep(0.01)
    assert given is not None
    contents = {memory["id"]: memory["content"] for memory in given["memories"]}
    assert contents == {made.id: "A boat: for beginners", "m9": None}
