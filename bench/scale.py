"""Measures how far one machine goes: chats and learning against filter processes, memories of a user, and users.

`python bench/scale.py [--seconds 8] [--clients 8] [--turns 200] [--postgres] [--docs]`. Each point starts the product
with its own store (`--postgres`: and PostgreSQL server) and changes one number of a base: 1 filter, 20 users with 1,000
memories each (100 each where users are counted). The last memory of each user is saved through REST, so that their set
gets a snapshot, as in use. A point is the chats per second that searched and got a note, those that were skipped
(closed loops), and the turns that one worker learns per second. Processor time of the filters shows what one core
carries where clients, upstream and Envoy share the machine: two filters give 1.6 times the chats of one only where they
find idle cores, which "cores used" shows. `--docs` writes the curves to `docs/images/scale.svg` and the table into
`docs/scaling.md`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop
from chats import Answer, Chats, chat, connected
from curves import Curve, CurvePanel, drawn_curves
from databases import add_database, rig_with_database
from imported_turns import Learnt, learnt
from memories import fill, new_questions, save_last
from report import Bar, Report, Sheet, bench_parser, ratio, this_machine
from rich.progress import Progress
from rig import Rig
from turns import exchanges

from memory.processes.composition import open_embedder
from memory.settings.loader import from_process

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, IMAGE = DOCS / "scaling.md", DOCS / "images" / "scale.svg"
BEGIN, END = "<!-- bench/scale.py: begin -->\n", "<!-- bench/scale.py: end -->\n"
BARS = (
    Bar("searched chats of two filters, against one", at_least=1.6),
    Bar("share with a note with 5,000 memories", at_least=0.99),
    Bar("searched chats with 200 users, against 20", at_least=0.8),
    Bar("searched chats with 5,000 memories, against 1,000", at_least=0.5),
    Bar("failed chats", at_most=0),
    Bar("turns not learnt", at_most=0),
)
WARM_SECONDS_MAX = 240.0
WARM_MS_MAX = 40.0  # with the set in memory; a search of the store takes longer
COSTS = ("filter's CPU per searched chat", "per skipped chat", "turns learnt/s", "worker's CPU per turn")
COLUMNS = (
    *("filters", "users", "memories each", "searched/s", "cores used", "of", "with a note", "p50, ms", "skipped/s"),
    *("filter CPU ms, searched", "skipped", "learnt/s", "worker CPU ms"),
)


@dataclass(frozen=True, slots=True)
class Setup:
    filters: int
    users: int
    memories: int


@dataclass(frozen=True, slots=True)
class Rate:
    """Of one closed loop: chats a second, the share with a note, the median, the filters' CPU for each chat, and the
    cores that filters and all that is measured used, the bench included.
    """

    a_second: float
    share: float
    median_ms: float
    filter_cpu_ms: float
    cores: float
    failed: int


@dataclass(frozen=True, slots=True)
class Point:
    setup: Setup
    searched: Rate
    skipped: Rate
    learnt: Learnt

    def row(self) -> tuple[object, ...]:
        searched, skipped = self.searched, self.skipped
        cores = (searched.cores, this_machine().cores)
        chats = (searched.a_second, *cores, searched.share, searched.median_ms, skipped.a_second)
        costs = (searched.filter_cpu_ms, skipped.filter_cpu_ms, self.learnt.a_second, self.learnt.worker_cpu_ms)
        return self.setup.filters, self.setup.users, self.setup.memories, *chats, *costs


BY_FILTERS = (Setup(1, 20, 1_000), Setup(2, 20, 1_000))
BY_MEMORIES = (Setup(1, 20, 100), Setup(1, 20, 1_000), Setup(1, 20, 5_000))
BY_USERS = (Setup(1, 1, 100), Setup(1, 20, 100), Setup(1, 200, 100))
SETUPS = tuple(dict.fromkeys((*BY_FILTERS, *BY_MEMORIES, *BY_USERS)))


class Scale:
    """One point. Chats are not recorded, so that the worker rests until it is measured."""

    def __init__(self, rig: Rig, setup: Setup, failures: Counter[str]) -> None:
        self._rig, self._failures = rig, failures
        self._users = [f"scale-{number}" for number in range(setup.users)]
        self._questions, self._next = new_questions(), itertools.count()

    def asking(self) -> bytes:
        return chat(next(self._questions), self._user(), auto_store=False)

    def thanking(self) -> bytes:
        return chat("Thank you very much!", self._user(), auto_store=False)

    def _user(self) -> str:
        return self._users[next(self._next) % len(self._users)]

    async def warm(self, filters: int) -> None:
        """Ask for each user until every filter had the chance to load what it knows of them and answers from it."""
        until = time.monotonic() + WARM_SECONDS_MAX
        async with connected(self._rig.port, 1, self._failures) as [chats]:
            for user in self._users:
                found = 0
                while found < 2 * filters and time.monotonic() < until:
                    answer = await chats.ask(chat(next(self._questions), user, auto_store=False))
                    found += answer.memory_status == "used" and answer.milliseconds < WARM_MS_MAX

    async def closed(self, body: Callable[[], bytes], *, wanted: str, clients: int, seconds: float) -> Rate:
        answers: list[Answer] = []

        async def ask_on(chats: Chats) -> None:
            while time.perf_counter() < until:
                answers.append(await chats.ask(body()))

        async with connected(self._rig.port, clients, self._failures) as every:
            spent, began = self._rig.cpu_seconds(), time.perf_counter()
            until = began + seconds
            await asyncio.gather(*map(ask_on, every))
            took, spent = time.perf_counter() - began, self._rig.cpu_seconds() - spent
        found = [answer for answer in answers if not answer.failure and answer.memory_status == wanted]
        times = sorted(answer.milliseconds for answer in answers)
        cost = ratio(1000 * spent["filter"], len(answers))
        failed = sum(bool(answer.failure) for answer in answers)
        share = ratio(len(found), len(answers))
        return Rate(len(found) / took, share, times[len(times) // 2], cost, spent.total() / took, failed)


async def measured(setup: Setup, rig: Rig, options: argparse.Namespace, failures: Counter[str]) -> Point:
    async with open_embedder(from_process(None, {})) as embedder:
        users = [f"scale-{number}" for number in range(setup.users)]
        milvus = rig.product.store_uri
        await fill(milvus, embedder, dict.fromkeys(users, setup.memories - 1))
    await save_last(rig.product.api, users, failures)
    scale = Scale(rig, setup, failures)
    await scale.warm(setup.filters)
    how = {"clients": options.clients, "seconds": options.seconds}
    searched = await scale.closed(scale.asking, wanted="used", **how)
    skipped = await scale.closed(scale.thanking, wanted="skipped", **how)
    return Point(setup, searched, skipped, await learnt(rig, users, exchanges(options.turns), failures))


def figures(points: dict[Setup, Point]) -> dict[str, float]:
    def against(one: Setup, other: Setup) -> float:
        return ratio(points[one].searched.a_second, points[other].searched.a_second)

    return {
        "searched chats of two filters, against one": against(BY_FILTERS[1], BY_FILTERS[0]),
        "share with a note with 5,000 memories": points[BY_MEMORIES[2]].searched.share,
        "searched chats with 200 users, against 20": against(BY_USERS[2], BY_USERS[1]),
        "searched chats with 5,000 memories, against 1,000": against(BY_MEMORIES[2], BY_MEMORIES[1]),
        "failed chats": sum(point.searched.failed + point.skipped.failed for point in points.values()),
        "turns not learnt": sum(point.learnt.left_over for point in points.values()),
    }


def picture(points: dict[Setup, Point]) -> str:
    def panel(title: str, setups: Sequence[Setup], steps: Sequence[int]) -> CurvePanel:
        row = [points[setup] for setup in setups]
        curves = (
            Curve("searched/s", [point.searched.a_second for point in row]),
            Curve("skipped/s", [point.skipped.a_second for point in row]),
            Curve("turns learnt/s", [point.learnt.a_second for point in row]),
        )
        return CurvePanel(title, [f"{step:,}" for step in steps], curves)

    panels = (
        panel("filter processes (20 users, 1,000 memories each)", BY_FILTERS, [one.filters for one in BY_FILTERS]),
        panel("memories of a user (1 filter, 20 users)", BY_MEMORIES, [one.memories for one in BY_MEMORIES]),
        panel("users (1 filter, 100 memories each)", BY_USERS, [one.users for one in BY_USERS]),
    )
    return drawn_curves("Chats and learning a second, on one machine", panels)


def markdown(points: dict[Setup, Point], *, is_postgres: bool) -> str:
    """As it stands in the documentation, with the machine that it was measured on."""
    machine = this_machine()
    head = ("filters", "users", "memories of each", "searched/s", "got a note", "skipped/s", *COSTS)
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for setup, point in points.items():
        rates = f"{point.searched.a_second:.0f} | {point.searched.share:.2f} | {point.skipped.a_second:.0f}"
        costs = f"{point.searched.filter_cpu_ms:.1f} ms | {point.skipped.filter_cpu_ms:.1f} ms"
        learning = f"{point.learnt.a_second:.0f} | {point.learnt.worker_cpu_ms:.0f} ms"
        lines.append(f"| {setup.filters} | {setup.users} | {setup.memories:,} | {rates} | {costs} | {learning} |")
    state = "on PostgreSQL" if is_postgres else "in SQLite"
    where = f"`bench/scale.py` with state {state}, on {machine.cores} cores, which clients, upstream and Envoy share."
    return "\n".join([*lines, "", where, ""])


def write_docs(points: dict[Setup, Point], table: str) -> None:
    IMAGE.write_text(picture(points), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{table}{END}{after}", encoding="utf-8")


def main() -> int:
    parser = bench_parser("scale", __doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each load")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--turns", type=int, default=200, help="to learn, at each point")
    add_database(parser)
    parser.add_argument("--docs", action="store_true", help="write picture and table into the documentation")
    options = parser.parse_args()
    report = Report("scale", BARS, options.json)
    points: dict[Setup, Point] = {}
    with Progress(transient=True) as progress:
        for setup in progress.track(SETUPS, description="points"):
            with rig_with_database("--filters", str(setup.filters), is_postgres=options.postgres) as rig:
                points[setup] = uvloop.run(measured(setup, rig, options, report.failures))
    table = markdown(points, is_postgres=options.postgres)
    if options.docs:
        write_docs(points, table)
    settings = {name: value for name, value in vars(options).items() if name != "json"}
    result = {"settings": settings, "points": [asdict(point) for point in points.values()]}
    sheet = Sheet("one machine", COLUMNS, [point.row() for point in points.values()])
    code = report.finish(result, [sheet], figures(points))
    print(table)
    return code


if __name__ == "__main__":
    sys.exit(main())
