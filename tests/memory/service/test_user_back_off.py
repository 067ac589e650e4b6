"""Users whose memories could not be changed pause, with growing pauses; they are not remembered for ever."""

from __future__ import annotations

from memory.service.user_back_off import BACK_OFF_SECONDS, FORGOTTEN_SECONDS, UserBackOff


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_pauses_grow_until_it_succeeds() -> None:
    clock = Clock()
    back_off = UserBackOff(clock)
    back_off.begin("ann")
    assert back_off.waiting() == {"ann"}
    clock.now += BACK_OFF_SECONDS
    assert back_off.waiting() == set()
    back_off.begin("ann")
    clock.now += BACK_OFF_SECONDS
    assert back_off.waiting() == {"ann"}
    back_off.succeed("ann")
    assert back_off.waiting() == set()
    back_off.begin("ann")
    clock.now += BACK_OFF_SECONDS
    assert back_off.waiting() == set()


def test_a_user_whose_work_others_did_is_dropped() -> None:
    clock = Clock()
    back_off = UserBackOff(clock)
    for _ in range(3):
        back_off.begin("ann")
    back_off.begin("bob")
    clock.now += FORGOTTEN_SECONDS + 60
    back_off.begin("bob")
    assert back_off.waiting() == {"bob"}
    assert set(back_off._seconds) == {"bob"}
    back_off.begin("ann")
    clock.now += BACK_OFF_SECONDS
    assert "ann" not in back_off.waiting(), "its pauses begin again"
