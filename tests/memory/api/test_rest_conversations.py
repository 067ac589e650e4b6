"""The conversation record over REST: sessions, conversations, messages, and whose they are."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from api_parts import BOB, ODD, add_one, api_of, assert_refused, kept, learn_all, tell
from library_parts import NOW, Parts
from tellers import sent

from memory.model import (
    CarriedNote,
    Change,
    ChangeKind,
    Evidence,
    Message,
    RecallStatus,
    Receipt,
    Scope,
    ToolMessage,
    Turn,
    TurnStatus,
)


async def contents(api: httpx.AsyncClient, path: str, **parameters: Any) -> list[str]:
    answer = await api.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return [message["content"] for message in answer.json()["messages"]]


def a_message(content: str = "a plan", **fields: Any) -> dict[str, Any]:
    given = {"source_type": "agent", "source": "planner", "target_type": "agent", "target": "critic"}
    return {**given, "content": content, **fields}


# Adding and reading


@pytest.mark.parametrize("base", ["/v1", "/v1/memory"])
async def test_messages_are_added_and_read_under_both_paths(api: httpx.AsyncClient, base: str) -> None:
    path = f"{base}/conversations/s1/messages"
    handbook = {"source_type": "knowledge", "source": "handbook", "target_type": "model", "target": ""}
    posted = [
        a_message(trace_id="t", at="2025-03-04T09:00:00Z", id="m1", visibility="agent"),
        a_message("known", **handbook, at=1_741_078_801),
        a_message("it is hunter2", target_type="user", target=None, at=1_741_078_802.25),
    ]
    answer = await api.post(path, json={"messages": posted, "project_id": "red"})
    assert answer.status_code == 201, answer.text
    ids = answer.json()["ids"]
    first, second, third = (await api.get(path)).json()["messages"]
    shown = {"conversation_id": "s1", "type": "input", "unix_time": 1_741_078_800.0, "project_id": "red"}
    assert first == posted[0] | shown | {"turn_id": None}
    assert (second["type"], second["target"], third["type"], third["target"]) == ("input", None, "output", "ann")
    assert (third["unix_time"], [m["id"] for m in (first, second, third)]) == (1_741_078_802.25, ids)
    again = await api.post(path, json={"messages": [posted[0]]})
    assert (again.status_code, again.json()) == (201, {"ids": ["m1"]})
    assert await contents(api, path) == ["a plan", "known", "it is [secret]"], "secrets are removed before"


@pytest.mark.parametrize("session", [ODD, "messages", "search", "a/messages/b", "s1"])
async def test_any_id_of_a_session_can_be_named(parts: Parts, api: httpx.AsyncClient, session: str) -> None:
    await tell(parts, "t1", "my cat is Tom", session=session)
    name = quote(session, safe="")
    both = ["my cat is Tom", "answer to t1"]
    assert await contents(api, f"/v1/conversations/{name}/messages") == both
    assert await contents(api, "/v1/memory/messages", conversation_id=session) == both
    shown = (await api.get(f"/v1/memory/sessions/{name}")).json()
    assert (shown["id"], len(shown["messages"])) == (session, 2)
    assert (await api.delete(f"/v1/sessions/{name}")).json()["deleted"]["turns"] == 1
    assert_refused(await api.get(f"/v1/sessions/{name}"), 404)


async def test_an_agents_view_a_trace_and_words(parts: Parts, api: httpx.AsyncClient) -> None:
    await tell(parts, "t1", "book a table", agent="planner")
    parts.now += 10
    await tell(parts, "t2", "and a taxi")
    parts.now += 10
    await tell(parts, "t3", "elsewhere", session="s2", agent="planner")
    path = "/v1/conversations/s1/messages"
    own = ["book a table", "answer to t1"]
    assert await contents(api, path, agent_id="planner") == own
    assert await contents(api, path, agent_id="planner", view="visible") == [*own, "and a taxi", "answer to t2"]
    assert await contents(api, "/v1/memory/messages", agent_id="planner") == [*own, "elsewhere", "answer to t3"]
    assert await contents(api, "/v1/memory/messages", trace_id="trace-t2") == ["and a taxi", "answer to t2"]
    assert await contents(api, "/v1/memory/messages", query="ANSWER t3") == ["answer to t3"]
    assert await contents(api, path, query="elsewhere") == []


async def test_sessions_come_latest_first_and_pages_go_on_where_one_ended(parts: Parts, api: httpx.AsyncClient) -> None:
    for n in range(4):
        await tell(parts, f"t{n}", f"words {n}")
        await tell(parts, f"u{n}", f"elsewhere {n}", session=f"s{n + 2}")
        parts.now += 60
    seen, cursor = list[str](), ""
    while cursor is not None:
        page = (await api.get("/v1/conversations/s1/messages", params={"limit": 3, "cursor": cursor})).json()
        seen += [m["content"] for m in page["messages"]]
        cursor = page["next_cursor"]
    assert seen == [text for n in range(4) for text in (f"words {n}", f"answer to t{n}")]
    listed = (await api.get("/v1/memory/messages/export", params={"conversation_id": "s1"})).text
    assert [json.loads(line)["content"] for line in listed.splitlines()] == seen
    assert (await api.get("/v1/memory/messages/export", params={"query": "nothing such"})).text == ""
    first = (await api.get("/v1/sessions", params={"limit": 3})).json()
    assert [one["id"] for one in first["sessions"]] == ["s5", "s1", "s4"]
    rest = (await api.get("/v1/sessions", params={"limit": 3, "cursor": first["next_cursor"]})).json()
    assert [one["title"] for one in rest["sessions"]] == ["elsewhere 1", "elsewhere 0"]
    assert rest["next_cursor"] is None


async def test_text_that_utf8_cannot_hold_is_shown_and_taken(parts: Parts, api: httpx.AsyncClient) -> None:
    await tell(parts, "t1", "half \ud83d of a face")
    body = b'{"messages": [{"source_type": "tool", "target_type": "model", "content": "other \\udfff half"}]}'
    headers = {"content-type": "application/json"}
    answer = await api.post("/v1/conversations/s1/messages", content=body, headers=headers)
    assert answer.status_code == 201, answer.text
    shown = await contents(api, "/v1/conversations/s1/messages")
    assert sorted(shown) == ["answer to t1", "half \ufffd of a face", "other \ufffd half"]
    assert (await api.get("/v1/sessions")).json()["sessions"][0]["title"] == "half \ufffd of a face"
    assert "half \ufffd of a face" in (await api.get("/v1/memory/messages/export")).text


async def test_what_cannot_be_recorded_or_asked_for_is_refused_with_the_reason(api: httpx.AsyncClient) -> None:
    alone = {"source_type": "robot", "content": "", "at": "tomorrow", "trace_id": "x" * 300, "visibility": "world"}
    unlike: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        *(({name: value}, (name,)) for name, value in alone.items()),
        ({"source_type": "user", "source": "bob"}, ("messages[0]", "caller")),
        ({"source": ""}, ("messages[0]", "agent")),
        ({"target": "a\u200bb"}, ("messages[0]", "agent")),
        ({"id": "turn:t1:0"}, ("messages[0]", "turn:")),
        ({"at": 9_999_999_999}, ("future",)),
        ({"source_type": "tool", "source": "x" * 300}, ("256",)),
        ({"kind": "input"}, ("unknown field kind",)),
    ]
    for message, words in unlike:
        answer = await api.post("/v1/conversations/s1/messages", json={"messages": [a_message(**message)]})
        assert_refused(answer, 400, *words)
    assert_refused(await api.get("/v1/conversations/s1/messages"), 404)
    for parameters in (
        *({"view": "visible"}, {"view": "all", "agent_id": "a"}, {"limit": "0"}, {"limit": "501"}, {"cursor": "x"}),
        *({"agent_id": "a\x00"}, {"query": "a " * 21}, {"trace_id": "a" * 300}, {"sesion": "x"}),
    ):
        assert_refused(await api.get("/v1/memory/messages", params=parameters), 400)
    for parameters in ({"limit": "101"}, {"cursor": "WzEsICJ4Il0"}):
        assert_refused(await api.get("/v1/sessions", params=parameters), 400)


# Sessions


async def test_a_session_can_be_resumed(parts: Parts, api: httpx.AsyncClient) -> None:
    memory_id = await add_one(api, "The cat is called Tom")
    forgotten = await add_one(api, "The dog is called Rex")
    await api.delete(f"/v1/memory/{forgotten}")
    await tell(parts, "t1", "What is my cat called?", receipt="r1", agent="planner")
    note = CarriedNote(0, (memory_id, forgotten), 9, is_new=True)
    old = CarriedNote(0, ("elsewhere",), 9, is_new=False)
    await kept(parts, Receipt("r1", "ann", NOW, RecallStatus.USED, "found", query="cat?", notes=(old, note)))
    call, result = ToolMessage("clock", "{}", "c1"), ToolMessage("clock", "noon", "c1", is_result=True)
    await parts.turn_log.messages.add_tool_messages("t1", [call, result], at=parts.now + 0.2)
    shown = (await api.get("/v1/sessions/s1")).json()
    assert [m["content"] for m in shown["messages"]] == ["What is my cat called?", "{}", "noon", "answer to t1"]
    assert [m["source_type"] for m in shown["messages"]] == ["user", "agent", "tool", "agent"]
    memories = [{"id": memory_id, "content": "The cat is called Tom"}, {"id": forgotten, "content": None}]
    assert shown["notes"] == [{"turn_id": "t1", "receipt_id": "r1", "memories": memories}]
    assert (shown["title"], shown["status"], shown["agent_ids"]) == ("What is my cat called?", "open", ["planner"])
    assert (shown["turns"], shown["pending_turns"], shown["next_cursor"]) == (1, 1, None)
    parts.now += 1_801
    assert (await api.get("/v1/sessions/s1")).json()["status"] == "ended"


async def test_a_session_shows_its_live_branch_and_lists_the_one_it_left(api: httpx.AsyncClient, parts: Parts) -> None:
    for number, path in enumerate(("a", "ab", "ac")):
        turn = Turn(f"t{number}", Scope("ann", session_id="s1"), parts.now + number, (Message("user", path[-1]),))
        await parts.turn_log.trees.open(turn, sent(path, given=True))
        await parts.turn_log.finish(turn.id, status=TurnStatus.CLOSED, answer="x", answered_at=turn.at)
    shown = (await api.get("/v1/sessions/s1")).json()
    assert [message["content"] for message in shown["messages"]] == ["a", "x", "c", "x"]
    (left,) = shown["abandoned"]
    assert (left["left_after"], left["left_at"], left["turn_ids"], left["title"]) == ("t0", 1, ["t1"], "b")
    assert await contents(api, "/v1/conversations/s1/messages") == ["a", "x", "b", "x", "c", "x"]


# Whose they are


async def test_another_users_conversation_is_none_and_equal_ids_never_mix(parts: Parts, api: httpx.AsyncClient) -> None:
    await tell(parts, "t1", "ann's own")
    await api.post("/v1/conversations/s1/messages", json={"messages": [a_message("ann's plan", id="m1")]})
    async with api_of(parts, headers=BOB) as bobs:
        for method, path in (
            ("GET", "/v1/sessions/s1"),
            ("DELETE", "/v1/sessions/s1"),
            ("GET", "/v1/conversations/s1/messages"),
            ("POST", "/v1/conversations/s1/trim"),
            ("POST", "/v1/conversations/s1/compress"),
            ("DELETE", "/v1/memory/messages/m1"),
            ("DELETE", "/v1/memory/messages/turn:t1:0"),
            ("DELETE", "/v1/memory/turns/t1"),
        ):
            body = {"json": {"keep_last": 0}} if method == "POST" else {}
            assert_refused(await bobs.request(method, path, **body), 404)
        assert (await bobs.get("/v1/memory/messages/export")).text == ""
        assert (await bobs.get("/v1/sessions")).json()["sessions"] == []
        await bobs.post("/v1/conversations/s1/messages", json={"messages": [a_message("bob's plan", id="m1")]})
        assert await contents(bobs, "/v1/conversations/s1/messages") == ["bob's plan"]
        assert (await bobs.delete("/v1/sessions/s1")).json()["deleted"] == {"turns": 0, "messages": 1, "memories": 0}
    assert sorted(await contents(api, "/v1/sessions/s1")) == ["ann's own", "ann's plan", "answer to t1"]


# Deleting


@pytest.mark.parametrize("keeps", [False, True])
async def test_a_deleted_session_takes_what_was_learnt_from_it_alone(
    parts: Parts, api: httpx.AsyncClient, keeps: bool
) -> None:
    for turn_id, said, session in (("t1", "My cat is Tom", "s1"), ("t2", "My dog is Rex", "s2")):
        await tell(parts, turn_id, said, session=session)
        await learn_all(parts)
        await with_evidence(parts, f"{turn_id}-0", said, turn_id)
    await tell(parts, "t3", "not learnt yet")
    await api.post("/v1/conversations/s1/messages", json={"messages": [a_message()]})
    parameters = {"keep_memories": "true"} if keeps else {}
    answer = await api.delete("/v1/sessions/s1", params=parameters)
    gone = {"turns": 2, "messages": 1, "memories": 0 if keeps else 1}
    assert answer.json() == {"deleted": gone, "kept_memories": 0}
    assert await parts.lease() is None
    left = {m["content"] for m in (await api.get("/v1/memory")).json()["memories"]}
    assert left == ({"My cat is Tom", "My dog is Rex"} if keeps else {"My dog is Rex"})
    assert [one["id"] for one in (await api.get("/v1/sessions")).json()["sessions"]] == ["s2"]
    assert_refused(await api.delete("/v1/sessions/s1"), 404)
    assert_refused(await api.delete("/v1/sessions/s2", params={"keep_memories": "yes"}), 400)


async def with_evidence(parts: Parts, memory_id: str, quote: str, *turn_ids: str) -> None:
    """The memory as learning leaves it, with its evidence."""
    (record,) = await parts.store.get("ann", [memory_id])
    memory = replace(record.memory, evidence=tuple(Evidence(quote, turn_id) for turn_id in turn_ids))
    await parts.store.apply("ann", [Change(ChangeKind.UPDATE, memory)], record.vector[None])


async def test_only_a_memory_with_evidence_elsewhere_outlives_its_session(parts: Parts, api: httpx.AsyncClient) -> None:
    for turn_id, session in (("t1", "s1"), ("t2", "s1"), ("t3", "s2")):
        await tell(parts, turn_id, "My cat is Tom", session=session)
    await learn_all(parts)
    await with_evidence(parts, "t1-0", "My cat is Tom", "t1", "t2")
    await with_evidence(parts, "t2-1", "My cat is Tom", "t2", "t1", "t3")
    answer = (await api.delete("/v1/sessions/s1")).json()
    assert (answer["deleted"]["memories"], answer["kept_memories"]) == (1, 1)
    assert (await api.get("/v1/memory/t1-0")).status_code == 404
    kept = (await api.get("/v1/memory/t2-1")).json()
    assert [one["turn_id"] for one in kept["evidence"]] == ["t3"]


async def test_one_message_is_deleted_with_what_rests_on_it(parts: Parts, api: httpx.AsyncClient) -> None:
    await tell(parts, "t1", "My cat is Tom")
    await learn_all(parts)
    await with_evidence(parts, "t1-0", "My cat is Tom", "t1")
    said, answer = (await api.get("/v1/sessions/s1")).json()["messages"]
    deleted = await api.delete(f"/v1/memory/messages/{answer['id']}")
    assert deleted.json() == {"deleted": {"messages": 1, "memories": 0}}
    assert (await api.get("/v1/memory/t1-0")).status_code == 200
    deleted = await api.delete(f"/v1/memory/messages/{said['id']}")
    assert deleted.json() == {"deleted": {"messages": 1, "memories": 1}}
    assert (await api.get("/v1/memory/t1-0")).status_code == 404
    assert_refused(await api.get("/v1/sessions/s1"), 404)
    assert_refused(await api.delete(f"/v1/memory/messages/{said['id']}"), 404)


async def test_trim_and_compress(parts: Parts, api: httpx.AsyncClient) -> None:
    for n in range(3):
        long = [a_message("x" * 2_000, type="output", id=f"m{n}", at=NOW - 10 + n)]
        await api.post("/v1/conversations/s1/messages", json={"messages": long})
    path = "/v1/conversations/s1"
    assert (await api.post(f"{path}/compress", json={"keep_last": 1})).json() == {"compressed": 2}
    assert [len(text) for text in await contents(api, f"{path}/messages")] == [500, 500, 2_000]
    assert (await api.post(f"{path}/compress", json={"characters_max": 99})).status_code == 400
    assert (await api.post(f"{path}/compress")).json() == {"compressed": 0}
    assert (await api.post(f"{path}/trim", json={"keep_last": 1})).json() == {"deleted": 2}
    assert len(await contents(api, f"{path}/messages")) == 1
    assert_refused(await api.post(f"{path}/trim", json={"keep_last": -1}), 400, "keep_last")
    assert_refused(await api.post(f"{path}/trim", json={}), 400, "keep_last")


async def test_deleting_a_turn_a_project_or_everything_reaches_the_record(parts: Parts, api: httpx.AsyncClient) -> None:
    await tell(parts, "t1", "one")
    await tell(parts, "t2", "two")
    body = {"messages": [a_message("red plan")], "project_id": "red"}
    await api.post("/v1/conversations/s1/messages", json=body)
    await api.post("/v1/conversations/s1/messages", json={"messages": [a_message("plain plan")]})
    assert (await api.delete("/v1/memory/turns/t1")).status_code == 200
    assert sorted(await contents(api, "/v1/sessions/s1")) == ["answer to t2", "plain plan", "red plan", "two"]
    parts.now += 1
    assert (await api.delete("/v1/memory", params={"user_id": "ann", "project_id": "red"})).status_code == 200
    assert sorted(await contents(api, "/v1/sessions/s1")) == ["answer to t2", "plain plan", "two"]
    await api.delete("/v1/memory", params={"user_id": "ann"})
    assert_refused(await api.get("/v1/sessions/s1"), 404)
