"""What notes cost a model server's prefix cache: blocks of the client's own that are still hit, over thirty turns.

`python bench/prefix.py`; bar: with the default placement 95 % of the blocks that the same conversation hits without
memory, and at most 2,000 tokens of notes. Counted, not timed: the product's own planning and editing, no server.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from rich.progress import track
from rig import report  # first: it finds the modules that the tests share

from memory.adapters.notes_sqlite import SqliteNoteBook
from memory.adapters.sqlite_database import SqliteDatabase
from memory.model import Placement

from prefix_cache import BLOCK_TOKENS, Chat, Figures, known_memories, measured, search_in, thirty_exchanges  # isort: skip

RATIO_BAR = 0.95
NOTE_TOKENS_BAR = 2_000
VARIANTS: dict[str, tuple[Placement | None, bool]] = {
    "no memory": (None, False),
    "before_last_user": (Placement.BEFORE_LAST_USER, False),
    "system": (Placement.SYSTEM, False),
    "newest question only": (Placement.BEFORE_LAST_USER, True),  # what it would be without a note book
}


async def figures_of(placement: Placement | None, *, is_moving: bool) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        async with SqliteDatabase(Path(folder) / "turns.sqlite") as database:
            search = search_in(known_memories())
            chat = Chat(SqliteNoteBook(database), search, placement=placement, is_moving=is_moving)
            return await measured(chat, thirty_exchanges())


def main() -> int:
    figures = {
        name: asyncio.run(figures_of(placement, is_moving=is_moving))
        for name, (placement, is_moving) in track(VARIANTS.items(), description="conversations")
    }
    without = figures["no memory"].blocks()
    result = {
        name: {
            "blocks_hit": one.blocks(),
            "ratio": round(one.blocks() / without, 4),
            "notes": one.notes,
            "note_tokens": one.note_tokens,
        }
        for name, one in figures.items()
    }
    rows = [(name, *one.values()) for name, one in result.items()]
    bars = {"ratio": RATIO_BAR, "note_tokens": NOTE_TOKENS_BAR}
    report(
        "prefix",
        {"turns": len(thirty_exchanges()), "block_tokens": BLOCK_TOKENS, "bars": bars, **result},
        rows,
        ["placement", "blocks hit", "ratio", "notes at the end", "their tokens"],
    )
    ours = result["before_last_user"]
    return 0 if ours["ratio"] >= RATIO_BAR and ours["note_tokens"] <= NOTE_TOKENS_BAR else 1


if __name__ == "__main__":
    sys.exit(main())
