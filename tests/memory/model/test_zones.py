"""On which day something was said: in the zone that a chat names, in that of its time, or in the configured one."""

from __future__ import annotations

from datetime import datetime

import pytest

from memory.model import Memory
from memory.model.days import day_text
from memory.model.zones import UTC_ZONES, Zones
from memory.recall.notes.injection import newest_first, note_label

EVENING = datetime.fromisoformat("2025-06-03T23:30:00-08:00").timestamp()


@pytest.mark.parametrize(
    ("name", "hours"),
    [("America/Anchorage", -8), ("-08:00", -8), ("UTC-8", -8), ("Asia/Kolkata", 5.5), ("+0530", 5.5), ("UTC", 0)],
)
def test_a_zone_is_known_by_its_name_or_its_offset(name: str, hours: float) -> None:
    assert UTC_ZONES.is_known(name)
    assert UTC_ZONES.offset(EVENING, name) == hours * 3_600


@pytest.mark.parametrize("name", ["Europe/Atlantis", "+25:00", "../../etc/passwd", "\0", "x" * 9_999, "Europe"])
def test_one_that_nobody_knows_is_as_good_as_none(name: str) -> None:
    assert not UTC_ZONES.is_known(name)
    assert UTC_ZONES.offset(EVENING, name) is None
    assert Zones("Europe/Berlin").offset(EVENING, name) == Zones("Europe/Berlin").offset(EVENING) == 7_200


def test_a_line_has_the_day_of_its_user() -> None:
    said = Memory("m", "u", "My son was born today", EVENING, EVENING, EVENING)
    assert note_label(said) == "- [2025-06-04]"
    here = Memory("m", "u", "My son was born today", EVENING, EVENING, EVENING, utc_offset=-8 * 3_600)
    assert note_label(here) == "- [2025-06-03]"
    assert day_text(1e18) == "date unknown"


def test_of_lines_about_one_thing_the_newest_takes_the_first_place() -> None:
    def dose(name: str, days: float, attribute: str = "medication") -> Memory:
        return Memory(name, "u", f"I take {name}", 0.0, 0.0, days * 86_400, attribute=attribute)

    memories = [dose("a", 1), dose("x", 9, "none"), dose("b", 3), dose("y", 1, "none"), dose("c", 2)]
    assert [one.id for one in newest_first(memories)] == ["b", "x", "c", "y", "a"]
