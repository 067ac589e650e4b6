"""Time zones of users: their day begins and ends there, not in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

ZONES_REMEMBERED = 512  # there are some 600 names, and clients may send any text
HOURS_MAX = 14
HOUR_MINUTES = 60


@lru_cache(ZONES_REMEMBERED)
def zone_named(name: str) -> tzinfo | None:
    """By its name in the IANA's list, or by its offset, as +02:00; None if nobody knows it."""
    if (away := _given(name[3:] if name.startswith(("UTC", "GMT")) else name)) is not None:
        return timezone(away) if abs(away) <= timedelta(hours=HOURS_MAX) else None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # `ZoneInfoNotFoundError` is a `LookupError`
        return None


def _given(offset: str) -> timedelta | None:
    """What "+2", "+0230" or "-02:30" say; None for any other text."""
    hours, colon, minutes = offset[1:].partition(":")
    if not colon:
        hours, minutes = (hours[:-2], hours[-2:]) if len(hours) > 2 else (hours, "00")
    is_time = len(hours) in (1, 2) and len(minutes) == 2 and (hours + minutes).isdecimal()
    if offset[:1] not in ("+", "-") or not is_time or int(minutes) >= HOUR_MINUTES:
        return None
    away = timedelta(hours=int(hours), minutes=int(minutes))
    return away if offset[0] == "+" else -away


@dataclass(frozen=True, slots=True)
class Zones:
    """`default`: the name of the zone of users whose own is not known."""

    default: str = "UTC"

    def is_known(self, name: str) -> bool:
        return not name or zone_named(name) is not None

    def offset(self, at: float, name: str = "") -> int | None:
        """Seconds east of UTC at that moment (Unix seconds) in the zone of that name, or in the default.

        None if that zone is not known and the default is UTC: then nothing is known of the user's day.
        """
        zone = (zone_named(name) if name else None) or (None if self.default == "UTC" else zone_named(self.default))
        try:
            away = None if zone is None else datetime.fromtimestamp(at, zone).utcoffset()
        except (ValueError, OverflowError, OSError):
            return None
        return None if away is None else int(away.total_seconds())


UTC_ZONES = Zones()
