"""Which conversations are held out: decided by nothing but salt and unit, in the share that was set."""

from __future__ import annotations

import pytest

from memory.model.arms import Arm, HoldoutRule

UNITS = [f"user {number}" for number in range(4_000)]


@pytest.mark.parametrize(("share", "most_off"), [(0.05, 0.03), (0.5, 0.03), (0.9, 0.03), (1.0, 0.0)])
def test_about_that_share_of_units_is_held_out_and_at_0_nothing_is_compared(share: float, most_off: float) -> None:
    held_out = sum(HoldoutRule(share).arm_of(unit) is Arm.HELD_OUT for unit in UNITS)
    assert held_out / len(UNITS) == pytest.approx(share, abs=most_off)
    assert HoldoutRule(share).arm_of("\ud800") in tuple(Arm), "a lone surrogate has an arm"
    assert {HoldoutRule(0.0).arm_of(unit) for unit in UNITS} == {None}


def test_the_same_unit_stays_in_its_arm_and_a_greater_share_only_adds_units() -> None:
    small, large = HoldoutRule(0.1, "may"), HoldoutRule(0.3, "may")
    for unit in UNITS[:500]:
        assert small.arm_of(unit) is HoldoutRule(0.1, "may").arm_of(unit)
        assert small.arm_of(unit) is Arm.NOTED or large.arm_of(unit) is Arm.HELD_OUT


def test_another_salt_holds_out_others() -> None:
    may, june = ({u for u in UNITS if HoldoutRule(0.5, salt).arm_of(u) is Arm.HELD_OUT} for salt in ("may", "june"))
    assert len(may & june) / len(may) == pytest.approx(0.5, abs=0.05)
