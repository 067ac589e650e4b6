"""Measures compaction on chats of two hundred turns: tokens, what is still answerable, and the prefix cache.

`python bench/compaction.py`. The product's recall, learning and compaction run in one process with the packaged models,
without a server. Names, numbers and decisions are planted in each chat, and each is asked for after the last turn; it
counts as answerable if the prompt holds every string of its answer, in the state, in a note or in the kept turns.
`ratio` is the share of the blocks of 16 tokens of the last fifty prompts, without the newest question, that a prefix
cache finds.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from report import Bar, Report, Sheet, bench_parser

from memory.processes.composition import open_embedder
from memory.settings.loader import from_process

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from compacted_chat import long_chat_rig, measured  # isort: skip
from long_chats import FIRST, TURNS  # isort: skip
from second_long_chat import SECOND  # isort: skip

BARS = (
    Bar("tokens of the prompt after 200 turns", at_most=1_000),
    Bar("planted items that are not answerable", at_most=0),
    Bar("ratio", at_least=0.9),
)


async def measure() -> dict[str, dict[str, Any]]:
    settings = from_process(None, {})
    found: dict[str, dict[str, Any]] = {}
    async with open_embedder(settings) as embedder:
        for chat in (FIRST, SECOND):
            async with long_chat_rig(settings, embedder) as rig:
                figures = await measured(rig, chat)
            sizes = sorted(figures.tokens_last_turns)
            found[chat.name] = {
                "prompt_tokens": max(figures.tokens_of_questions),
                "prompt_tokens_p50_of_last_turns": sizes[len(sizes) // 2],
                "prompt_tokens_max_of_last_turns": sizes[-1],
                "tokens_without_compaction": figures.full_tokens,
                "planted": figures.planted,
                "held_by_the_state": figures.in_state,
                "missing": list(figures.missing),
                "ratio": figures.ratio,
                "moves_of_the_cut": figures.moves,
            }
    return found


def figures_of(found: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The bars are those of the first chat; the second was written when the mechanism was done."""
    first = found[FIRST.name]
    return {
        "tokens of the prompt after 200 turns": first["prompt_tokens"],
        "planted items that are not answerable": len(first["missing"]),
        "ratio": first["ratio"],
    }


def main() -> int:
    options = bench_parser("compaction", __doc__).parse_args()
    report = Report("compaction", BARS, options.json)
    found = asyncio.run(measure())
    rows = [(name, key.replace("_", " "), value) for name, values in found.items() for key, value in values.items()]
    return report.finish(
        {"turns": TURNS, **found}, [Sheet("compaction", ("chat", "figure", "is"), rows)], figures_of(found)
    )


if __name__ == "__main__":
    sys.exit(main())
