"""Measures learning: turns per second, the delay from a reply until its turn is learnt, and the cost of a model.

`python bench/learn.py [TURNS] [--users 20] [--memories 300] [--characters N] [--postgres] [--llm URL --model NAME]`. A
real worker with the real models, on the real store and turn log (with `--postgres` on a PostgreSQL server); returning
users with so many memories each. Turns are as long as LongMemEval's (`bench/turns.py`); `--characters` gives every
message of a user that length instead. First a backlog: all turns at once, until the last is learnt. Then a steady pace,
to see how long after its reply a turn is learnt.
Without `--llm` the trained reader reads. `cached_share` is the share of prompt tokens that the server reports
as cached; 0 if it reports none. No chats are served, so there is no comparison with Envoy; for the effect of learning
on chats see `bench/load.py --learning`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from chats import grown, samples
from databases import add_database, own_database
from memories import fill
from report import Bar, Report, Sheet, bench_parser, ratio
from rich.console import Console
from rig import cpu_seconds, free_port  # it makes tests/support importable
from turns import exchanges

from learning_processes import LearningProcesses, Records, WorkerProcess, records_of, running_learning_processes  # isort: skip

from memory.processes.composition import SYSTEM_CLOCK, open_embedder
from memory.settings.loader import from_process

TRAINED_BARS = (
    Bar("turns a second", at_least=60),
    Bar("learnt within a second, at a steady pace", at_least=0.99),
    Bar("turns given up or left over", at_most=0),
)
MODEL_BARS = (Bar("turns given up or left over", at_most=0), Bar("calls of the model", at_least=1))
SESSION_TURNS = 6  # of one user, before the next session begins; LongMemEval's median
STEADY_SECONDS, STEADY_TURNS_PER_SECOND = 10, 5
IDLE_SECONDS = 1  # after which a session is worth a model's call; the lags of a model hold it
LEARNT_SECONDS_MAX = 1_800.0
LAG_BUCKET = 'memproxy_learn_lag_seconds_bucket{le="1.0"}'
LAG_COUNT = "memproxy_learn_lag_seconds_count"

console = Console(stderr=True)
Page = Mapping[str, float] | None
Turns = Sequence[tuple[str, str]]


class Learning:
    """One worker, and who talks to it: user after user, each in sessions of a few turns."""

    def __init__(self, records: Records, worker: WorkerProcess, users: Sequence[str], failures: Counter[str]) -> None:
        self._records, self._worker, self._users, self._failures = records, worker, users, failures

    async def page(self) -> Page:
        return await samples(self._worker.metrics_port, self._failures)

    async def tell(self, number: int, turn: tuple[str, str]) -> None:
        message, answer = turn
        user = self._users[number % len(self._users)]
        session = f"s{number // len(self._users) // SESSION_TURNS}"
        await self._records.tell(f"t-{number}", user, message, at=SYSTEM_CLOCK(), session=session, answer=answer)

    async def backlog(self, turns: Turns) -> tuple[float, Counter[str]]:
        """Seconds from the first turn until the last is learnt, and CPU seconds of the parts."""
        spent, began = cpu_seconds(), time.perf_counter()
        for number, turn in enumerate(turns):
            await self.tell(number, turn)
        await self.settled()
        return time.perf_counter() - began, cpu_seconds() - spent

    async def steady(self, turns: Turns, *, first: int) -> None:
        """At a pace that a worker should hold."""
        began = time.perf_counter()
        for number, turn in enumerate(turns):
            await asyncio.sleep(max(0.0, began + number / STEADY_TURNS_PER_SECOND - time.perf_counter()))
            await self.tell(first + number, turn)
        await self.settled()

    async def settled(self) -> None:
        """Return once nothing is pending, the worker has ended, or nobody would wait any longer."""
        give_up_at = time.monotonic() + LEARNT_SECONDS_MAX
        for user in self._users:
            while await self._records.pending(user) and time.monotonic() < give_up_at:
                if self._worker.process.poll() is not None:
                    return
                await asyncio.sleep(0.05)

    async def left_over(self) -> int:
        backlogs = [await self._records.turn_log.backlog(user, opened_before=1e12) for user in self._users]
        return sum(one.pending + one.failed for one in backlogs)


async def measure(options: argparse.Namespace, failures: Counter[str]) -> dict[str, Any]:
    turns = exchanges(options.turns + STEADY_SECONDS * STEADY_TURNS_PER_SECOND, characters=options.characters)
    users = [f"user-{number}" for number in range(options.users)]
    with (
        tempfile.TemporaryDirectory() as folder,
        own_database(is_postgres=options.postgres) as postgres,
        running_learning_processes(Path(folder)) as parts,
    ):
        parts.database_url = postgres.url if postgres else ""
        try:
            await returning(parts, users, options.memories)
            async with records_of(parts) as records:
                worker = parts.start_worker(settings_for(options.llm, options.model), metrics_port=free_port())
                await worker.warm()
                learning = Learning(records, worker, users, failures)
                pages = [await learning.page()]
                console.print(f"{options.turns} turns at once")
                seconds, spent = await learning.backlog(turns[: options.turns])
                pages.append(await learning.page())
                console.print(f"{STEADY_TURNS_PER_SECOND} turns a second")
                await learning.steady(turns[options.turns :], first=options.turns)
                pages.append(await learning.page())
                left_over = await learning.left_over()
                worker.stop()
        finally:
            parts.end()
    costs = {f"{part}_cpu_ms_a_turn": 1000 * spent[part] / options.turns for part in ("worker", "milvus", "postgres")}
    rate = {"turns_a_second": options.turns / seconds, **costs}
    lengths = lengths_of(turns[: options.turns])
    return {**rate, "left_over": left_over, **spent_on(options.turns, *pages), "lengths": lengths}


async def returning(parts: LearningProcesses, users: Sequence[str], memories: int) -> None:
    async with open_embedder(from_process(None, {})) as embedder:
        await fill(parts.milvus.uri, embedder, dict.fromkeys(users, memories), parts.collection)


def settings_for(llm: str, model: str) -> dict[str, Any]:
    if not llm:
        return {"memory": {"learn": {"reader": "trained"}}}
    url = urlsplit(llm)
    endpoint = {"address": f"{url.scheme}://{url.hostname}", "port": url.port or 80}
    role = {"model_role": "memory_extraction", "llm_endpoint": endpoint, "llm_model_name": model}
    memory = {"learn": {"idle_seconds": IDLE_SECONDS, "reader": "model"}}
    return {"external_models": [role], "memory": memory}


def spent_on(turns: int, start: Page, backlog: Page, steady: Page) -> dict[str, float]:
    """From the worker's page of metrics at the start, after the backlog, and after the steady pace."""
    calls = grown(start, backlog, "memproxy_model_calls_total")
    prompt = grown(start, backlog, 'memproxy_model_tokens_total{kind="prompt",role="memory_extraction"}')
    cached = grown(start, backlog, 'memproxy_model_tokens_total{kind="cached",role="memory_extraction"}')
    lag = grown(backlog, steady, "memproxy_learn_lag_seconds_sum")
    return {
        "windows": grown(start, backlog, LAG_COUNT),
        "facts_created_a_turn": grown(start, backlog, 'memproxy_facts_total{outcome="created"}') / turns,
        "model_calls_per_100_turns": 100 * calls / turns,
        "prompt_tokens_per_100_turns": 100 * prompt / turns,
        "cached_share": ratio(cached, prompt),
        "steady_turns_a_second": STEADY_TURNS_PER_SECOND,
        "steady_lag_seconds_mean": ratio(lag, grown(backlog, steady, LAG_COUNT)),
        "steady_within_a_second": ratio(grown(backlog, steady, LAG_BUCKET), grown(backlog, steady, LAG_COUNT)),
    }


def lengths_of(turns: Turns) -> dict[str, dict[str, float]]:
    """Characters of what users said, of the answers, and of all messages."""
    users, answers = [len(message) for message, _ in turns], [len(answer) for _, answer in turns]
    found = {}
    for name, lengths in {"users": users, "answers": answers, "all": users + answers}.items():
        quantiles = np.percentile(lengths, (5, 25, 50, 75, 95, 99))
        found[name] = {"mean": float(np.mean(lengths))} | dict(
            zip(("p5", "p25", "p50", "p75", "p95", "p99"), map(float, quantiles), strict=True)
        )
    return found


def main() -> int:
    parser = bench_parser("learn", __doc__)
    parser.add_argument("turns", nargs="?", type=int, default=600)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--memories", type=int, default=300, help="that each user has at the start")
    parser.add_argument("--characters", type=int, default=0, help="of every user's message; default: as in real chats")
    add_database(parser)
    parser.add_argument("--llm", default="", help="base URL of an OpenAI-compatible server that extracts")
    parser.add_argument("--model", default="m", help="what it calls its model")
    options = parser.parse_args()
    report = Report("learn", MODEL_BARS if options.llm else TRAINED_BARS, options.json)
    result = asyncio.run(measure(options, report.failures))
    figures = {"turns given up or left over": result["left_over"]}
    if options.llm:
        figures["calls of the model"] = result["model_calls_per_100_turns"]
    else:
        figures["turns a second"] = result["turns_a_second"]
        figures["learnt within a second, at a steady pace"] = result["steady_within_a_second"]
    settings = {name: value for name, value in vars(options).items() if name != "json"}
    rows = [(name.replace("_", " "), value) for name, value in result.items() if name != "lengths"]
    lengths = [(name, *one.values()) for name, one in result["lengths"].items()]
    sheets = [
        Sheet("characters of messages", ("", "mean", "p5", "p25", "p50", "p75", "p95", "p99"), lengths),
        Sheet(f"learning, read by {options.model if options.llm else 'the trained reader'}", ("figure", "is"), rows),
    ]
    return report.finish({"settings": settings, **result}, sheets, figures)


if __name__ == "__main__":
    sys.exit(main())
