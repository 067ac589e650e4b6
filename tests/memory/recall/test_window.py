"""The window is not ours to fill: notes shrink, then go, before prompt, notes and answer exceed the model's window."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from api_shapes import read_completion, read_response
from hypothesis import given
from hypothesis import strategies as st
from recall_rig import request_with, rigged
from token_counts import counted_tokens

from memory.chat.completions import read_chat_request
from memory.chat.token_estimate import IMAGE_TOKENS, answer_limit, estimated_prompt, estimated_tokens
from memory.model import ModelWindow, PastNote, RecallStatus, Scope
from memory.recall import known_windows
from memory.recall.known_windows import KnownWindows
from memory.recall.notes.past_notes import NOTE_TOKENS_MARGIN, CarriedNotes, room_for_notes
from memory.recall.stages import RecallSettings

SETTINGS = RecallSettings(deadline_seconds=30.0, answer_reserve_tokens=500)
ASKED = {"role": "user", "content": "Where is my kayak stored?"}
count = counted_tokens()

PROSE = {
    "en": "We spent the afternoon comparing three quotes for the roof, and in the end the second one looked fairest.",
    "de": "Die Hausverwaltung hat angekündigt, dass die Heizungsanlage im kommenden Frühjahr ausgetauscht wird.",
    "code": "for row in rows:\n    if row['price'] >= 12.5:\n        total += row['price'] * row['count']\n",
    "numbers": "Order 4471-2093-118, 17 items, 1,284.50 EUR, due 2026-03-14 at 15:30, invoice INV-2026-00417.",
}


@pytest.mark.parametrize("kind", sorted(PROSE))
def test_the_estimate_of_a_text_is_rather_too_high_than_too_low(kind: str) -> None:
    """Against the packaged tokenizer, which splits text about as finely as the tokenizers of chat models."""
    floor = {"en": 1.0, "de": 0.75, "code": 0.8, "numbers": 0.9}[kind]
    assert floor * count(PROSE[kind]) <= estimated_tokens(PROSE[kind]) <= 1.7 * count(PROSE[kind])


@given(st.text(max_size=300))
def test_no_text_is_estimated_above_its_bytes(text: str) -> None:
    assert 0 <= estimated_tokens(text) <= len(text.encode(errors="replace")) + 1e-3


def test_a_text_costs_what_its_characters_cost_escaped_or_not_in_any_api() -> None:
    message = {"role": "user", "content": "你好，我们决定三月十四日开会。" * 20}
    plain = read_chat_request(json.dumps({"model": "m", "messages": [message]}, ensure_ascii=False).encode())
    assert estimated_prompt(read_completion(message)) == estimated_prompt(plain)
    other = read_response([message], max_output_tokens=700)
    assert (answer_limit(other), estimated_prompt(other)) == (700, pytest.approx(estimated_prompt(plain)))


def test_tools_tool_traffic_and_images_are_part_of_the_prompt() -> None:
    plain = estimated_prompt(read_completion(ASKED))
    tool = {"type": "function", "function": {"name": "f", "description": "Looks things up. " * 50}}
    assert estimated_prompt(read_completion(ASKED, tools=[tool])) > plain + 200
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"arguments": "{}" * 300}}]}
    assert estimated_prompt(read_completion(ASKED, call)) > plain + 300
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}}
    shown = estimated_prompt(read_completion({"role": "user", "content": [picture]}))
    assert IMAGE_TOKENS <= shown <= 3 * IMAGE_TOKENS, "its bytes are no tokens"


@pytest.mark.parametrize(
    ("more", "limit"),
    [
        ({}, None), ({"max_tokens": 300}, 300), ({"max_completion_tokens": 200, "max_tokens": 300}, 300),
        ({"max_output_tokens": 700}, 700), ({"max_tokens": None}, None), ({"max_tokens": "300"}, None),
        ({"max_tokens": -5}, None), ({"max_tokens": 10**30}, None),
    ],
)  # fmt: skip
def test_the_answer_takes_what_the_request_reserves_for_it(more: dict[str, object], limit: int | None) -> None:
    assert answer_limit(read_completion(ASKED, **more)) == limit


@given(length=st.integers(1, 60_000), window=st.integers(1, 40_000), limit=st.none() | st.integers(1, 50_000))
def test_prompt_notes_and_answer_stay_within_the_window(length: int, window: int, limit: int | None) -> None:
    more = {} if limit is None else {"max_tokens": limit}
    request = read_completion({"role": "user", "content": "word " * (length // 5)}, **more)
    room = room_for_notes(request, ModelWindow(window), answer_reserve=500)
    if room is None:
        return
    total = estimated_prompt(request) + room * NOTE_TOKENS_MARGIN + (500 if limit is None else limit)
    assert room == 0 or total <= window


@given(st.lists(st.integers(1, 500), max_size=6), st.integers(0, 2_000), st.integers(0, 400))
def test_past_notes_that_do_not_fit_go_newest_first(sizes: list[int], most: int, held: int) -> None:
    notes = {2 * at: PastNote(f"note {at}", (f"m{at}",), size) for at, size in enumerate(sizes)}
    at_server = (PastNote("there", ("s",), held),) if held else ()
    carried = CarriedNotes(notes, 2 * len(sizes), "k", is_settled=False, at_server=at_server).within(most)
    assert list(carried.notes) == list(notes)[: len(carried.notes)]
    assert not carried.notes or held + sum(note.tokens for note in carried.notes.values()) <= most
    dropped = list(notes.values())[len(carried.notes) :]
    assert not dropped or held + sum(n.tokens for n in carried.notes.values()) + dropped[0].tokens > most
    assert carried.room(budget=800, tokens=count) <= max(0, most)


async def test_a_note_goes_along_only_where_the_window_has_room(tmp_path: Path) -> None:
    history = [{"role": "user", "content": "Tell me about rivers."}, {"role": "assistant", "content": "Long. " * 400}]
    used = int(estimated_prompt(request_with([*history, ASKED])))
    async with rigged(tmp_path, SETTINGS) as rig:
        for room, expected in ((2_000, RecallStatus.USED), (30, RecallStatus.EMPTY)):
            rig.recall._review._windows.learn("m", used + 500 + room)
            assert (await rig.recall.recall(Scope("u"), request_with([*history, ASKED]))).status is expected, room
        found = await rig.recall.recall(Scope("u"), request_with([*history, ASKED, {**ASKED, "content": "Go on."}]))
        assert found.notes == (), "a past note goes before the request would fail"


class OneSource:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.found: ModelWindow | None = ModelWindow(4096)

    async def window(self, model: str) -> ModelWindow | None:
        self.asked.append(model)
        await asyncio.sleep(0)
        return self.found


async def settled() -> None:
    """What runs in the background waits for nothing but its turns."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_window_is_found_out_in_the_background_and_asked_for_again_when_it_may_have_changed() -> None:
    now, source = 1_000.0, OneSource()
    windows = KnownWindows(source, clock=lambda: now)
    windows.learn("refused", 512)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(windows.run())
        assert [windows.glance("m"), windows.glance("m")] == [None, None]
        await settled()
        assert (windows.glance("m"), source.asked) == (ModelWindow(4096), ["m"])
        now, source.found = now + known_windows.KNOWN_SECONDS, None
        assert windows.glance("m") == ModelWindow(4096), "until the server has answered again"
        await settled()
        assert (windows.glance("m"), source.asked) == (ModelWindow(4096), ["m", "m"])
        now += known_windows.UNKNOWN_SECONDS
        windows.glance("m")
        await settled()
        assert source.asked == ["m", "m", "m"]
        source.found = ModelWindow(4096)
        assert windows.glance("refused") == ModelWindow(512)
        await settled()
        assert windows.glance("refused") == ModelWindow(4096), "the server's own word replaces what was learnt"
        running.cancel()


async def test_a_refusal_for_length_teaches_the_window_and_a_repeated_one_corrects_the_estimate() -> None:
    now, source = 1_000.0, OneSource()
    source.found = None
    windows = KnownWindows(source, clock=lambda: now)
    assert windows.glance("m") is None
    windows.learn("m", 4096)
    assert windows.glance("m") == ModelWindow(4096)
    windows.learn("m", 4096)
    assert windows.glance("m") == ModelWindow(4096, known_windows.CORRECTION_STEP)
    for _ in range(20):
        windows.learn("m", 4096)
    assert windows.glance("m") == ModelWindow(4096, known_windows.CORRECTION_MAX)
    windows.learn("m", 8192)
    assert windows.glance("m") == ModelWindow(8192, known_windows.CORRECTION_MAX)
    now += known_windows.LEARNT_SECONDS
    assert windows.glance("m") is None, "the model behind a name may be replaced"


def test_clients_cannot_fill_what_is_learnt_nor_overrule_the_setting() -> None:
    windows = KnownWindows(OneSource(), clock=lambda: 1_000.0)
    windows.learn("m" * 257, 512)
    windows.learn("", 512)
    for number in range(known_windows.MODELS_MAX + 1):
        windows.learn(f"m{number}", 512)
    assert len(windows._known) == known_windows.MODELS_MAX
    fixed = KnownWindows(source := OneSource(), clock=lambda: 0.0, fixed=2048)
    fixed.learn("m", 512)
    assert (fixed.glance("m"), source.asked) == (ModelWindow(2048), [])
