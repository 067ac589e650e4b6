"""Measures what rows of raw words cost on Milvus Lite: reading a user's memories, writing one more, and forgetting.

Also what an answer costs: the worker's CPU for embedding it, and for its passages if each were embedded; the search for
answers, and their comparison by words. And which of the answers in `bench/answers.jsonl` their questions find.

`python bench/raw_words.py [ROWS]`: one user with 500 memories, before and after so many rows of raw words are in the
same collection, of a hundred users. Forgetting looks for the words of a memory in a record of 10,000 turns, under the
user's lock, and for their rows. Times are milliseconds, the median of some rounds.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from prometheus_client import CollectorRegistry
from report import Bar, Report, Sheet, bench_parser
from rig import free_port

from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.models.embedding_model import prepared
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.model import Candidate, Change, ChangeKind, Memory, MemoryStatus, Message, Scope, Turn, TurnStatus
from memory.model.raw_words import ANSWERED, answer_rows_of, embedded_text, passages_of
from memory.ports import MemoryFilter
from memory.recall.past_conversations import ANSWERS_MAX, PastTalkQuestion, answers_to, by_words
from memory.runtime.metrics import Metrics
from memory.service.raw_word_search import RawWordSearch
from memory.settings import EmbeddingSettings
from memory.settings.loader import from_process

ROWS = 20_000
MEMORIES = 500
USERS = 100
TALKER = "dora"
TURNS = 10_000
ROUNDS = 21
FORGET_ROUNDS = 3
DIMENSION = 384
SCORES = (0.3, 0.35, 0.4, 0.45, 0.5)  # of an answer: `ANSWER_MIN` and `ELSEWHEN_MIN` are among them
BATCH = 500
START = 1_700_000_000.0
ANSWER = "\n".join(
    f"{number}. The train to the coast leaves at {number} from platform {number}, and takes an hour and a half. "
    "It has a dining car, and places for bicycles that must be reserved on the day before."
    for number in range(1, 6)
)
ANSWERS = Path(__file__).with_name("answers.jsonl")  # written for this bench: a question, and what it asks about
START_SECONDS_MAX = 60.0
LOOK_SECONDS = 0.2
BARS = (
    Bar("load with raw words", "ms", at_most=1_000),
    Bar("search with raw words", "ms", at_most=1_000),
    Bar("add with raw words", "ms", at_most=250),
    Bar("forget with raw words", "ms", at_most=5_000),
    Bar("right answer first", at_least=0.9),
    Bar("right passage first", at_least=0.9),
)


async def main() -> int:
    parser = bench_parser("raw_words", __doc__)
    parser.add_argument("rows", nargs="?", type=int, default=ROWS)
    options = parser.parse_args()
    report = Report("raw_words", BARS, options.json)
    with tempfile.TemporaryDirectory(prefix="memproxy-") as folder, milvus_lite(Path(folder)) as uri:
        address = MilvusAddress(uri, "memories", DIMENSION)
        async with MilvusStore(address, metrics=Metrics(CollectorRegistry())) as store:
            await ready(store)
            await fill(store, "ann", MEMORIES, MemoryStatus.ACTIVE)
            took = {f"{name} without": ms for name, ms in (await measured(store, "first")).items()}
            for user in range(USERS):
                await fill(store, f"user{user}", options.rows // USERS, MemoryStatus.RAW)
            took |= {f"{name} with raw words": ms for name, ms in (await measured(store, "second")).items()}
            took["search answers with raw words"] = await searching_answers(store)
            took["forget with raw words"] = await forgetting(store, Path(folder))
    model = OnnxModel(prepared(EmbeddingSettings().model, from_process(None, {}).models_path))
    [row] = answer_rows_of(asked_turn(0), ANSWER, question=said("now"))
    took["CPU for an answer"] = cpu_of(model, [embedded_text(row)])
    took["CPU for its passages"] = cpu_of(model, passages_of(ANSWER))
    took["compare answers by words"] = comparing(row)
    sheet = Sheet(f"{options.rows:,} rows of raw words", ("what", "ms"), list(took.items()))
    found, thresholds = finding(model)
    return report.finish(
        {"rows": options.rows, "ms": took, "found": found, "thresholds": thresholds},
        [
            sheet,
            Sheet("questions about answers", ("share of them with the", "is"), list(found.items())),
            Sheet("at least that score", ("score", "the right answer", "another one, if it is missing"), thresholds),
        ],
        {bar.name: (took | found)[bar.name] for bar in BARS},
    )


@contextmanager
def milvus_lite(folder: Path) -> Iterator[str]:
    port = free_port()
    words = [str(Path(sys.executable).parent / "memproxy"), "milvus-lite", "server"]
    words += ["--data-dir", str(folder / "milvus"), "--address", f"127.0.0.1:{port}"]
    with (folder / "log").open("wb") as log, subprocess.Popen(words, stdout=log, stderr=log) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


async def ready(store: MilvusStore) -> None:
    for _ in range(round(START_SECONDS_MAX / LOOK_SECONDS)):
        if await store.is_ready():
            return
        await asyncio.sleep(LOOK_SECONDS)
    raise AssertionError("milvus-lite server did not start")


async def fill(store: MilvusStore, user: str, count: int, status: MemoryStatus) -> None:
    for first in range(0, count, BATCH):
        await add(store, [row(user, f"{user}-{n}", status) for n in range(first, min(count, first + BATCH))])


def row(user: str, memory_id: str, status: MemoryStatus) -> Memory:
    return Memory(
        memory_id,
        user,
        said(memory_id),
        created_at=START,
        updated_at=START,
        said_at=START,
        status=status,
        memory_type="episodic",
    )


def said(number: str) -> str:
    return f"{number}: could you look up when the next train to the coast leaves, and whether it is on time?"


def asked_turn(number: int) -> Turn:
    return Turn(f"asked-{number}", Scope("ann", session_id="s"), START + number, ())


async def add(store: MilvusStore, rows: list[Memory]) -> None:
    seeds = np.random.default_rng(len(rows))
    vectors = seeds.standard_normal((len(rows), DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    await store.apply(rows[0].user_id, [Change(ChangeKind.CREATE, one) for one in rows], vectors)


async def measured(store: MilvusStore, name: str) -> dict[str, float]:
    where, vector = MemoryFilter("ann"), np.full(DIMENSION, DIMENSION**-0.5, dtype=np.float32)
    numbers = iter(range(ROUNDS))

    async def one_more() -> None:
        await add(store, [row("bob", f"{name}-{next(numbers)}", MemoryStatus.RAW)])

    return {
        "load": await median(lambda: store.load(where, limit=2 * MEMORIES)),
        "search": await median(lambda: store.search(where, vector, limit=50)),
        "add": await median(one_more),
    }


async def searching_answers(store: MilvusStore) -> float:
    for number in range(MEMORIES):
        await add(store, answer_rows_of(asked_turn(number), ANSWER, question=said("now")))
    where = MemoryFilter("ann", status=MemoryStatus.RAW, source=ANSWERED)
    vector = np.full(DIMENSION, DIMENSION**-0.5, dtype=np.float32)
    return await median(lambda: store.search(where, vector, limit=ANSWERS_MAX))


def cpu_of(model: OnnxModel, texts: Sequence[str]) -> float:
    """Milliseconds of all threads, for the embeddings of these."""
    return cpu(lambda: [model.vector(model.prefixes.document + text) for text in texts])


def comparing(row: Memory) -> float:
    """Milliseconds from so many nearest answers to the passages of a note."""
    found = [Candidate(row, score=0.5)] * ANSWERS_MAX
    asked = PastTalkQuestion(said("then"), np.zeros(DIMENSION, dtype=np.float32), Scope("ann"), START)
    return cpu(lambda: answers_to(asked, found))


def cpu(work: Callable[[], object]) -> float:
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        took.append((time.process_time() - began) * 1000)
    return round(statistics.median(took), 1)


def finding(model: OnnxModel) -> tuple[dict[str, float], list[tuple[float, float, float]]]:
    """Shares of the questions, each asked of all answers; and by score, of all answers but its own."""
    examples = [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]
    texts = enumerate((one["answer"], one["asked"]) for one in examples)
    rows = [row for n, (text, asked) in texts for row in answer_rows_of(asked_turn(n), text, question=asked)]
    vectors = [model.vector(model.prefixes.document + embedded_text(row)) for row in rows]
    alone, first, passage, own, others = [], [], [], [], []
    for number, one in enumerate(examples):
        vector = model.vector(model.prefixes.query + one["question"])
        found = [Candidate(row, score=float(vector @ of_row)) for row, of_row in zip(rows, vectors, strict=True)]
        ranked = by_words(one["question"], found)
        asked = PastTalkQuestion(one["question"], vector, Scope("ann"), START)
        alone.append(max(found, key=lambda it: it.score).memory is rows[number])
        first.append(ranked[0].memory is rows[number])
        passage.append(one["has"] in answers_to(asked, found)[0].text)
        own.append(next(it.score for it in ranked if it.memory is rows[number]))
        others.append(by_words(one["question"], [it for it in found if it.memory is not rows[number]])[0].score)
    shares = {"right answer first": first, "the same without words": alone, "right passage first": passage}
    scores = ((least, *(float(np.mean(np.array(s) >= least)) for s in (own, others))) for least in SCORES)
    return {name: float(np.mean(values)) for name, values in shares.items()}, list(scores)


async def forgetting(store: MilvusStore, folder: Path) -> float:
    """To find what goes with one memory, with all that the user said on record."""
    async with SqliteDatabase(folder / "ledger.sqlite") as database:
        ledger, log = SqlUserLedger(database, clock=lambda: START), SqlTurnLog(database, clock=lambda: START)
        for n in range(TURNS):
            said = (Message("user", row(TALKER, f"{TALKER}-{n}", MemoryStatus.RAW).content),)
            scope = Scope(TALKER, session_id="s")
            await log.append(Turn(f"turn-{n}", scope, START, said, status=TurnStatus.CLOSED, answer=ANSWER))
        memory = row(TALKER, f"{TALKER}-7", MemoryStatus.ACTIVE)

        async def find() -> None:
            async with ledger.write(TALKER) as held:
                found = await RawWordSearch(store, log).of_memories(TALKER, [memory], held)
                assert found.turn_ids == ("turn-7",), found

        return await median(find, rounds=FORGET_ROUNDS)


async def median(call: Callable[[], Awaitable[object]], *, rounds: int = ROUNDS) -> float:
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        await call()
        took.append(time.perf_counter() - began)
    return round(statistics.median(took) * 1_000, 1)


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
