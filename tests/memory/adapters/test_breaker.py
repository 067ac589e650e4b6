"""A part that is away is asked rarely, by one call at a time, and trusted again after one good answer."""

from __future__ import annotations

import pytest

from memory.adapters.breaker import Breaker
from memory.errors import Unavailable


def test_calls_that_are_slow_together_count_as_one() -> None:
    breaker = Breaker("part", failures_max=2, rest_seconds=1.0)
    for late in range(10):
        breaker.failed(10.0 + late / 10, reason="slow", is_certain=False, began_at=9.9 + late / 1_000)
    breaker.admit(11.0)
    breaker.failed(11.1, reason="slow", is_certain=False, began_at=11.0)
    with pytest.raises(Unavailable):
        breaker.admit(11.2)


def test_a_try_that_failed_leaves_room_for_the_next_one_after_its_rest() -> None:
    breaker = Breaker("part", rest_seconds=1.0)
    breaker.failed(10.0, reason="refused", is_certain=True)
    breaker.admit(11.0, seconds=30.0)
    breaker.failed(12.0, reason="slow", is_certain=False, began_at=11.0)
    with pytest.raises(Unavailable, match="slow"):
        breaker.admit(12.9)
    breaker.admit(13.0)
