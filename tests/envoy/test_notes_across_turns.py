"""Requests of one conversation through the whole product: notes with the same bytes, edits, and long histories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx
from long_chats import FIRST
from product import Product, eventually, in_time
from upstream import RecordingUpstream

TURNS = 60  # of a long chat
Messages = list[dict[str, Any]]


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def heard(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def tool_traffic(number: int) -> Messages:
    call = {"id": f"call-{number}", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call-{number}", "content": f"Result {number}: the terrier sleeps."},
    ]


def remembered(product: Product, user: str, *contents: str) -> list[str]:
    """Written through REST; their ids."""
    memories = [{"content": content, "memory_type": "semantic"} for content in contents]
    url = f"{product.api}/v1/memory"
    answer = httpx.post(url, params={"user_id": user}, json={"memories": memories}, timeout=30)
    assert answer.status_code == 201, answer.text
    page = httpx.get(url, params={"user_id": user, "limit": "100"}, timeout=30).json()["memories"]
    ids = {memory["content"]: memory["id"] for memory in page}
    return [ids[content] for content in contents]


def asked(
    product: Product, user: str, messages: Messages, config: dict[str, Any] | None = None, **headers: str
) -> httpx.Response:
    body = {"model": "m", "messages": messages, "memory_context": {"user_id": user}, "memory_config": config or {}}
    answer = httpx.post(f"{product.url}/v1/chat/completions", json=body, headers=headers, timeout=30)
    assert answer.status_code == 200
    return answer


def reached(upstream: RecordingUpstream) -> Messages:
    """The messages of the last chat, as they reached the upstream."""
    found: Messages = json.loads(upstream.last_chat().body)["messages"]
    return found


def sent(product: Product, upstream: RecordingUpstream, user: str, messages: Messages) -> Messages:
    """Nothing is learnt from them: only notes are looked at here."""
    in_time(lambda: asked(product, user, messages, {"auto_store": False}))
    return reached(upstream)


def notes_of(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages if str(message["content"]).startswith("<memory>")]


def test_the_calls_of_a_tool_loop_read_one_note_with_the_same_bytes(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    user, question = "looper", "What is my terrier called?"
    remembered(shared_product, user, "My terrier is called Quasimodo.")
    messages = [said("Good evening!"), heard("Hello."), said(question)]
    first = sent(shared_product, upstream, user, messages)
    [note] = notes_of(first)
    assert "Quasimodo" in note
    remembered(shared_product, user, "My terrier sleeps in the attic.")  # would change the note, were it searched again
    for number in range(3):
        messages += tool_traffic(number)
        call = sent(shared_product, upstream, user, messages)
        assert notes_of(call) == [note]
        assert call[: len(first)] == first


def test_a_deleted_memory_is_in_no_later_request_of_a_conversation_that_had_it(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    user, question = "regretter", "Where do I keep the key of my safe?"
    [key_id, _] = remembered(
        shared_product, user, "The key of my safe is under the aquarium.", "My violin was made in Cremona."
    )
    messages = [said(question)]
    assert any("aquarium" in note for note in notes_of(sent(shared_product, upstream, user, messages)))
    messages += [heard("Noted."), said("And where was my violin made?")]
    assert any("aquarium" in note for note in notes_of(sent(shared_product, upstream, user, messages)))
    forgotten = httpx.delete(f"{shared_product.api}/v1/memory/{key_id}", params={"user_id": user}, timeout=30)
    assert forgotten.status_code == 200, forgotten.text
    for follow in ("Tell me again: where do I keep the key of my safe?", "Where is my violin from, and the key?"):
        messages += [heard("Noted."), said(follow)]
        later = sent(shared_product, upstream, user, messages)
        assert "aquarium" not in str(later)
        assert "aquarium" not in str(sent(shared_product, upstream, user, [*messages, *tool_traffic(1)]))
    assert any("Cremona" in note for note in notes_of(later))


def test_what_an_edited_turn_said_is_gone_and_back_with_its_branch(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    user, opening = "writer of other beginnings", "Hello, I am new here."
    cat, dog = "My cat is called Mochi.", "My dog is called Rex."
    upstream.answer = "Hi."

    def ask(*messages: str) -> httpx.Response:
        """Messages of the user and the model in turn."""
        return asked(shared_product, user, [(said, heard)[n % 2](text) for n, text in enumerate(messages)])

    ask(opening)
    ask(opening, "Hi.", cat)
    eventually(lambda: cat in shared_product.memories(user))
    ask(opening, "Hi.", dog)
    eventually(lambda: cat not in shared_product.memories(user))
    assert shared_product.flush(user) == {"pending": 0, "failed": 0}
    assert shared_product.memories(user) == [dog]
    in_time(lambda: ask("What is the name of my cat?"))
    assert "Mochi" not in upstream.last_chat().body.decode()
    answer = in_time(lambda: ask("What is the name of my dog?"))
    assert answer.headers["x-memory-status"] == "used"
    assert "Rex" in upstream.last_chat().body.decode()
    ask(opening, "Hi.", cat, "Hi.", "Thank you!")
    eventually(lambda: cat in shared_product.memories(user) and dog not in shared_product.memories(user))


def history() -> Messages:
    """The beginning of a long chat, with a tool call in its middle."""
    messages = FIRST.messages()[: 1 + 2 * TURNS]
    messages[21:21] = tool_traffic(1)
    return messages


def state_of(messages: Messages) -> dict[str, Any]:
    """The state inside the client's system message; {} for a history that went through in full."""
    _, _, state = messages[0]["content"].partition("<conversation_so_far>")
    found: dict[str, Any] = json.loads(state[state.index("{") : state.rindex("}") + 1]) if state else {}
    return found


def compacted(
    product: Product, upstream: RecordingUpstream, user: str, question: str
) -> tuple[httpx.Response, Messages]:
    """The reply to a compacted request, and the messages that the upstream got for it."""
    config = {"compact": True}
    answered = heard("With oil.")
    messages = [*history(), said("How do I seal the deck?"), answered, said(question)]

    def tried() -> Any:
        asked(product, user, messages[:-2], config)  # a busy machine may pass it on before it is handed over
        answer, sent = asked(product, user, messages, config), reached(upstream)
        return (answer, sent) if state_of(sent) else None

    found: tuple[httpx.Response, Messages] = eventually(tried)
    return found


def test_a_long_history_is_replaced_by_its_state_and_the_last_turns(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    user = "long talker"
    answer, sent = compacted(shared_product, upstream, user, "And what is the budget for the workshop?")
    assert sent[0]["content"].startswith(history()[0]["content"])
    kept = [message for message in sent[1:] if not str(message["content"]).startswith("<memory>")]
    assert kept[-1]["content"] == "And what is the budget for the workshop?"
    full = [*history(), said("How do I seal the deck?"), heard("With oil."), kept[-1]]
    assert kept == full[-len(kept) :], "the last turns, verbatim"
    assert len(kept) < 20
    assert "7,400" in json.dumps(sent[: -len(kept)], ensure_ascii=False), "in the state, or in a note"
    shown = shared_product.receipt(answer, user)
    assert shown["signals"]["tokens_saved"] > 3_000
    assert shown["signals"]["compacted_messages"] > 80
    record = httpx.get(f"{shared_product.api}/v1/memory/export", params={"user_id": user}, timeout=30).text
    assert "conversation_so_far" not in record


def test_nobody_is_compacted_who_did_not_ask_for_it_and_a_header_may_ask(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    user = "switcher"
    compacted(shared_product, upstream, user, "And what does the deposit cost?")
    messages = [*history(), said("How do I seal the deck?"), said("And then?")]

    def is_compacted(config: dict[str, Any], **headers: str) -> bool:
        asked(shared_product, user, messages, config, **headers)
        assert "x-memory-compact" not in upstream.last_chat().headers
        return bool(state_of(reached(upstream)))

    assert not is_compacted({})
    assert not is_compacted({"compact": False}, **{"x-memory-compact": "on"})
    eventually(lambda: is_compacted({}, **{"x-memory-compact": "on"}))
