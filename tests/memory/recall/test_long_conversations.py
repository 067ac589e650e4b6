"""A conversation of many MiB keeps its notes where they stood, as a short one does, and holds no other stream up."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from recall_rig import Rig, request_with, rigged

from memory.model import RecallStatus, Scope
from memory.recall import pipeline
from memory.recall.pipeline import RecallOutcome, RecallSettings

PATIENT = RecallSettings(deadline_seconds=5.0)  # what is shown is what goes along, not how fast a busy machine is
MIB = 1 << 20
ASKED = {"role": "user", "content": "Where is my kayak stored?"}
ANSWERED = {"role": "assistant", "content": "At the boathouse."}
ON = {"role": "user", "content": "And what did that cost?"}


def history_of(size: int) -> list[dict[str, Any]]:
    """Messages by turns that make a body of about so many bytes."""
    roles = ("user", "assistant")
    return [
        {"role": roles[n % 2], "content": f"Page {n}. " + "All work and no play. " * 450} for n in range(size // 10_000)
    ]


async def recalled(rig: Rig, *messages: dict[str, Any]) -> RecallOutcome:
    return await rig.recall.recall(Scope("u"), request_with(messages))


async def test_a_note_of_a_conversation_of_five_mib_is_put_back_where_it_stood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "KEEP_SECONDS_MAX", PATIENT.deadline_seconds)
    history = history_of(5 * MIB)
    async with rigged(tmp_path, PATIENT) as rig:
        first = await recalled(rig, *history, ASKED)
        assert (first.status, first.reason) == (RecallStatus.USED, "found")
        later = await recalled(rig, *history, ASKED, ANSWERED, ON)
        assert later.notes[0] == first.notes[0]
        assert later.notes[0].before == len(history)


async def test_what_was_said_otherwise_ten_pages_ago_is_another_conversation(tmp_path: Path) -> None:
    history = history_of(2 * MIB)
    async with rigged(tmp_path, PATIENT) as rig:
        await recalled(rig, *history, ASKED)
        history[10] = {**history[10], "content": history[10]["content"] + "!"}
        other = await recalled(rig, *history, ASKED, ANSWERED, {"role": "user", "content": "thanks"})
        assert (other.status, other.notes) == (RecallStatus.SKIPPED, ())


@pytest.mark.parametrize(("size", "is_threaded"), [(20_000, False), (2 * MIB, True)])
async def test_only_what_takes_long_to_hash_is_hashed_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, *, is_threaded: bool
) -> None:
    loops: list[bool] = []
    note_keys = pipeline.note_keys

    def watched(*arguments: Any) -> dict[int, str]:
        loops.append(threading.current_thread() is threading.main_thread())
        return note_keys(*arguments)

    monkeypatch.setattr(pipeline, "note_keys", watched)
    async with rigged(tmp_path, PATIENT) as rig:
        loops.clear()
        await recalled(rig, *history_of(size), ASKED)
    assert loops == [not is_threaded]
