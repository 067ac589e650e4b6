"""Measures the CPU time of recall for one searched chat, without Envoy, the embedding model, and a store.

`python bench/recall_cpu.py [--users 20] [--memories 1000] [--chats 300] [--profile]`: questions of users taking turns,
each with sentences of their own, so that no cache of the last one helps. Milliseconds of the loop's thread, and of all
threads; with `--profile` also the functions that they are spent in. What is left out here is in `load.py`, as a share
of the filter.
"""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import random
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
from memories import a_memory, new_questions, sentences
from report import Bar, Report, Sheet, bench_parser

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from recall_rig import RecallSettings, Rig, request_of, rigged

from memory.model import Change, ChangeKind, Scope

FUNCTIONS = 25  # of a profile that are shown
BARS = (Bar("the loop's thread, a searched chat", "ms", at_most=3.0),)
SETTINGS = RecallSettings(deadline_seconds=2.0, in_flight_max=4)


def main() -> int:
    parser = bench_parser("recall_cpu", __doc__)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--memories", type=int, default=1_000)
    parser.add_argument("--chats", type=int, default=300)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    report = Report("recall_cpu", BARS, options.json)
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(measured(Path(folder), options))
    row = [result[name] for name in ("chats", "loop_ms", "all_threads_ms", "wall_ms")]
    sheet = Sheet("a searched chat", ("chats", "loop ms", "all threads ms", "wall ms"), [row])
    return report.finish(result, [sheet], {BARS[0].name: result["loop_ms"]})


async def measured(folder: Path, options: Namespace) -> dict[str, float]:
    async with rigged(folder, SETTINGS) as rig:
        users = [f"user-{number}" for number in range(options.users)]
        for user in users:
            await fill(rig, user, options.memories)
            assert await rig.corpora.corpus(user, waits=True) is not None
        chance = random.Random(1)
        asked = [
            (Scope(chance.choice(users)), request_of(question)) for question in islice(new_questions(), options.chats)
        ]
        profile = cProfile.Profile() if options.profile else None
        began = time.thread_time(), time.process_time(), time.perf_counter()
        statuses: Counter[str] = Counter()
        if profile is not None:
            profile.enable()
        for scope, request in asked:
            statuses[(await rig.recall.recall(scope, request)).status] += 1
        await asyncio.sleep(0.1)  # for the last receipts
        if profile is not None:
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(FUNCTIONS)
        ended = time.thread_time(), time.process_time(), time.perf_counter()
    loop, process, wall = ((end - begin) * 1000 / len(asked) for begin, end in zip(began, ended, strict=True))
    found = statuses["used"] / len(asked)
    return {"chats": len(asked), "loop_ms": loop, "all_threads_ms": process, "wall_ms": wall, "used": found}


async def fill(rig: Rig, user: str, count: int) -> None:
    known = sentences()
    own = (f"{known[number % len(known)]} It stands on page {number} of {user}." for number in range(count))
    memories = [a_memory(user, number, content) for number, content in enumerate(own)]
    vectors = await rig.embedder.embed([memory.content for memory in memories], is_urgent=False)
    async with rig.ledger.write(user) as change:
        change.touch([memory.id for memory in memories])
        creating = [Change(ChangeKind.CREATE, memory) for memory in memories]
        await rig.store.apply(user, creating, np.asarray(vectors))


if __name__ == "__main__":
    sys.exit(main())
