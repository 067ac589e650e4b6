"""Measures whether a chat costs the same in another form: through `/v1/responses`, and with compaction.

`python bench/shapes.py [--memories 1000] [--seconds 6]`. One client. The kinds of chats that are compared take turns,
chat by chat, each at a bare Envoy and at the product, so that other load on the machine affects all of them alike.
Every question is a new text and needs memory; chats are recorded and learnt like any other.

Compaction: the client sends the history of a chat of 200 turns with each question; one user asks for compaction, one
does not. It is measured once the state is ready, and the receipts tell which chats were compacted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop
from chats import Chats, Rest
from memories import fill, new_questions
from report import Bar, Report, Sheet, bench_parser, ratio
from rich.progress import Progress
from rig import Rig, running_rig
from sides import COLUMNS, Compared

from memory.processes.composition import open_embedder
from memory.settings.loader import from_process

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from api_shapes import ASKED_COMPLETIONS, SHAPES, AskedShape  # isort: skip
from long_chats import FIRST  # isort: skip

BARS = (
    Bar("responses: added p50, against completions", "ms", at_most=0.3),
    Bar("responses: share with a note", at_least=0.99),
    Bar("compacted request: added p50, against the same without", "ms", at_most=0.5),
    Bar("compacted request: share compacted", at_least=0.99),
    Bar("failed chats", at_most=0),
)
READY_SECONDS_MAX = 60.0  # until the user's memories are held, and the state of the long chat is prepared
RECEIPTS_READ = 50
TIMES = COLUMNS.index("filter CPU")  # chats of different kinds alternate, so their CPU cannot be told apart


@dataclass
class Kind:
    """One kind of chats. `body` makes the next one; `receipts` of those that the product answered."""

    compared: Compared
    shape: AskedShape
    user: str
    body: Callable[[str], dict[str, Any]]
    receipts: list[str] = field(default_factory=list)

    def next_body(self, question: str) -> bytes:
        return json.dumps({**self.body(question), "memory_context": {"user_id": self.user}}).encode()


class Bench:
    def __init__(self, rig: Rig, failures: Counter[str]) -> None:
        self._rig, self._failures = rig, failures
        self._questions: Iterator[str] = new_questions()

    async def take_turns(self, kinds: Sequence[Kind], seconds: float) -> None:
        """One chat of each kind after the other, at both Envoys, until the time is over."""
        pairs = [(kind, self._client(kind, self._rig.bare_port), self._client(kind, self._rig.port)) for kind in kinds]
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            for kind, bare, ours in pairs:
                body = kind.next_body(next(self._questions))
                await kind.compared.bare.ask(bare, body)
                kind.receipts.append((await kind.compared.ours.ask(ours, body)).receipt)
        for kind, bare, ours in pairs:
            for side, client in ((kind.compared.bare, bare), (kind.compared.ours, ours)):
                side.seconds = sum(side.milliseconds) / 1000
                client.close()

    async def warm(self, kind: Kind, *, until_compacted: bool = False) -> None:
        """Ask until memory is held, and the state ready where it is wanted, or for so long that it never will be."""
        ends_at, client = time.monotonic() + READY_SECONDS_MAX, self._client(kind, self._rig.port)
        while time.monotonic() < ends_at:
            answer = await client.ask(kind.next_body(next(self._questions)))
            is_held = answer.memory_status == "used"
            if is_held and (not until_compacted or await self.compacted(kind.user, [answer.receipt]) == 1.0):
                break
            await asyncio.sleep(0.05)
        client.close()

    async def compacted(self, user: str, receipts: Sequence[str]) -> float:
        """The share of these chats, of a sample where they are many, whose history was replaced."""
        sample = receipts[:: max(1, len(receipts) // RECEIPTS_READ)]
        async with Rest(self._rig.product.api, self._failures) as rest:
            found = [await self._receipt(rest, user, receipt) for receipt in sample]
        return ratio(sum(one.get("signals", {}).get("compacted_messages", 0) > 0 for one in found), len(found))

    async def _receipt(self, rest: Rest, user: str, receipt: str) -> dict[str, Any]:
        """It is written behind the chat."""
        for _ in range(20):
            if found := await rest.get(f"/v1/memory/receipts/{receipt}", user, may_be_missing=True):
                return found
            await asyncio.sleep(0.05)
        return {}

    def _client(self, kind: Kind, port: int) -> Chats:
        return Chats(port, self._failures, kind.shape.shape.path)


def short_chats(shape: AskedShape, user: str) -> Kind:
    return Kind(Compared(shape.name), shape, user, lambda question: shape.body([said(question)]))


def long_chats(name: str, user: str, *, compact: bool) -> Kind:
    history = FIRST.messages()

    def body(question: str) -> dict[str, Any]:
        return ASKED_COMPLETIONS.body([*history, said(question)], memory_config={"compact": compact})

    return Kind(Compared(name), ASKED_COMPLETIONS, user, body)


def said(question: str) -> dict[str, str]:
    return {"role": "user", "content": question}


async def measure(
    rig: Rig, options: argparse.Namespace, failures: Counter[str], progress: Progress
) -> tuple[list[Kind], float]:
    """All kinds, and the share of the chats that asked for compaction and got it."""
    stages = progress.add_task("filling", total=None)
    short = [short_chats(shape, "asker") for shape in SHAPES]
    full = long_chats("200 turns", "talker", compact=False)
    compacting = long_chats("200 turns, compacted", "compacted-talker", compact=True)
    async with open_embedder(from_process(None, {})) as embedder:
        milvus = rig.product.store_uri
        await fill(milvus, embedder, dict.fromkeys(("asker", full.user, compacting.user), options.memories))
    bench = Bench(rig, failures)
    for kind in (*short, full, compacting):
        await bench.warm(kind, until_compacted=kind is compacting)
    progress.update(stages, description="completions and responses")
    await bench.take_turns(short, options.seconds)
    progress.update(stages, description="with and without compaction")
    await bench.take_turns((full, compacting), options.seconds)
    return [*short, full, compacting], await bench.compacted(compacting.user, compacting.receipts)


def figures(kinds: Sequence[Kind], share_compacted: float) -> dict[str, float]:
    completions, responses, full, compacting = (kind.compared.summary() for kind in kinds)
    return {
        "responses: added p50, against completions": responses["added"]["p50"] - completions["added"]["p50"],
        "responses: share with a note": responses["share_with_a_note"],
        "compacted request: added p50, against the same without": compacting["added"]["p50"] - full["added"]["p50"],
        "compacted request: share compacted": share_compacted,
        "failed chats": sum(kind.compared.ours.statuses["failed"] for kind in kinds),
    }


def main() -> int:
    parser = bench_parser("shapes", __doc__)
    parser.add_argument("--memories", type=int, default=1_000, help="of each user")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each comparison")
    options = parser.parse_args()
    report = Report("shapes", BARS, options.json)
    with running_rig() as rig, Progress(transient=True) as progress:
        kinds, share_compacted = uvloop.run(measure(rig, options, report.failures, progress))
    sheet = Sheet("one client", COLUMNS[:TIMES], [kind.compared.row()[:TIMES] for kind in kinds])
    settings = {name: value for name, value in vars(options).items() if name != "json"}
    result = {"settings": settings, **{kind.compared.name: kind.compared.summary() for kind in kinds}}
    return report.finish(result, [sheet], figures(kinds, share_compacted))


if __name__ == "__main__":
    sys.exit(main())
