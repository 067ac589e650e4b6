"""As many searches run as will end in time, judged by how long they take; never none, and never in what cannot be."""

from __future__ import annotations

import pytest

from memory.recall.admission import ALWAYS, Admission

DEADLINE = 0.12


def learnt(*, each: float, at_once_max: int = 100) -> Admission:
    """One that has seen many searches, alone, that took that long."""
    admission = Admission(at_once_max=at_once_max, deadline_seconds=DEADLINE)
    for _ in range(100):
        with admission.place() as place:
            place.seconds, place.is_complete = each, True
    return admission


def admitted(admission: Admission, *, seconds_left: float = DEADLINE) -> int:
    """How many it lets in at a time."""
    while admission.has_room(seconds_left):
        admission.in_flight += 1
    return admission.in_flight


def test_as_many_are_let_in_as_end_within_their_share_of_the_deadline() -> None:
    assert admitted(learnt(each=0.01)) == 8
    assert admitted(learnt(each=0.02)) == 4
    assert admitted(learnt(each=0.001, at_once_max=16)) == 16


def test_whoever_has_less_time_left_finds_less_room() -> None:
    assert admitted(learnt(each=0.01), seconds_left=DEADLINE / 2) == 4
    assert admitted(learnt(each=0.01), seconds_left=0.0) == 0
    assert admitted(learnt(each=0.01), seconds_left=-1.0) == 0


def test_however_slow_it_looks_some_are_let_in_so_that_it_learns_when_it_is_over() -> None:
    admission = learnt(each=1.0)
    assert admitted(admission) == ALWAYS
    admission.in_flight = 0
    for _ in range(100):
        with admission.place() as place:
            place.seconds, place.is_complete = 0.01, True
    assert admitted(admission) == 8


@pytest.mark.parametrize("seconds", [0.0, 0.001])
def test_one_that_failed_quickly_tells_nothing(seconds: float) -> None:
    admission = learnt(each=0.02)
    for _ in range(100):
        with admission.place() as place:
            place.seconds = seconds
    assert admitted(admission) == 4


def test_what_ran_beside_others_counts_for_its_part_only() -> None:
    admission = Admission(at_once_max=100, deadline_seconds=DEADLINE)
    for _ in range(100):
        with admission.place(), admission.place(), admission.place(), admission.place() as place:
            place.seconds, place.is_complete = 0.04, True
    assert admitted(admission) == 8
