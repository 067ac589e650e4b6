"""What counts as waiting: the time beyond the shortest, whatever the clocks of Envoy and the filter say."""

from __future__ import annotations

import pytest

from extproc.stream_waits import DRIFT, StreamWaits

NOW = 1_780_000_000.0


@pytest.mark.parametrize("skew", [0.0, 0.4, -0.4, 3600.0, -3600.0])
def test_a_chat_waited_for_what_it_took_beyond_the_shortest(skew: float) -> None:
    waits = StreamWaits()
    took = [0.001, 0.002, 0.3, 0.05, 0.001]
    found = [waits.waited(f"{NOW + at:.6f}", now=NOW + at + one + skew) for at, one in enumerate(took)]
    assert found == pytest.approx([0.0, 0.001, 0.299, 0.049, 0.0], abs=5 * DRIFT)


def test_the_shortest_is_forgotten_as_slowly_as_clocks_drift() -> None:
    waits = StreamWaits()
    waits.waited(f"{NOW:.6f}", now=NOW + 0.001)
    minute = waits.waited(f"{NOW + 60:.6f}", now=NOW + 60.1)
    assert 0.08 < minute < 0.099, "an overload of a minute is one still"
    hour = waits.waited(f"{NOW + 3600:.6f}", now=NOW + 3600.1)
    assert hour == 0.0, "what lasts for an hour is the distance of two clocks"


@pytest.mark.parametrize("began", ["", "-", "yesterday", "nan", "inf", "%START_TIME(%s.%6f)%", b"\xff", b""])
def test_who_does_not_say_when_it_began_has_not_waited(began: str | bytes) -> None:
    waits = StreamWaits()
    waits.waited(f"{NOW:.6f}", now=NOW)
    assert waits.waited(began, now=NOW + 5) == 0.0
    assert waits.waited(f"{NOW + 5:.6f}", now=NOW + 5.2) == pytest.approx(0.2, abs=0.01), "and spoils nothing"
