"""Compares what chats and learning cost with what they cost in another version.

`python bench/versions.py TREE [--memories 1000] [--seconds 60] [--turns 200]`. Both products run at the same time, with
the packages of this environment; chats take turns between them one by one, so that other load on the machine affects
both alike, and imported turns a part of them at a time, while the other product rests. The filter's CPU is for each
chat of the loop, recording included. TREE is a folder, as `git worktree add` or `git archive` makes it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import uvloop
from chats import Rest, chat, connected
from imported_turns import Learnt, drained, learnt
from memories import fill, new_questions
from report import Bar, Report, Sheet, bench_parser, percentiles, ratio
from rig import Rig, running_upstream
from sides import Side
from turns import exchanges

from memory.processes.composition import open_embedder
from memory.settings.loader import from_process

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from product import running_product  # isort: skip

USER = "ann"
KINDS = ("no identity", "skipped", "searched")
P50 = {kind: f"{kind}: p50, against the other version" for kind in KINDS}
CPU = "searched: CPU of the filter, against the other version"
LEARNT = "turns learnt a second, against the other version"
BARS = (
    *(Bar(name, "times", at_most=1.03) for name in P50.values()),
    Bar(CPU, "times", at_most=1.03),
    Bar(LEARNT, "times", at_least=0.97),
)
WARM_CHATS = 50
LEARNING_ROUNDS = 4


@dataclass
class Measured:
    """One version. `filter_seconds`: CPU on the chats of each kind."""

    rig: Rig
    chats: dict[str, Side] = field(default_factory=dict)
    filter_seconds: dict[str, float] = field(default_factory=dict)
    learnt: list[Learnt] = field(default_factory=list)

    @property
    def learnt_a_second(self) -> float:
        return ratio(sum(one.turns - one.left_over for one in self.learnt), sum(one.seconds for one in self.learnt))

    @property
    def worker_cpu_ms(self) -> float:
        """Of each turn."""
        return ratio(1000 * sum(one.worker_cpu_seconds for one in self.learnt), sum(one.turns for one in self.learnt))

    def filter_cpu_ms(self, kind: str) -> float:
        """Of each chat of this kind."""
        return ratio(1000 * self.filter_seconds[kind], self.chats[kind].statuses.total())

    def row(self, kind: str) -> tuple[object, ...]:
        side = self.chats[kind]
        return *shown(side).values(), ratio(side.statuses["used"], side.statuses.total()), self.filter_cpu_ms(kind)

    def result(self) -> dict[str, object]:
        chats = {kind: {**shown(side), "filter_cpu_ms": self.filter_cpu_ms(kind)} for kind, side in self.chats.items()}
        return {**chats, "learnt_a_second": self.learnt_a_second, "worker_cpu_ms_a_turn": self.worker_cpu_ms}


class Versions:
    def __init__(self, ours: Measured, other: Measured, failures: Counter[str]) -> None:
        self._both = ours, other
        self._failures = failures
        self._questions = new_questions()

    def body(self, kind: str) -> bytes:
        if kind == "no identity":
            return chat("Where is the boat?")
        return chat("Thank you very much!", USER) if kind == "skipped" else chat(next(self._questions), USER)

    async def ask(self, kind: str, seconds: float) -> None:
        first, second = (one.rig for one in self._both)
        async with (
            connected(first.port, 1, self._failures) as [ours],
            connected(second.port, 1, self._failures) as [other],
        ):
            for _ in range(WARM_CHATS):
                await ours.ask(self.body(kind))
                await other.ask(self.body(kind))
            spent = [one.rig.cpu_seconds()["filter"] for one in self._both]
            sides = Side(), Side()
            until = time.perf_counter() + seconds
            while time.perf_counter() < until:
                body = self.body(kind)
                await sides[0].ask(ours, body)
                await sides[1].ask(other, body)
        for one, side, before in zip(self._both, sides, spent, strict=True):
            one.chats[kind], one.filter_seconds[kind] = side, one.rig.cpu_seconds()["filter"] - before

    async def learn(self, count: int) -> None:
        """What chats left to be learnt is learnt first, by both."""
        for one in self._both:
            async with Rest(one.rig.product.api, self._failures) as rest:
                await drained(rest)
        turns = exchanges(count)
        for number in range(LEARNING_ROUNDS):
            part = turns[number::LEARNING_ROUNDS]
            for one in self._both:
                one.learnt.append(await learnt(one.rig, [f"{USER}-{number}"], part, self._failures))


async def measure(both: tuple[Measured, Measured], options: argparse.Namespace, failures: Counter[str]) -> None:
    async with open_embedder(from_process(None, {})) as embedder:
        for one in both:
            await fill(one.rig.product.store_uri, embedder, {USER: options.memories})
    versions = Versions(*both, failures)
    for kind in KINDS:
        await versions.ask(kind, options.seconds / len(KINDS))
    await versions.learn(options.turns)


def main() -> int:
    parser = bench_parser("versions", __doc__)
    parser.add_argument("tree", type=Path, help="the folder of the other version")
    parser.add_argument("--memories", type=int, default=1_000, help="of the user who asks")
    parser.add_argument("--seconds", type=float, default=60.0, help="of all chats")
    parser.add_argument("--turns", type=int, default=200, help="to learn")
    options = parser.parse_args()
    report = Report("versions", BARS, options.json)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(running_upstream())
        products = [
            stack.enter_context(running_product(folder / name, upstream=upstream, is_timed=True, tree=tree))
            for name, tree in (("ours", None), ("other", options.tree.resolve()))
        ]
        ours, other = (Measured(Rig(product, 0)) for product in products)
        uvloop.run(measure((ours, other), options, report.failures))
    figures = {P50[kind]: ratio(shown(ours.chats[kind])["p50"], shown(other.chats[kind])["p50"]) for kind in KINDS}
    figures[CPU] = ratio(ours.filter_cpu_ms("searched"), other.filter_cpu_ms("searched"))
    figures[LEARNT] = ratio(ours.learnt_a_second, other.learnt_a_second)
    columns = ("p50", "p95", "p99", "notes", "filter CPU")
    rows = [(kind, len(ours.chats[kind].milliseconds), *ours.row(kind), *other.row(kind)) for kind in KINDS]
    learning = [(name, one.learnt_a_second, one.worker_cpu_ms) for name, one in (("this", ours), ("other", other))]
    sheets = [
        Sheet("milliseconds a chat", ("", "chats", *columns, *(f"other {one}" for one in columns)), rows),
        Sheet("learning", ("version", "turns a second", "worker CPU, ms a turn"), learning),
    ]
    return report.finish({"ours": ours.result(), "other": other.result()}, sheets, figures)


def shown(side: Side) -> dict[str, float]:
    return percentiles(side.milliseconds)


if __name__ == "__main__":
    sys.exit(main())
