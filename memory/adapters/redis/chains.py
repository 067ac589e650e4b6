"""Exchanges that later requests may continue, on Redis, where all filters find them. The limits are those of SQLite.

A client may continue within a millisecond of an answer: until a link is written, this process finds it in memory.
"""

from __future__ import annotations

PENDING_MAX = 1_000  # of this process; usually written within milliseconds
