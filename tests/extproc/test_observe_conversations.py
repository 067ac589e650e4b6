"""How exchanges hang together: sessions that a server holds, tool loops, and by what later requests find this one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from response_objects import Item, call_item, event_stream, response_object, text_item

from extproc.edge_trust import EdgeTrust
from extproc.exchange import CloseTurn, Closing, LeaveOut, OpenTurn, TurnSeed
from extproc.identity import IdentityMode
from extproc.observe import Observation
from extproc.reply import REPLY_BYTES_MAX
from extproc.turn_links import ContinueTurn, LinkExchange, Links
from memory.chat.completions import COMPLETIONS, read_chat_request
from memory.chat.responses import RESPONSES
from memory.chat.sent_conversations import new_session_id
from memory.model import Scope, ToolMessage, TurnStatus, link_name
from memory.recall.notes.past_notes import note_keys

OK = [(":status", b"200"), ("content-type", b"text/event-stream")]
WITH_NOTE = {"memory": {"receipt": "r1", "status": "used", "note_keys": "k0 k1"}}
WITHOUT_NOTE = {"memory": {"receipt": "r1", "status": "empty"}}
TOOLS = [{"type": "function", "name": "weather", "parameters": {}}]
PICTURE = {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]}
ANSWER = "Es regnet in Köln ☔"
QUESTION = {"role": "user", "content": "Will it rain?"}
CALLING = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
CONTINUED = Links("ann", "resp_0", ("k0", "k1"), ("resp_1",))


def exchange(
    path: str, asked: Item, reply: bytes, *, pieces: int = 1, metadata: Any = WITH_NOTE, is_whole: bool = True
) -> tuple[OpenTurn | None, Closing | None]:
    """What is recorded of one request and its reply, which comes in so many pieces."""
    watch = Observation(EdgeTrust(IdentityMode.DEVELOPMENT), seed=TurnSeed("t1"))
    watch.on_request_headers([(":method", b"POST"), (":path", path.encode()), ("x-authz-user-id", b"ann")])
    watch.on_request_body(json.dumps(asked).encode(), is_end=True, at=1.0)
    opening = watch.read_request()
    assert watch.on_response_headers(OK, metadata, at=2.0) is None
    size = -(-len(reply) // pieces)
    for at in range(0, len(reply), size):
        assert watch.on_response_body(reply[at : at + size], is_end=False, at=2.0) is None
    closing = watch.on_response_body(b"", is_end=True, at=3.0) if is_whole else watch.on_end(at=3.0)
    assert watch.is_idle
    return opening, closing


def respond(asked: Item, *output: Item, status: str = "completed", **more: Any) -> Any:
    stream = b"".join(event_stream(response_object(output, status=status)))
    return exchange("/v1/responses", {"model": "m", **asked}, stream, **more)


def chat(messages: list[Item], answer: Item, **fields: Any) -> Any:
    choice = {"index": 0, "message": answer, "finish_reason": "stop"}
    reply = json.dumps({"model": "m", "choices": [choice]}).encode()
    asked = {"model": "m", "messages": messages, **fields}
    return exchange("/v1/chat/completions", asked, reply, metadata=WITHOUT_NOTE)


def key_of(asked: Item, shape: Any = RESPONSES) -> str:
    request = read_chat_request(json.dumps({"model": "m", **asked}).encode(), shape)
    return list(note_keys(Scope("ann"), request).values())[-1]


def test_a_response_is_recorded_with_the_id_that_later_requests_go_on_from() -> None:
    opening, closing = respond({"input": "Will it rain?", "instructions": "Be brief."}, text_item(ANSWER), pieces=50)
    assert [message.content for message in opening.turn.messages] == ["Will it rain?"]
    links = Links("ann", "", ("k0", "k1"), ("resp_1",))
    assert closing == CloseTurn("t1", TurnStatus.CLOSED, ANSWER, 3.0, "r1", links=links)


@pytest.mark.parametrize("form", ["stream", "JSON", "JSON with spaces"])
def test_a_response_that_is_too_large_to_keep_is_gone_on_from_by_its_id_at_the_beginning(form: str) -> None:
    response = response_object([text_item('"id": "x"' * (REPLY_BYTES_MAX // 12))])
    as_json = json.dumps(response, indent=2 if form == "JSON with spaces" else None).encode()
    reply = b"".join(event_stream(response)) if form == "stream" else as_json
    opening, closing = exchange("/v1/responses", {"model": "m", "input": "Hi"}, reply, pieces=400)
    links = Links("ann", "", ("k0", "k1"), ("resp_1",))
    assert opening is not None
    assert closing == CloseTurn("t1", TurnStatus.CLOSED, "", 3.0, "r1", is_over_cap=True, links=links)


def test_what_failed_or_broke_off_is_nothing_to_go_on_from_and_without_a_note_none_is_looked_for() -> None:
    _, closing = respond({"input": "Will it rain?"}, status="failed")
    assert closing == CloseTurn("t1", TurnStatus.FAILED, "", 3.0, "r1")
    events = event_stream(response_object([text_item(ANSWER)]))
    _, cut_off = exchange("/v1/responses", {"input": "Will it rain?"}, b"".join(events[:-1]), is_whole=False)
    assert cut_off == CloseTurn("t1", TurnStatus.ABORTED, "", 3.0, "r1")
    _, closing = respond({"input": "Hi"}, text_item("Hi"), metadata=WITHOUT_NOTE)
    assert closing.links == Links("ann", "", (), ("resp_1",))


def test_the_session_is_the_explicit_one_else_the_conversation_else_that_of_the_response_before() -> None:
    asked = {"input": "And tomorrow?", "previous_response_id": "resp_0", "conversation": {"id": "conv_1"}}
    opening, closing = respond(asked | {"memory_context": {"session_id": "s"}}, text_item(ANSWER))
    assert (opening.turn.scope.session_id, opening.session_from) == ("s", "")
    assert closing.links.names == ("resp_1", "conv_1")
    opening, _ = respond(asked, text_item(ANSWER))
    assert (opening.turn.scope.session_id, opening.session_from) == ("conv_1", "")
    assert opening.links.goes_on_from == "conv_1"
    opening, _ = respond({"input": "And tomorrow?", "previous_response_id": "resp_0"}, text_item(ANSWER))
    assert opening.session_from == opening.links.goes_on_from == "resp_0"
    assert opening.turn.scope.session_id == new_session_id("t1")  # where that response is not known


def test_a_response_that_calls_a_tool_leaves_the_answer_to_what_goes_on_from_it() -> None:
    opening, closing = respond({"input": "Will it rain?", "tools": TOOLS}, call_item("weather"))
    assert opening is not None
    assert (closing.status, closing.answer) == (TurnStatus.CLOSED, "")
    assert closing.links.names == ("resp_1", key_of({"input": "Will it rain?"}))
    opening, closing = respond({"previous_response_id": "resp_0", "input": [OUTPUT]}, text_item(ANSWER))
    assert opening is None
    tools = (ToolMessage("", "rain", "call_1", is_result=True),)
    assert closing == ContinueTurn(CONTINUED, TurnStatus.CLOSED, ANSWER, 3.0, tools=tools, asked_at=1.0)


def test_a_client_that_sends_its_items_again_is_found_by_its_question() -> None:
    _, first = respond({"input": [QUESTION], "tools": TOOLS}, call_item("weather"))
    opening, closing = respond({"input": [QUESTION, call_item("weather"), OUTPUT], "tools": TOOLS}, text_item(ANSWER))
    assert opening is None
    assert closing.links.goes_on_from in first.links.names


def test_a_chat_completion_s_tool_loop_is_found_by_its_question_at_every_call() -> None:
    opening, first = chat([QUESTION], CALLING, tools=TOOLS)
    key = key_of({"messages": [QUESTION]}, COMPLETIONS)
    assert opening is not None
    assert first.links.names == (key,)
    opening, second = chat([QUESTION, CALLING, RESULT], CALLING, tools=TOOLS)
    assert opening is None
    assert second.links == Links("ann", key, (), (key,))
    assert second.answer == ""
    _, third = chat([QUESTION, CALLING, RESULT, CALLING, RESULT], {"role": "assistant", "content": ANSWER}, tools=TOOLS)
    tools = (ToolMessage("weather", "{}", "c1"), ToolMessage("weather", "rain", "c1", is_result=True))
    assert third == ContinueTurn(Links("ann", key), TurnStatus.CLOSED, ANSWER, 3.0, tools=tools, asked_at=1.0)


def test_results_with_a_new_question_are_a_turn_of_their_own() -> None:
    news = {"role": "user", "content": "Never mind. My name is Ann."}
    opening, closing = chat([QUESTION, CALLING, RESULT, news], {"role": "assistant", "content": "Hello Ann"})
    assert [message.content for message in opening.turn.messages] == ["Never mind. My name is Ann."]
    assert isinstance(closing, CloseTurn)


def test_results_are_not_recorded_for_who_forbids_it() -> None:
    asked = {"previous_response_id": "resp_0", "input": [OUTPUT], "auto_store": False}
    assert respond(asked, text_item(ANSWER)) == (None, ContinueTurn(CONTINUED, TurnStatus.CLOSED, "", 3.0))


@pytest.mark.parametrize("asked", [{"input": "I live in Ulm", "auto_store": False}, {"input": [PICTURE]}])
def test_of_an_exchange_that_is_not_recorded_only_ids_are_kept(asked: Item) -> None:
    opening, closing = respond({"previous_response_id": "resp_0", **asked}, text_item(ANSWER))
    assert (opening is None) == ("auto_store" not in asked), "a message without text has nothing to leave out"
    assert closing == LinkExchange(CONTINUED, closing.session_id, True, 3.0)
    _, closing = respond({"conversation": "conv_1", **asked}, text_item(ANSWER))
    assert (closing.session_id, closing.is_session_derived) == ("conv_1", False)
    assert respond(asked, status="failed")[1] is None


def test_of_a_completion_with_tools_that_is_not_recorded_nothing_is_kept_but_what_to_leave_out() -> None:
    answer = {"role": "assistant", "content": ANSWER}
    opening, closing = chat([{"role": "user", "content": "Hi"}], answer, auto_store=False, tools=TOOLS)
    assert isinstance(opening, LeaveOut)
    assert closing is None


def test_a_project_s_exchanges_are_known_in_that_project_alone() -> None:
    names = {}
    for project_id in ("", "p1", "p2"):
        asked = {"input": "Hi", "previous_response_id": "resp_0", "memory_context": {"project_id": project_id}}
        opening, closing = respond(asked, text_item(ANSWER))
        assert opening.links.goes_on_from == link_name(Scope("ann", project_id), "resp_0")
        names[project_id] = closing.links.names
    assert names[""] == ("resp_1",)
    assert len(set(names.values())) == 3
