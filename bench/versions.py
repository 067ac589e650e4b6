"""Compares what chats cost with what they cost in another version.

`python bench/versions.py TREE [--memories 1000] [--seconds 60]`. Both products run at the same time, with the packages
of this environment; chats take turns between them one by one, so that other load on the machine affects both alike.
TREE is a folder, as `git worktree add` or `git archive` makes it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import uvloop
from chats import chat, connected
from memories import fill, new_questions
from report import Bar, Report, Sheet, bench_parser, percentiles, ratio
from rig import Rig, running_upstream
from sides import Side

from memory.processes.composition import open_embedder
from memory.settings.loader import from_process

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from product import running_product  # isort: skip

USER = "ann"
KINDS = ("no identity", "skipped", "searched")
BARS = tuple(Bar(f"{kind}: p50, against the other version", "times", at_most=1.03) for kind in KINDS)
WARM_CHATS = 50


class Versions:
    def __init__(self, ours: Rig, other: Rig, failures: Counter[str]) -> None:
        self._rigs = ours, other
        self._failures = failures
        self._questions = new_questions()

    def body(self, kind: str) -> bytes:
        if kind == "no identity":
            return chat("Where is the boat?")
        return chat("Thank you very much!", USER) if kind == "skipped" else chat(next(self._questions), USER)

    async def measured(self, kind: str, seconds: float) -> tuple[Side, Side]:
        ours, other = Side(), Side()
        async with (
            connected(self._rigs[0].port, 1, self._failures) as [first],
            connected(self._rigs[1].port, 1, self._failures) as [second],
        ):
            for _ in range(WARM_CHATS):
                await first.ask(self.body(kind))
                await second.ask(self.body(kind))
            until = time.perf_counter() + seconds
            while time.perf_counter() < until:
                body = self.body(kind)
                await ours.ask(first, body)
                await other.ask(second, body)
        return ours, other


async def measure(
    ours: Rig, other: Rig, options: argparse.Namespace, failures: Counter[str]
) -> dict[str, tuple[Side, Side]]:
    async with open_embedder(from_process(None, {})) as embedder:
        for rig in (ours, other):
            await fill(rig.product.store_uri, embedder, {USER: options.memories})
    versions = Versions(ours, other, failures)
    return {kind: await versions.measured(kind, options.seconds / len(KINDS)) for kind in KINDS}


def main() -> int:
    parser = bench_parser("versions", __doc__)
    parser.add_argument("tree", type=Path, help="the folder of the other version")
    parser.add_argument("--memories", type=int, default=1_000, help="of the user who asks")
    parser.add_argument("--seconds", type=float, default=60.0, help="in all")
    options = parser.parse_args()
    report = Report("versions", BARS, options.json)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(running_upstream())
        rigs = [
            Rig(stack.enter_context(running_product(folder / name, upstream=upstream, is_timed=True, tree=tree)), 0)
            for name, tree in (("ours", None), ("other", options.tree.resolve()))
        ]
        found = uvloop.run(measure(rigs[0], rigs[1], options, report.failures))
    rows = [
        (kind, len(ours.milliseconds), *shown(ours).values(), *shown(other).values(), used(ours), used(other))
        for kind, (ours, other) in found.items()
    ]
    columns = ("", "chats", "p50", "p95", "p99", "other p50", "other p95", "other p99", "notes", "other notes")
    figures = {
        bar.name: ratio(shown(found[kind][0])["p50"], shown(found[kind][1])["p50"])
        for kind, bar in zip(KINDS, BARS, strict=True)
    }
    result = {kind: {"ours": shown(ours), "other": shown(other)} for kind, (ours, other) in found.items()}
    return report.finish(result, [Sheet("milliseconds a chat", columns, rows)], figures)


def shown(side: Side) -> dict[str, float]:
    return percentiles(side.milliseconds)


def used(side: Side) -> float:
    return ratio(side.statuses["used"], side.statuses.total())


if __name__ == "__main__":
    sys.exit(main())
