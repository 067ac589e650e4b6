"""Measures what bodies of 1 MB, made to be slow, do to the chats of somebody else.

`python bench/large_bodies.py [--memories 1000] [--seconds 60] [--only KIND]`. One client asks as a user with memories,
at a bare Envoy and at the product by turns. In every second slice another client sends large bodies to the product
without a pause, one kind after the other: long runs of one class of characters, text that is full of almost-secrets,
escapes in escapes, a great many messages. How much later the others' chats are is the difference of what the product
adds to a bare Envoy with and without these bodies: what they cost Envoy, the upstream and this machine is subtracted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator

import uvloop
from chats import Chats, chat, connected
from memories import fill, new_questions
from report import Bar, Report, Sheet, bench_parser, percentiles, ratio
from rich.progress import Progress
from rig import Rig, running_rig
from sides import COLUMNS, Compared

from memory.processes.composition import open_embedder
from memory.settings.loader import from_process

BARS = (
    Bar("beside large bodies: share with a note", at_least=0.99),
    Bar("beside large bodies: delayed p99", "ms", at_most=50.0),
    Bar("failed chats", at_most=0),
)
BODY_BYTES = 1_000_000
SLICES = 10  # half of them without large bodies
READY_SECONDS_MAX = 60.0
TIMES = COLUMNS.index("filter CPU")  # other parts' CPU goes mostly to the large bodies
VICTIM, SENDER = "ann", "mallory"

PIECES = {
    "letters": "a",
    "spaces": " ",
    "digits": "4111",
    "line ends": "\n",
    "backslashes": "\\",
    "quotes": '"',
    "emphasis": "**",
    "Han": "密码",
    "odd spaces": "\u00a0\u200b",
    "labels": "my password is ",
    "almost passwords": "my pin, and the password of my card is on the ",
    "almost cards": "4111 1111 1111 1112 ",
    "almost accounts": "DE54 3704 0044 0532 0172 18 ",
    "almost keys": "api_key=sk-proj-aB3dE5fG7hJ9kL1mN2p ",
    "almost phrases": "lumber ocean pigeon tennis orbit cradle the ",
    "dates": "on 3 May 2024 at 10:30, ",
    "questions": "Where did I put it? ",
    "facts": "I live in Porto. ",
    "braces": '{"a": [',
    "urls": "://a:b@",
    "sentences": "I moved to Porto with Tom, since we wanted to. ",
}


def bodies() -> Iterator[tuple[str, bytes]]:
    """Each kind once; its name, and the body of its chat."""
    context = {"user_id": SENDER}
    for name, piece in PIECES.items():
        text = (piece * (BODY_BYTES // len(piece)))[:BODY_BYTES]
        yield name, chat(text, SENDER)
        if name == "labels":
            for _ in range(4):
                text = json.dumps({"a": text})[: BODY_BYTES // 2]
            yield "escapes in escapes", chat(text, SENDER)
    many = [{"role": ("user", "assistant")[number % 2], "content": "my pin is 4471"} for number in range(20_000)]
    yield "many messages", json.dumps({"model": "m", "messages": many, "memory_context": context}).encode()


class Bench:
    def __init__(self, rig: Rig, failures: Counter[str], only: str) -> None:
        self._rig, self._failures = rig, failures
        self._questions = new_questions()
        self._bodies = [(name, body) for name, body in bodies() if only in name]
        self.sent: Counter[str] = Counter()
        self.slowest: Counter[str] = Counter()  # ms of the slowest chat beside each kind
        self._kind = ""

    async def measured(self, seconds: float) -> tuple[Compared, Compared]:
        """Without large bodies, and beside them."""
        quiet, beside = Compared("without large bodies"), Compared("beside large bodies")
        async with (
            connected(self._rig.bare_port, 1, self._failures) as [bare],
            connected(self._rig.port, 1, self._failures) as [ours],
            connected(self._rig.port, 1, self._failures) as [sender],
        ):
            await self._warm(ours)
            for number in range(SLICES):
                one = (quiet, beside)[number % 2]
                sending = asyncio.create_task(self._send(sender)) if one is beside else None  # noqa: TID251
                await self._ask(one, bare, ours, seconds / SLICES)
                if sending is not None:
                    sending.cancel()
                    sender.close()
                    self._kind = ""
                    await asyncio.sleep(1.0)  # what was begun ends
        return quiet, beside

    async def _ask(self, one: Compared, bare: Chats, ours: Chats, seconds: float) -> None:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            body = chat(next(self._questions), VICTIM)
            await one.bare.ask(bare, body)
            kind = self._kind
            answer = await one.ours.ask(ours, body)
            self.slowest[kind] = max(self.slowest[kind], round(answer.milliseconds))
        for side in (one.bare, one.ours):
            side.seconds = sum(side.milliseconds) / 1000

    async def _send(self, sender: Chats) -> None:
        while True:
            self._kind, body = self._bodies[self.sent.total() % len(self._bodies)]
            self.sent[self._kind] += 1
            await sender.ask(body)

    async def _warm(self, ours: Chats) -> None:
        ends_at, status = time.monotonic() + READY_SECONDS_MAX, ""
        while status != "used" and time.monotonic() < ends_at:
            status = (await ours.ask(chat(next(self._questions), VICTIM))).memory_status


async def measure(rig: Rig, options: argparse.Namespace, failures: Counter[str]) -> tuple[Compared, Compared, Bench]:
    async with open_embedder(from_process(None, {})) as embedder:
        await fill(rig.product.store_uri, embedder, {VICTIM: options.memories})
    bench = Bench(rig, failures, options.only)
    return (*await bench.measured(options.seconds), bench)


def main() -> int:
    parser = bench_parser("large_bodies", __doc__)
    parser.add_argument("--memories", type=int, default=1_000, help="of the user who asks")
    parser.add_argument("--seconds", type=float, default=60.0, help="in all, half of them beside large bodies")
    parser.add_argument("--only", default="", metavar="KIND", help="only bodies whose kind has this in its name")
    options = parser.parse_args()
    report = Report("large_bodies", BARS, options.json)
    with running_rig() as rig, Progress(transient=True) as progress:
        progress.add_task("asking", total=None)
        quiet, beside, bench = uvloop.run(measure(rig, options, report.failures))
    sheets = [
        Sheet("chats of another user", COLUMNS[:TIMES], [one.row()[:TIMES] for one in (quiet, beside)]),
        Sheet(
            "the slowest beside each kind",
            ("kind", "sent", "ms"),
            [(name or "none", bench.sent[name], took) for name, took in bench.slowest.most_common()],
        ),
    ]
    added = {name: p99_added(one) for name, one in (("quiet", quiet), ("beside", beside))}
    figures = {
        "beside large bodies: share with a note": ratio(beside.ours.statuses["used"], beside.ours.statuses.total()),
        "beside large bodies: delayed p99": added["beside"] - added["quiet"],
        "failed chats": quiet.ours.statuses["failed"] + beside.ours.statuses["failed"],
    }
    result = {"quiet": quiet.summary(), "beside": beside.summary(), "sent": dict(bench.sent)}
    return report.finish(result, sheets, figures)


def p99_added(one: Compared) -> float:
    return percentiles(one.ours.milliseconds)["p99"] - percentiles(one.bare.milliseconds)["p99"]


if __name__ == "__main__":
    sys.exit(main())
