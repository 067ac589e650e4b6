"""Fits from which evidence on a memory counts as relevant: `memory.ranking.bar.even` and `slope`.

`python bench/calibrate_recall.py [FACTS.jsonl …]`, by default the blind sets and the one about abstention below
tests/data; `--config FILE` for another embedding model. A file is in the format of `memproxy eval recall`.

Questions whose answer is among the memories, against those without one, weigh the same. A logistic regression of the
best memory's evidence, beyond what the question's form adds to the bar, gives the log odds that it answers: they are
even at `even`, and rise by `slope`. Prints both, and in how many pairs of one of each the former has more evidence.
"""

from __future__ import annotations

import asyncio
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
from memory.recall.ranking.weights import DEFAULT_RANKING
from memory.settings.loader import from_process

DATA = Path(__file__).parent.parent / "tests" / "data"
FILES = (*sorted((DATA / "blind").glob("*_recall.jsonl")), DATA / "abstention.jsonl")
BARS = (Bar("pairs in order", at_least=0.86),)
RIDGE = 1e-3
NEWTON_STEPS = 50
SURE = 1e-9  # of a probability: beyond it, its log odds say nothing more

Floats = npt.NDArray[np.float64]


async def evidence(cases: Sequence[RecallCase], embedder: Embedder) -> Floats:
    """Of each case, the best memory's evidence in the unit of the weights, as if no question moved the bar."""
    found = []
    bar = DEFAULT_RANKING.bar
    for case in track(cases, description="asking", console=Console(stderr=True)):
        query = build_query(Conversation((*case.history, Message(Role.USER, case.question))))
        vectors = await embedder.embed([memory.content for memory in case.memories], is_urgent=False)
        [asked] = await embedder.embed([query.text], is_urgent=False, as_query=True)
        records = (Record(memory, vector) for memory, vector in zip(case.memories, vectors, strict=True))
        ranked = rank(Corpus(records, dimension=embedder.dimension), Question(query, Scope(USER), case.now), asked)
        odds = np.clip(max(ranked.relevance, default=0.0), SURE, 1 - SURE)
        found.append(bar.even + float(np.log(odds / (1 - odds))) / bar.slope)
    return np.array(found)


def fitted(found: Floats, has_answer: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """`even` and `slope`."""
    share = np.where(has_answer, 0.5 / has_answer.mean(), 0.5 / (1 - has_answer.mean()))
    inputs, weights = np.stack([np.ones_like(found), found], axis=1), np.zeros(2)
    for _ in range(NEWTON_STEPS):
        odds = 1 / (1 + np.exp(-inputs @ weights))
        gradient = inputs.T @ (share * (odds - has_answer)) + RIDGE * weights
        curvature = (inputs * (share * odds * (1 - odds))[:, None]).T @ inputs + RIDGE * np.eye(2)
        weights -= np.linalg.solve(curvature, gradient)
    return float(-weights[0] / weights[1]), float(weights[1])


async def gathered(files: Sequence[Path], config: Path | None) -> tuple[Floats, npt.NDArray[np.bool_]]:
    cases = [case for file in files for case in read_recall(file)]
    async with open_embedder(from_process(config, {})) as embedder:
        return await evidence(cases, embedder), np.array([bool(case.relevant) for case in cases])


def main() -> int:
    parser = bench_parser("calibrate_recall", __doc__)
    parser.add_argument("files", nargs="*", type=Path, default=FILES)
    parser.add_argument("--config", type=Path)
    arguments = parser.parse_args()
    report = Report("calibrate_recall", BARS, arguments.json)
    found, has_answer = asyncio.run(gathered(arguments.files, arguments.config))
    even, slope = fitted(found, has_answer)
    in_order = float((found[has_answer][:, None] > found[~has_answer][None]).mean())
    result = {"even": round(even, 2), "slope": round(slope, 2), "pairs in order": round(in_order, 3)}
    bar = DEFAULT_RANKING.bar
    rows = [("even", result["even"], bar.even), ("slope", result["slope"], bar.slope)]
    sheet = Sheet(f"{len(found)} questions", ("", "fitted", "shipped"), rows)
    return report.finish(result, [sheet], {"pairs in order": in_order})


if __name__ == "__main__":
    sys.exit(main())
