"""Measures the first question of users unknown to all processes: memories through REST, `kill -9`, a restart, the
question.

`python bench/cold.py [USERSxMEMORIES...]`, by default 20x500 and 5x5000; up to 1,000 memories count as few.
A bare Envoy is measured alternately, so that the bar in milliseconds is the time added by memory.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from chats import Answer, Rest, chat, connected
from report import Bar, Report, Sheet, bench_parser, percentiles, ratio
from rich.progress import Progress
from rig import running_bare, running_upstream

from product import Product  # isort: skip - on the path since `rig`

BARS = (
    Bar("few: share of first questions with a note", at_least=0.99),
    Bar("few: first p50, against later", "times", at_most=2.0),
    Bar("many: share of first questions with a note", at_least=0.99),
    Bar("many: first p50, added", "ms", at_most=60.0),
    Bar("failed chats", at_most=0),
)
FEW = 1_000
MEMORIES_PER_CALL = 200
SETTLED_SECONDS = 3.0  # between the last write and the kill: most users have been away for longer
QUESTIONS = 4  # of each user; the second still meets caches that the first filled, and is left out
PAUSE_SECONDS = 0.05
TOPICS = "budget dog car doctor flight garden novel boss recipe server guitar marathon visa roof tax".split()
PEOPLE = "Ann Bo Cy Di".split()


@dataclass
class Measured:
    """Milliseconds of first and later questions, and of a bare Envoy; how many first ones got a note."""

    bare: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)
    firsts: Counter[str] = field(default_factory=Counter)
    failed: int = 0

    @property
    def share(self) -> float:
        return ratio(self.firsts["used"], self.firsts.total())

    def add(self, number: int, answer: Answer) -> None:
        if number == 0:
            self.firsts["failed" if answer.failure else answer.memory_status] += 1
        if answer.failure:
            self.failed += 1
        elif number != 1:
            (self.later if number else self.first).append(answer.milliseconds)

    def summary(self) -> dict[str, object]:
        times = {"bare": self.bare, "first": self.first, "later": self.later}
        found = {name: percentiles(milliseconds) for name, milliseconds in times.items()}
        return {"found_share": self.share, "first_statuses": dict(self.firsts), **found}

    def row(self, name: str) -> tuple[object, ...]:
        bare, first, later = map(percentiles, (self.bare, self.first, self.later))
        return name, self.share, bare["p50"], *first.values(), *later.values()


COLUMNS = ("users x memories", "with a note", "bare p50", "first p50", "p95", "p99", "later p50", "p95", "p99")


class Words:
    """Memories and questions, the same in every run."""

    def __init__(self) -> None:
        self._chance = random.Random(8)
        self._numbers = itertools.count()

    def memory(self) -> str:
        pick, number = self._chance.choice, self._chance.randrange(9_999)
        said = f"my {pick(TOPICS)} number {number} has to do with the {pick(TOPICS)} of {pick(PEOPLE)}"
        return f"Note {next(self._numbers)}: {said}."

    def question(self) -> str:
        pick, number = self._chance.choice, self._chance.randrange(9_999)
        return f"What did I note about my {pick(TOPICS)} and the {pick(TOPICS)} of {pick(PEOPLE)}, number {number}?"


async def fill(product: Product, words: Words, users: list[str], memories: int, failures: Counter[str]) -> None:
    async with Rest(product.api, failures) as rest:
        for user in users:
            for start in range(0, memories, MEMORIES_PER_CALL):
                await rest.add(user, [words.memory() for _ in range(min(MEMORIES_PER_CALL, memories - start))])


async def ask(product: Product, bare_port: int, words: Words, users: list[str], failures: Counter[str]) -> Measured:
    measured = Measured()
    async with connected(product.ports["proxy"], 1, failures) as [ours], connected(bare_port, 1, failures) as [bare]:
        for user in users:
            for number in range(QUESTIONS):
                body = chat(words.question(), user, auto_store=False)
                measured.add(number, await ours.ask(body))
                plain = await bare.ask(body)
                if not plain.failure:
                    measured.bare.append(plain.milliseconds)
                await asyncio.sleep(PAUSE_SECONDS)
    return measured


def measure(users: int, memories: int, failures: Counter[str]) -> Measured:
    names, words = [f"cold-{number}" for number in range(users)], Words()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(running_upstream())
        bare_port = stack.enter_context(running_bare(upstream, folder))
        product = Product(folder / "data", upstream=upstream, is_timed=True)
        product.start()
        try:
            asyncio.run(fill(product, words, names, memories, failures))
            time.sleep(SETTLED_SECONDS)
            product.kill_everything()
            product.start()
            return asyncio.run(ask(product, bare_port, words, names, failures))
        finally:
            product.stop()


def figures(found: Mapping[tuple[int, int], Measured]) -> dict[str, float]:
    """The worst of each size."""
    shown: dict[str, float] = {"failed chats": sum(one.failed for one in found.values())}
    few = [one for (_, memories), one in found.items() if memories <= FEW]
    many = [one for (_, memories), one in found.items() if memories > FEW]
    if few:
        shown["few: share of first questions with a note"] = min(one.share for one in few)
        shown["few: first p50, against later"] = max(ratio(median(one.first), median(one.later)) for one in few)
    if many:
        shown["many: share of first questions with a note"] = min(one.share for one in many)
        shown["many: first p50, added"] = max(median(one.first) - median(one.bare) for one in many)
    return shown


def median(milliseconds: list[float]) -> float:
    return percentiles(milliseconds)["p50"]


def main() -> int:
    parser = bench_parser("cold", __doc__)
    parser.add_argument("sizes", nargs="*", default=["20x500", "5x5000"], metavar="USERSxMEMORIES")
    options = parser.parse_args()
    report = Report("cold", BARS, options.json)
    found: dict[tuple[int, int], Measured] = {}
    with Progress(transient=True) as progress:
        for size in progress.track(options.sizes, description="cold starts"):
            users, memories = map(int, size.split("x"))
            found[users, memories] = measure(users, memories, report.failures)
    named = {f"{users} x {memories:,}": one for (users, memories), one in found.items()}
    sheet = Sheet("milliseconds", COLUMNS, [one.row(name) for name, one in named.items()])
    result = {"unit": "ms", "sizes": {name: one.summary() for name, one in named.items()}}
    return report.finish(result, [sheet], figures(found))


if __name__ == "__main__":
    sys.exit(main())
