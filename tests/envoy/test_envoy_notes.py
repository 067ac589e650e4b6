"""Notes in the requests of one conversation, through the whole product: the same bytes again, or nowhere any more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx
from prefix_cache import BLOCK_TOKENS, PrefixCache, answered, known_memories, rendered, thirty_exchanges
from product import Product, in_time
from upstream import RecordingUpstream

TOOL_CALLS = 5
PROMISED_RATIO = 0.95
PROMISED_TOKENS = 2_000
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


def forgotten(product: Product, user: str, memory_id: str) -> None:
    answer = httpx.delete(f"{product.api}/v1/memory/{memory_id}", params={"user_id": user}, timeout=30)
    assert answer.status_code == 200, answer.text


def sent(
    product: Product, upstream: RecordingUpstream, user: str, messages: Messages, *, enabled: bool = True
) -> Messages:
    """The messages as they reached the upstream. Nothing is learnt from them: only notes are looked at here."""
    body = {
        "model": "m",
        "messages": messages,
        "memory_context": {"user_id": user},
        "memory_config": {"enabled": enabled, "auto_store": False},
    }
    answer = in_time(lambda: httpx.post(f"{product.url}/v1/chat/completions", json=body, timeout=30))
    assert answer.status_code == 200
    found: Messages = json.loads(upstream.last_chat().body)["messages"]
    return found


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
    for number in range(TOOL_CALLS):
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
    forgotten(shared_product, user, key_id)
    for follow in ("Tell me again: where do I keep the key of my safe?", "Where is my violin from, and the key?"):
        messages += [heard("Noted."), said(follow)]
        later = sent(shared_product, upstream, user, messages)
        assert "aquarium" not in str(later)
        assert "aquarium" not in str(sent(shared_product, upstream, user, [*messages, *tool_traffic(1)]))
    assert any("Cremona" in note for note in notes_of(later))


def test_an_edited_history_carries_no_note_of_the_branch_it_left(
    shared_product: Product, upstream: RecordingUpstream
) -> None:
    user, question = "editor", "What is my parrot called?"
    remembered(shared_product, user, "My parrot is called Esmeralda.")
    follow = [heard("Noted."), said("Thanks!")]
    [note] = notes_of(sent(shared_product, upstream, user, [said(question)]))
    assert notes_of(sent(shared_product, upstream, user, [said(question), *follow])) == [note]
    assert notes_of(sent(shared_product, upstream, user, [said(question), heard("Another answer."), said("Thanks!")]))
    edited = [said("What is a comet made of?"), *follow]
    assert notes_of(sent(shared_product, upstream, user, edited)) == []
    assert notes_of(sent(shared_product, upstream, "somebody else", [said(question), *follow])) == []


def test_thirty_turns_keep_the_client_s_prefix(shared_product: Product, upstream: RecordingUpstream) -> None:
    user = "talker"
    contents = [memory.content for memory in known_memories()]
    for start in range(0, len(contents), 50):
        memories = [{"content": content, "memory_type": "semantic"} for content in contents[start : start + 50]]
        answer = httpx.post(
            f"{shared_product.api}/v1/memory", params={"user_id": user}, json={"memories": memories}, timeout=60
        )
        assert answer.status_code == 201, answer.text
    with_memory, last = hits(shared_product, upstream, user, enabled=True)
    without, _ = hits(shared_product, upstream, user, enabled=False)
    assert with_memory >= PROMISED_RATIO * without
    notes = notes_of(last)
    assert len(notes) >= 3
    assert sum(not token.is_client_s for token in rendered(last, notes)) <= PROMISED_TOKENS


def hits(product: Product, upstream: RecordingUpstream, user: str, *, enabled: bool) -> tuple[int, Messages]:
    """Blocks of the client's own that a prefix cache would have had, over the conversation; and the last prompt."""
    cache, messages, found, prompt_messages = PrefixCache(), [{"role": "system", "content": "Be brief."}], 0, []
    for question, answer in thirty_exchanges():
        messages.append(said(question))
        prompt_messages = sent(product, upstream, user, messages, enabled=enabled)
        prompt = rendered(prompt_messages, notes_of(prompt_messages))
        found += sum(token.is_client_s for token in cache.cached(prompt)) // BLOCK_TOKENS
        cache.add([*prompt, *answered(answer)])
        messages.append(heard(answer))
    return found, prompt_messages
