"""Measures compaction on chats of two hundred turns: tokens, what is still answerable, and the prefix cache.

`python bench/compaction.py`. The product's recall, learning and compaction run in one process with the packaged models,
without a server. Names, numbers and decisions are planted in each chat, and each is asked for after the last turn; it
counts as answerable if the prompt holds every string of its answer, in the state, in a note or in the kept turns.
`ratio` is the share of the blocks of 16 tokens of the last fifty prompts, without the newest question, that a prefix
cache finds.

Before that, chats with twelve facts, three decisions and two open questions among errands and rewritings: once recorded
turn by turn, once sent whole by a client in one request, of which nothing was recorded. What the prompt of the second
request after that holds is counted, whatever that asks; sent again, it has to be the same bytes. `--planted` measures
only these.
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
from compacted_chat import long_chat_rig, measured, recorded_live, sent_whole  # isort: skip
from long_chats import FIRST, TURNS  # isort: skip
from planted_chats import ERRANDS, FRESH, GERMAN  # isort: skip
from second_long_chat import SECOND  # isort: skip

PLANTED_BARS = (
    Bar("of 17 planted items, not held by the second prompt", at_most=0),
    Bar("tokens of the second prompt", at_most=1_000),
    Bar("second prompts that differ when they are sent again", at_most=0),
)
BARS = (
    Bar("tokens of the prompt after 200 turns", at_most=1_000),
    Bar("planted items that are not answerable", at_most=0),
    Bar("ratio", at_least=0.9),
)


async def measure_planted() -> dict[str, dict[str, Any]]:
    settings = from_process(None, {})
    found: dict[str, dict[str, Any]] = {}
    async with open_embedder(settings) as embedder:
        for chat in (ERRANDS, GERMAN, FRESH):
            for how, sent in (("sent whole", sent_whole), ("live", recorded_live)):
                async with long_chat_rig(settings, embedder) as rig:
                    figures = await sent(rig, chat)
                found[f"{chat.name}, {how}"] = {
                    "found": len(chat.planted) - len(figures.missing),
                    "planted": len(chat.planted),
                    "missing": list(figures.missing),
                    "prompt_tokens": figures.tokens,
                    "state_tokens": figures.state_tokens,
                    "is_the_same_again": figures.is_stable,
                    "state": figures.state,
                }
    return found


def planted_figures(found: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The worst of all chats and ways."""
    return {
        "of 17 planted items, not held by the second prompt": max(len(one["missing"]) for one in found.values()),
        "tokens of the second prompt": max(one["prompt_tokens"] for one in found.values()),
        "second prompts that differ when they are sent again": sum(
            not one["is_the_same_again"] for one in found.values()
        ),
    }


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
    parser = bench_parser("compaction", __doc__)
    parser.add_argument("--planted", action="store_true", help="only the chats with seventeen planted items")
    options = parser.parse_args()
    report = Report("compaction", PLANTED_BARS if options.planted else (*PLANTED_BARS, *BARS), options.json)
    planted = asyncio.run(measure_planted())
    found = {} if options.planted else asyncio.run(measure())
    rows = [
        (name, key.replace("_", " "), value)
        for name, values in {**planted, **found}.items()
        for key, value in values.items()
        if key != "state"
    ]
    figures = planted_figures(planted) | (figures_of(found) if found else {})
    sheets = [Sheet("compaction", ("chat", "figure", "is"), rows)]
    return report.finish({"turns": TURNS, **planted, **found}, sheets, figures)


if __name__ == "__main__":
    sys.exit(main())
