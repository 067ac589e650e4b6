"""Raw words: rows with what the user said, as said, for clients that query the collection. They are no memories.

A row has the status `raw`, which no search, note, working set, list or count of memories includes. Its id derives from
the turn, so that forgetting a memory or a turn finds the rows of that turn. Pure.
"""

from __future__ import annotations

import uuid

ROWS_PER_TURN_MAX = 9  # a recorded message has at most 65,536 characters, a row 8,000

_IDS = uuid.UUID("5d0e3c52-9a0b-5f0e-8d1f-6a7c3f0e2b94")


def raw_row_ids(user_id: str, turn_id: str) -> list[str]:
    """The ids of all rows that a turn may have, in order."""
    numbers = map(str, range(ROWS_PER_TURN_MAX))
    return [str(uuid.uuid5(_IDS, "\x1f".join((user_id, turn_id, number)))) for number in numbers]
