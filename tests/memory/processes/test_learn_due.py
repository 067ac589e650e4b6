"""From settings to when a session is worth a model's call. What the trained reader reads waits for nothing anyway."""

from __future__ import annotations

import msgspec
import pytest

from memory.ports import LearnDue
from memory.processes.from_settings import worker_settings
from memory.settings import Settings


def due(learn: dict[str, object] | None = None, *, batch_size: int = 10) -> LearnDue:
    told = {"memory": {"extraction_batch_size": batch_size, "learn": learn or {}}}
    return worker_settings(msgspec.convert(told, Settings)).due


def test_a_session_is_due_after_ten_turns_or_thirty_seconds() -> None:
    assert due() == LearnDue(batch_turns_max=10, idle_seconds=30.0, turns_at_once=10, tokens_at_once=4_000)


def test_the_batch_size_is_how_many_turns_are_worth_a_call_and_the_most_of_one() -> None:
    assert (due(batch_size=3).turns_at_once, due(batch_size=3).batch_turns_max) == (3, 3)


def test_so_many_tokens_as_the_settings_say_are_worth_a_call() -> None:
    assert due({"buffer_tokens": 100}).tokens_at_once == 100


@pytest.mark.parametrize(("idle", "end", "expected"), [(5, 1800, 5), (3600, 1800, 1800), (60, 1, 1)])
def test_the_end_of_a_session_comes_however_long_the_debounce_is(idle: float, end: float, expected: float) -> None:
    assert due({"idle_seconds": idle, "session_end_seconds": end}).idle_seconds == expected


def test_who_says_zero_gets_each_turn_learnt_at_once() -> None:
    assert due({"idle_seconds": 0}) == LearnDue()
