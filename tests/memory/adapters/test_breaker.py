"""A part that is away is asked rarely, by one call at a time, and trusted again after one good answer."""

from __future__ import annotations

import pytest

from memory.adapters.breaker import Breaker
from memory.errors import Unavailable


def test_one_slow_answer_is_no_outage_but_three_in_a_row_are() -> None:
    breaker = Breaker("part", failures_max=3, rest_seconds=1.0)
    for _ in range(2):
        breaker.failed(10.0, reason="slow", is_certain=False)
    breaker.succeeded()
    for now in (11.0, 12.0):
        breaker.failed(now, reason="slow", is_certain=False)
        breaker.admit(now)
    breaker.failed(13.0, reason="slow", is_certain=False)
    with pytest.raises(Unavailable):
        breaker.admit(13.0)


def test_calls_that_are_slow_together_count_as_one() -> None:
    breaker = Breaker("part", failures_max=2, rest_seconds=1.0)
    for late in range(10):
        breaker.failed(10.0 + late / 10, reason="slow", is_certain=False, began_at=9.9 + late / 1_000)
    breaker.admit(11.0)
    breaker.failed(11.1, reason="slow", is_certain=False, began_at=11.0)
    with pytest.raises(Unavailable):
        breaker.admit(11.2)


def test_while_it_rests_one_call_at_a_time_may_try_and_the_others_fail_at_once() -> None:
    breaker = Breaker("part", rest_seconds=1.0)
    breaker.failed(10.0, reason="refused", is_certain=True)
    breaker.admit(11.0, seconds=30.0)  # which it may take
    for now in (11.1, 12.5, 40.9):
        with pytest.raises(Unavailable, match="part is unavailable: refused"):
            breaker.admit(now)
    breaker.admit(41.0, seconds=30.0)  # whoever tried went away without a word
    breaker.failed(42.0, reason="slow", is_certain=False, began_at=41.0)
    with pytest.raises(Unavailable, match="slow"):
        breaker.admit(42.9)
    breaker.admit(43.0)
    with pytest.raises(Unavailable):
        breaker.admit(43.1)
    breaker.succeeded()
    for _ in range(2):
        breaker.admit(43.2)
