"""The first question of users whom no process has seen: memories through REST, `kill -9`, a new start, the question.

`python bench/cold.py [USERSxMEMORIES...]`, by default 20x500 and 5x5000. Bars: 99 % of the first questions get a note;
with up to 1,000 memories in at most twice the time of a later question (p50), with more in at most 60 ms (p50).
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from rich.console import Console
from rig import HERE, Client, free_port, percentiles, report, running

from product import Product  # isort: skip - on the path since `rig`

FOUND_SHARE_MIN = 0.99
FEW, TIMES_OF_LATER_MAX = 1_000, 2.0
MANY_MS_MAX = 60.0
MEMORIES_PER_CALL = 200
SETTLED_SECONDS = 3.0  # between the last write and the kill: most users have been away for longer
QUESTIONS = 4  # of each user; the second still meets caches that the first filled, and is left out
PAUSE_SECONDS = 0.05
TOPICS = "budget dog car doctor flight garden novel boss recipe server guitar marathon visa roof tax".split()
PEOPLE = "Ann Bo Cy Di".split()

console = Console(stderr=True)


@dataclass
class Measured:
    """Milliseconds of first and later questions, and how many first ones got a note."""

    first: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)
    found: int = 0

    @property
    def share(self) -> float:
        return self.found / len(self.first)

    def summary(self) -> dict[str, object]:
        return {"found_share": self.share, "first": percentiles(self.first), "later": percentiles(self.later)}


class Words:
    """Memories and questions, the same in every run."""

    def __init__(self) -> None:
        self._chance = random.Random(8)
        self._numbers = itertools.count()

    def memory(self) -> dict[str, str]:
        pick, number = self._chance.choice, self._chance.randrange(9_999)
        said = f"my {pick(TOPICS)} number {number} has to do with the {pick(TOPICS)} of {pick(PEOPLE)}"
        return {"content": f"Note {next(self._numbers)}: {said}.", "memory_type": "semantic"}

    def question(self) -> str:
        pick, number = self._chance.choice, self._chance.randrange(9_999)
        return f"What did I note about my {pick(TOPICS)} and the {pick(TOPICS)} of {pick(PEOPLE)}, number {number}?"


def fill(product: Product, words: Words, users: list[str], memories: int) -> None:
    with httpx.Client(timeout=60) as rest:
        for user in users:
            for start in range(0, memories, MEMORIES_PER_CALL):
                batch = [words.memory() for _ in range(min(MEMORIES_PER_CALL, memories - start))]
                url = f"{product.api}/v1/memory"
                rest.post(url, params={"user_id": user}, json={"memories": batch}).raise_for_status()


def ask(product: Product, words: Words, users: list[str]) -> Measured:
    measured, client = Measured(), Client(product.ports["proxy"])
    for user in users:
        for number in range(QUESTIONS):
            body = {
                "model": "m",
                "messages": [{"role": "user", "content": words.question()}],
                "memory_context": {"user_id": user},
                "memory_config": {"auto_store": False},
            }
            took, headers = client.post(json.dumps(body).encode())
            if number == 0:
                measured.first.append(took)
                measured.found += headers.get("x-memory-status") == "used"
            elif number > 1:
                measured.later.append(took)
            time.sleep(PAUSE_SECONDS)
    return measured


def measure(users: int, memories: int) -> Measured:
    names, words = [f"cold-{number}" for number in range(users)], Words()
    port = free_port()
    with (
        tempfile.TemporaryDirectory() as folder,
        running(sys.executable, str(HERE / "upstream.py"), str(port)),
    ):
        product = Product(Path(folder) / "data", upstream=f"http://127.0.0.1:{port}")
        product.start()
        try:
            fill(product, words, names, memories)
            time.sleep(SETTLED_SECONDS)
            product.kill_everything()
            product.start()
            return ask(product, words, names)
        finally:
            product.stop()


def bars(name: str, memories: int, measured: Measured) -> Iterator[tuple[str, bool]]:
    first, later = (percentiles(times)["p50"] for times in (measured.first, measured.later))
    yield f"{name}: {FOUND_SHARE_MIN:.0%} get a note", measured.share >= FOUND_SHARE_MIN
    if memories <= FEW:
        yield f"{name}: first p50 at most {TIMES_OF_LATER_MAX:g} x later", first <= TIMES_OF_LATER_MAX * later
    else:
        yield f"{name}: first p50 at most {MANY_MS_MAX:g} ms", first <= MANY_MS_MAX


def main(wanted: list[str]) -> int:
    found: dict[str, Measured] = {}
    shown: dict[str, bool] = {}
    for name in wanted or ["20x500", "5x5000"]:
        users, memories = map(int, name.split("x"))
        found[name] = measure(users, memories)
        shown |= dict(bars(name, memories, found[name]))
    summaries = {name: measured.summary() for name, measured in found.items()}
    columns = ["users x memories", "with a note", "first p50", "p95", "p99", "later p50", "p95", "p99"]
    rows = [
        (name, one.share, *percentiles(one.first).values(), *percentiles(one.later).values())
        for name, one in found.items()
    ]
    report("cold", {"unit": "ms", "bars": shown, **summaries}, rows, columns)
    for bar, is_met in shown.items():
        console.print(f"{'met   ' if is_met else 'MISSED'} {bar}")
    return 0 if all(shown.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
