"""From settings to when a session is learnt: at once without a model, and when it is worth a call with one."""

from __future__ import annotations

import msgspec
import pytest

from memory.ports import LearnDue
from memory.settings import Settings
from memory.tuning import worker_settings

MODEL = {
    "model_role": "memory_extraction",
    "llm_endpoint": {"address": "127.0.0.1", "port": 8000},
    "llm_model_name": "qwen3",
}


def due(learn: dict[str, object] | None = None, *, has_model: bool = True, batch_size: int = 10) -> LearnDue:
    told = {
        "memory": {"extraction_batch_size": batch_size, "learn": learn or {}},
        "external_models": [MODEL] if has_model else [],
    }
    return worker_settings(msgspec.convert(told, Settings)).due


def test_verbatim_mode_waits_for_nothing() -> None:
    assert due(has_model=False) == LearnDue()
    assert due(has_model=False, batch_size=3).turns_at_once == 1


def test_with_a_model_a_session_is_due_after_ten_turns_or_thirty_seconds() -> None:
    assert due() == LearnDue(batch_turns_max=10, idle_seconds=30.0, turns_at_once=10, tokens_at_once=4_000)
    assert due(batch_size=3).turns_at_once == 3


def test_a_rewriting_model_alone_extracts_nothing() -> None:
    told = {"external_models": [MODEL | {"model_role": "memory_rewrite"}]}
    assert worker_settings(msgspec.convert(told, Settings)).due == LearnDue()


@pytest.mark.parametrize(("idle", "end", "expected"), [(5, 1800, 5), (3600, 1800, 1800), (60, 1, 1)])
def test_the_end_of_a_session_comes_however_long_the_debounce_is(idle: float, end: float, expected: float) -> None:
    assert due({"idle_seconds": idle, "session_end_seconds": end}).idle_seconds == expected


def test_who_says_zero_gets_at_once_with_a_model_too() -> None:
    assert due({"idle_seconds": 0}).idle_seconds == 0


def test_who_says_how_long_waits_in_verbatim_mode_too() -> None:
    assert due({"idle_seconds": 5}, has_model=False).idle_seconds == 5
