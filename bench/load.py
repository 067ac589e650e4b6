"""Measures chats under load: chats per second, the share with a note, the time added by memory, the CPU of each part.

`python bench/load.py [--clients 1,4,8,32] [--users 20] [--memories 1000] [--seconds 6] [--filters 1,2] [--learning]`.
Clients send the next question as soon as they are answered (a closed loop); every question needs memory and is a new
text. They are recorded and learnt like any chat. Bare Envoy and product take turns, in slices under
the same number of clients; "added" is the difference of their percentiles, chats without a note included. CPU is that
of a part's processes, in milliseconds per chat. `--filters 1,2` measures with one filter and with two. `--learning`
measures the same chats, unrecorded, while the worker has nothing to learn and while it learns their users' imported
turns, in turn. `--postgres` does all of this on a PostgreSQL server, and after that measures the same chats on SQLite
and on PostgreSQL, in turn.

Overload is an open loop: chats are sent at three times the best rate whether or not others were answered. A chat waits
past the deadline if it takes longer than a bare Envoy under that load does (p99) and `memory.deadline_ms` together.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import uvloop
from chats import Chats, Rest, chat, connected
from databases import add_database, rig_with_database
from imported_turns import drained
from memories import fill, new_questions
from report import Bar, Report, Sheet, bench_parser, percentiles, ratio
from rich.progress import Progress
from rig import Rig
from sides import COLUMNS, Compared, Side, Spending, merge
from turns import exchanges

from memory.processes.composition import open_embedder
from memory.settings import Settings
from memory.settings.loader import from_process

BARS = (
    Bar("no identity: added p50", "ms", at_most=1.0),
    Bar("skipped: added p50", "ms", at_most=1.5),
    Bar("1 client: added p50", "ms", at_most=6.0),
    Bar("1 client: added p99", "ms", at_most=20.0),
    Bar("best: chats with a note", "a second", at_least=250),
    Bar("8 clients: share with a note", at_least=0.995),
    Bar("32 clients: chats with a note, against 8", at_least=1.0),
    Bar("32 clients: searches begun and not ended", at_most=0),
    Bar("32 clients: embedded in vain, of those turned away", at_most=0.01),
    Bar("best: CPU of the filter", "ms a chat", at_most=3.0),
    Bar("overload: chats with a note, against the best", at_least=0.9),
    Bar("overload: chats past the deadline", at_most=0),
    Bar("learning: added p99", "ms", at_most=20.0),
    Bar("PostgreSQL: CPU of the filter, against SQLite", "times", at_most=1.1),
    Bar("failed chats", at_most=0),
)
ROUNDS = 4  # in which bare Envoy and product take turns
BARE_SHARE = 0.3  # of the product's time
WARM_SECONDS_MAX = 60.0
PATH_CHATS_A_SECOND = 60  # of --seconds, on each path
OVERLOAD = 3.0
OVERLOAD_CONNECTIONS = 400  # so many chats at a time; one that finds none free was not sent, and counts as too late
LEARNING_ROUNDS = 2  # each ends when all is learnt, so that the next begins with a worker that rests
IMPORTED_A_SECOND = 90  # turns, of a slice: more than a worker learns in it
DATABASE_CLIENTS = 4
DEADLINE_MS = Settings().memory.deadline_ms


class Load:
    def __init__(
        self, rig: Rig, users: Sequence[str], failures: Counter[str], questions: Iterator[str] | None = None
    ) -> None:
        """`questions`: where others ask as well, so that no text comes twice."""
        self._rig, self._users, self._failures = rig, users, failures
        self._questions = questions or new_questions()

    def _wanting(self, side: Side, **config: Any) -> bytes:
        """From each user in turn, on either side."""
        user = self._users[side.asked % len(self._users)]
        side.asked += 1
        return chat(next(self._questions), user, **config)

    async def warm(self) -> None:
        """Ask for each user until the filter holds their memories, or for so long that it never will."""
        until = time.monotonic() + WARM_SECONDS_MAX
        async with connected(self._rig.port, 1, self._failures) as [chats]:
            for user in self._users:
                found = 0
                while found < 2 and time.monotonic() < until:
                    answer = await chats.ask(chat(next(self._questions), user, auto_store=False))
                    found += answer.memory_status == "used"

    async def path(self, name: str, body: bytes, chats: int) -> Compared:
        """One client that turns to the bare Envoy and to the product by turns."""
        one = Compared(name)
        async with (
            connected(self._rig.bare_port, 1, self._failures) as [bare],
            connected(self._rig.port, 1, self._failures) as [ours],
        ):
            for _ in range(chats):
                await one.bare.ask(bare, body)
                await one.ours.ask(ours, body)
        one.bare.seconds, one.ours.seconds = (sum(side.milliseconds) / 1000 for side in (one.bare, one.ours))
        return one

    async def closed(self, name: str, clients: int, seconds: float, **config: Any) -> Compared:
        one = Compared(name)

        async def on_and_on(side: Side, every: list[Chats], seconds: float) -> None:
            async def ask_on(chats: Chats) -> None:
                while time.perf_counter() < until:
                    await side.ask(chats, self._wanting(side, **config))

            started = time.perf_counter()
            until = started + seconds
            await asyncio.gather(*map(ask_on, every))
            side.seconds += time.perf_counter() - started

        async with (
            connected(self._rig.bare_port, clients, self._failures) as bare,
            connected(self._rig.port, clients, self._failures) as ours,
        ):
            for _ in range(ROUNDS):
                await on_and_on(one.bare, bare, BARE_SHARE * seconds / ROUNDS)
                async with Spending(self._rig, one, self._failures):
                    await on_and_on(one.ours, ours, seconds / ROUNDS)
        return one

    async def open(self, name: str, rate: float, seconds: float) -> Compared:
        one = Compared(name)

        async def offer(side: Side, free: list[Chats], seconds: float) -> None:
            async def ask(chats: Chats) -> None:
                await side.ask(chats, self._wanting(side))
                free.append(chats)

            started = time.perf_counter()
            async with asyncio.TaskGroup() as under_way:
                for number in range(int(rate * seconds)):
                    await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
                    if free:
                        under_way.create_task(ask(free.pop()))
                    else:
                        side.unsent += 1
            side.seconds += time.perf_counter() - started

        async with (
            connected(self._rig.bare_port, OVERLOAD_CONNECTIONS, self._failures) as bare,
            connected(self._rig.port, OVERLOAD_CONNECTIONS, self._failures) as ours,
        ):
            for _ in range(ROUNDS):
                await offer(one.bare, bare, BARE_SHARE * seconds / ROUNDS)
                async with Spending(self._rig, one, self._failures):
                    await offer(one.ours, ours, seconds / ROUNDS)
        return one

    async def beside_learning(self, seconds: float) -> tuple[Compared, Compared]:
        """The same chats of one client without and with a worker that learns, in turn."""
        quiet, busy = Compared("1 client, no learning"), Compared("1 client, learning")
        slice_seconds = seconds / LEARNING_ROUNDS
        at_once = math.ceil(IMPORTED_A_SECOND * slice_seconds)
        turns = exchanges(at_once * LEARNING_ROUNDS)
        for number in range(LEARNING_ROUNDS):
            merge(quiet, await self.closed("", 1, slice_seconds, auto_store=False))
            await self._import(turns[number * at_once :][:at_once])
            merge(busy, await self.closed("", 1, slice_seconds, auto_store=False))
            await self._drain()
        return quiet, busy

    async def _import(self, turns: Sequence[tuple[str, str]]) -> None:
        async with Rest(self._rig.product.api, self._failures) as rest:
            for number, (message, answer) in enumerate(turns):
                said = [{"role": "user", "content": message}, {"role": "assistant", "content": answer}]
                at = time.time()  # noqa: TID251 - a bench has a clock
                body = {"session_id": f"told-{number // 5}", "at": at, "messages": said}
                await rest.post("/v1/memory/turns", self._users[number % len(self._users)], body)

    async def _drain(self) -> None:
        """Return once nothing is left to learn, or after so long that the figures will show it."""
        async with Rest(self._rig.product.api, self._failures) as rest:
            await drained(rest)


async def filled(rig: Rig, options: argparse.Namespace) -> list[str]:
    """The users, who have their memories then."""
    users = [f"load-{number}" for number in range(options.users)]
    async with open_embedder(from_process(None, {})) as embedder:
        await fill(rig.product.store_uri, embedder, dict.fromkeys(users, options.memories))
    return users


async def measure(
    rig: Rig, options: argparse.Namespace, failures: Counter[str], progress: Progress
) -> dict[str, Compared]:
    stages = progress.add_task("filling", total=None)
    users = await filled(rig, options)
    load = Load(rig, users, failures)
    await load.warm()
    found: dict[str, Compared] = {}

    async def add(name: str, measured: Any) -> None:
        found[name] = await measured

    chats = int(PATH_CHATS_A_SECOND * options.seconds)
    paths = {
        "no identity": chat("Where is the boat?"),
        "skipped": chat("Thank you very much!", users[0], auto_store=False),
    }
    for name, body in paths.items():
        progress.update(stages, description=name)
        await add(name, load.path(name, body, chats))
    if options.learning:  # first: later there is something to learn all the time
        progress.update(stages, description="learning")
        found["quiet"], found["learning"] = await load.beside_learning(options.seconds)
    for clients in options.clients:
        name = f"{clients} client{'s' * (clients > 1)}"
        progress.update(stages, description=name)
        await add(name, load.closed(name, clients, options.seconds))
    progress.update(stages, description="overload")
    rate = OVERLOAD * best(found).ours.notes_a_second
    if rate > 0:
        await add("overload", load.open(f"overload, {rate:.0f}/s", rate, options.seconds))
    return found


async def databases_in_turn(
    rigs: Mapping[str, Rig], options: argparse.Namespace, failures: Counter[str]
) -> dict[str, Compared]:
    """Products that run at the same time take turns, so that other load on the machine affects them alike."""
    loads = {name: Load(rig, await filled(rig, options), failures) for name, rig in rigs.items()}
    for load in loads.values():
        await load.warm()
    found = {name: Compared(name) for name in rigs}
    for _ in range(ROUNDS):
        for name, load in loads.items():
            merge(found[name], await load.closed(name, DATABASE_CLIENTS, options.seconds / ROUNDS))
    return found


def best(found: dict[str, Compared]) -> Compared:
    stages = [one for name, one in found.items() if name.endswith(("client", "clients"))]
    return max(stages, key=lambda one: one.ours.notes_a_second)


def figures(found: dict[str, Compared]) -> dict[str, float]:
    """Those of the bars whose load was asked for."""
    summaries = {name: one.summary() for name, one in found.items()}
    top = best(found)
    shown = {f"{name}: added p50": summaries[name]["added"]["p50"] for name in ("no identity", "skipped")}
    if one := summaries.get("1 client"):
        shown |= {"1 client: added p50": one["added"]["p50"], "1 client: added p99": one["added"]["p99"]}
    shown["best: chats with a note"] = top.ours.notes_a_second
    shown["best: CPU of the filter"] = top.summary()["cpu_ms_a_chat"].get("filter", math.nan)
    eight, many = found.get("8 clients"), found.get("32 clients")
    if eight:
        shown["8 clients: share with a note"] = summaries["8 clients"]["share_with_a_note"]
    if many:
        shown["32 clients: searches begun and not ended"] = many.late
        shown["32 clients: embedded in vain, of those turned away"] = many.in_vain
    if eight and many:
        against = ratio(many.ours.notes_a_second, eight.ours.notes_a_second)
        shown["32 clients: chats with a note, against 8"] = against
    if over := found.get("overload"):
        limit = DEADLINE_MS + percentiles(over.bare.milliseconds)["p99"]
        kept = ratio(over.ours.notes_a_second, top.ours.notes_a_second)
        shown["overload: chats with a note, against the best"] = kept
        shown["overload: chats past the deadline"] = over.ours.past(limit)
    if learning := summaries.get("learning"):
        shown["learning: added p99"] = learning["added"]["p99"]
    shown["failed chats"] = sum(one.ours.statuses["failed"] for one in found.values())
    return shown


def main() -> int:
    parser = bench_parser("load", __doc__)
    parser.add_argument("--clients", type=whole_numbers, default=[1, 4, 8, 32], metavar="N,…")
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--memories", type=int, default=1_000, help="of each user")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each load")
    parser.add_argument(
        "--filters", type=whole_numbers, default=[1], metavar="N,…", help="filter processes; 1,2 compares"
    )
    parser.add_argument(
        "--learning", action="store_true", help="chats without and with a worker that learns beside them"
    )
    add_database(parser)
    options = parser.parse_args()
    report = Report("load", BARS, options.json)
    runs: dict[int, dict[str, Compared]] = {}
    for filters in options.filters:
        once = options if not runs else argparse.Namespace(**{**vars(options), "learning": False})
        with (
            rig_with_database("--filters", str(filters), is_postgres=options.postgres) as rig,
            Progress(transient=True) as progress,
        ):
            runs[filters] = uvloop.run(measure(rig, once, report.failures, progress))
    sheets = [
        Sheet(f"{filters} filter{'s' * (filters > 1)}", COLUMNS, [one.row() for one in found.values()])
        for filters, found in runs.items()
    ]
    if len(runs) > 1:
        sheets.append(compared(runs))
    shown, databases = figures(runs[options.filters[0]]), dict[str, Compared]()
    if options.postgres:
        with rig_with_database(is_postgres=False) as on_sqlite, rig_with_database(is_postgres=True) as on_postgres:
            rigs = {"SQLite": on_sqlite, "PostgreSQL": on_postgres}
            databases = uvloop.run(databases_in_turn(rigs, options, report.failures))
        sheets.append(Sheet("databases in turn", COLUMNS, [one.row() for one in databases.values()]))
        costs = [one.summary()["cpu_ms_a_chat"].get("filter", math.nan) for one in databases.values()]
        shown["PostgreSQL: CPU of the filter, against SQLite"] = ratio(costs[1], costs[0])
    result = {
        "settings": {name: value for name, value in vars(options).items() if name != "json"},
        "filters": {
            str(filters): {name: one.summary() for name, one in found.items()} for filters, found in runs.items()
        },
        "databases": {name: one.summary() for name, one in databases.items()},
    }
    return report.finish(result, sheets, shown)


def compared(runs: dict[int, dict[str, Compared]]) -> Sheet:
    """The best load of each number of filters: notes a second, against the first, and cores that the filters used."""
    tops = {filters: best(found) for filters, found in runs.items()}
    first = next(iter(tops.values())).ours.notes_a_second
    rows = [
        (filters, one.name, one.ours.notes_a_second, ratio(one.ours.notes_a_second, first), cores_of(one))
        for filters, one in tops.items()
    ]
    return Sheet("filters compared", ("filters", "best load", "notes/s", "against the first", "cores used"), rows)


def cores_of(one: Compared) -> float:
    return float(one.summary()["cores_of_the_filters"])


def whole_numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
