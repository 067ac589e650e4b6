"""Fits from which evidence on a memory counts as relevant: `even`, `doubling` and `slope` of `memory.ranking.bar`.

`python bench/calibrate_recall.py [FACTS.jsonl …]`, by default the blind sets and the one about abstention below
tests/data; `--config FILE` for another embedding model. A file is in the format of `memproxy eval recall`.

Questions whose answer is among the memories, against those without one, weigh the same; each is asked of 1, 2, 4 …
memories. A logistic regression of the best memory's evidence, beyond what the question's form adds to the bar, and of
the number of memories gives the log odds that it answers: of a single memory they are even at `even`, by `doubling`
more whenever the number doubles, and rise by `slope`. Prints the three, and in how many pairs of one of each the former
has more evidence.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from report import Bar, Report, Sheet, bench_parser
from rich.console import Console
from rich.progress import track

from memory.evaluation.dataset import USER, RecallCase, read_recall
from memory.model import Conversation, Message, Question, Record, Role, Scope
from memory.ports import Embedder
from memory.processes.composition import open_embedder
from memory.recall.query import build_query
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.ranking import rank
from memory.recall.ranking.relevance import doublings
from memory.recall.ranking.weights import DEFAULT_RANKING
from memory.settings.loader import from_process

DATA = Path(__file__).parent.parent / "tests" / "data"
FILES = (*sorted((DATA / "blind").glob("*_recall.jsonl")), DATA / "abstention.jsonl")
BARS = (Bar("pairs in order", at_least=0.86),)
RIDGE = 1e-3
NEWTON_STEPS = 50
SIZES = (1, 2, 4, 8, 16)  # memories of a user: the more there are, the likelier one resembles any question
SEED = 7
SURE = 1e-9  # of a probability: beyond it, its log odds say nothing more

Floats = npt.NDArray[np.float64]


async def evidence(cases: Sequence[RecallCase], embedder: Embedder) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Shape `(cases and sizes, 2)`: the best memory's evidence in the unit of the weights, as if no question moved the
    bar, and how often the number of memories doubles from one; and which have an answer among their memories.
    """
    found: list[tuple[float, float]] = []
    has_answer: list[bool] = []
    bar, rng = DEFAULT_RANKING.bar, random.Random(SEED)
    for case in track(cases, description="asking", console=Console(stderr=True)):
        query = build_query(Conversation((*case.history, Message(Role.USER, case.question))))
        vectors = await embedder.embed([memory.content for memory in case.memories], is_urgent=False)
        [asked] = await embedder.embed([query.text], is_urgent=False, as_query=True)
        records = [Record(memory, vector) for memory, vector in zip(case.memories, vectors, strict=True)]
        answers = [records[place] for place in sorted(case.relevant)]
        others = [one for place, one in enumerate(records) if place not in case.relevant | case.acceptable]
        for size in SIZES:
            some = [*answers[:size], *rng.sample(others, max(0, min(len(others), size - len(answers))))]
            ranked = rank(Corpus(some, dimension=embedder.dimension), Question(query, Scope(USER), case.now), asked)
            odds = np.clip(max(ranked.relevance, default=0.0), SURE, 1 - SURE)
            moved = bar.doubling * doublings(size)
            found.append((bar.even + moved + float(np.log(odds / (1 - odds))) / bar.slope, doublings(size)))
            has_answer.append(bool(answers))
    return np.array(found), np.array(has_answer)


def fitted(found: Floats, has_answer: npt.NDArray[np.bool_]) -> tuple[float, float, float]:
    """`even`, `doubling` and `slope`."""
    share = np.where(has_answer, 0.5 / has_answer.mean(), 0.5 / (1 - has_answer.mean()))
    inputs, weights = np.column_stack([np.ones(len(found)), found]), np.zeros(3)
    for _ in range(NEWTON_STEPS):
        odds = 1 / (1 + np.exp(-inputs @ weights))
        gradient = inputs.T @ (share * (odds - has_answer)) + RIDGE * weights
        curvature = (inputs * (share * odds * (1 - odds))[:, None]).T @ inputs + RIDGE * np.eye(3)
        weights -= np.linalg.solve(curvature, gradient)
    return float(-weights[0] / weights[1]), float(-weights[2] / weights[1]), float(weights[1])


async def gathered(files: Sequence[Path], config: Path | None) -> tuple[Floats, npt.NDArray[np.bool_]]:
    cases = [case for file in files for case in read_recall(file)]
    async with open_embedder(from_process(config, {})) as embedder:
        return await evidence(cases, embedder)


def main() -> int:
    parser = bench_parser("calibrate_recall", __doc__)
    parser.add_argument("files", nargs="*", type=Path, default=FILES)
    parser.add_argument("--config", type=Path)
    arguments = parser.parse_args()
    report = Report("calibrate_recall", BARS, arguments.json)
    found, has_answer = asyncio.run(gathered(arguments.files, arguments.config))
    even, doubling, slope = fitted(found, has_answer)
    above = found[:, 0] - doubling * found[:, 1]
    in_order = float((above[has_answer][:, None] > above[~has_answer][None]).mean())
    result = {"even": round(even, 2), "doubling": round(doubling, 2), "slope": round(slope, 2)}
    bar = DEFAULT_RANKING.bar
    rows = [(name, value, getattr(bar, name)) for name, value in result.items()]
    result["pairs in order"] = round(in_order, 3)
    sheet = Sheet(f"{len(found)} questions", ("", "fitted", "shipped"), rows)
    return report.finish(result, [sheet], {"pairs in order": in_order})


if __name__ == "__main__":
    sys.exit(main())
