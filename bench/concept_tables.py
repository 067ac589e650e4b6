"""Cross-validates the thesaurus of `memory/recall/ranking/concepts.py`: which entries help with questions of others.

`python bench/concept_tables.py FACTS.jsonl...`, by default the blind sets below tests/data. A file is in the format of
`memproxy eval recall`; records with the same memories belong to one person. Every entry is left out once. Then, for
each person, the entries are left out that did harm to the others, and the questions of that person are asked. An entry
is worth keeping if leaving it out does not help people that had no part in the choice.

Score of a question: recall@5, or whether nothing was returned where nothing is relevant.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from report import Bar, Report, Sheet, bench_parser
from rich.console import Console
from rich.progress import track

from memory.evaluation.dataset import USER, RecallCase, read_recall
from memory.evaluation.recall import characters
from memory.evaluation.score import CHARACTERS_PER_TOKEN, CaseScore, score_case
from memory.model import Conversation, Message, Question, Record, Role, Scope, Vector
from memory.ports import Embedder
from memory.processes.composition import open_embedder
from memory.recall.query import build_query
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.ranking import Budget, rank, select
from memory.settings.loader import from_process

BLIND = sorted((Path(__file__).parent.parent / "tests" / "data" / "blind").glob("*_recall.jsonl"))
TOKEN_BUDGET = 800
BARS = (
    Bar("all entries, against none", at_least=0.05),
    Bar("entries left out by cross-validation, against all", at_most=0.005),
)
CONSOLE = Console(stderr=True)
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the memories of its person, ready to be ranked."""

    case: RecallCase
    person: int
    corpus: Corpus
    question: Question
    vector: Vector
    rows: dict[str, npt.NDArray[np.intp]]

    def score(self, entries: Collection[str]) -> CaseScore:
        """With these entries of the thesaurus only."""
        held = self.corpus.prepare().concept_rows
        held.clear()
        held |= {name: rows for name, rows in self.rows.items() if name in entries}
        ranked = rank(self.corpus, self.question, self.vector)
        chosen = select(ranked, Budget(int(TOKEN_BUDGET * CHARACTERS_PER_TOKEN)), tokens=characters)
        places = {memory.id: place for place, memory in enumerate(self.case.memories)}
        return score_case(self.case, [places[candidate.memory.id] for candidate in chosen.candidates])


async def prepared(cases: Iterable[RecallCase], embedder: Embedder) -> list[Asked]:
    people: dict[tuple[str, ...], int] = {}
    asked = []
    for case in cases:
        texts = [memory.content for memory in case.memories]
        person = people.setdefault(tuple(texts), len(people))
        vectors = await embedder.embed(texts, is_urgent=False)
        records = (Record(memory, vector) for memory, vector in zip(case.memories, vectors, strict=True))
        corpus = Corpus(records, dimension=embedder.dimension)
        query = build_query(Conversation(messages=(*case.history, Message(Role.USER, case.question))))
        [vector] = await embedder.embed([query.text], is_urgent=False, as_query=True)
        rows = dict(corpus.prepare().concept_rows)
        asked.append(Asked(case, person, corpus, Question(query, Scope(USER), case.now), vector, rows))
    return asked


def scores(asked: Sequence[Asked], entries: Collection[str]) -> Scores:
    """One per question."""
    found = (one.score(entries) for one in asked)
    return np.array([float(one.recall[5] if one.recall is not None else bool(one.abstained)) for one in found])


def cross_validated(asked: Sequence[Asked], entries: frozenset[str], gains: dict[str, Scores]) -> Scores:
    """The scores of each person without the entries whose absence helps all others together."""
    person = np.array([one.person for one in asked])
    found = np.zeros(len(asked))
    for left_out in sorted(set(person)):
        own = person == left_out
        harmful = {name for name, gain in gains.items() if gain[~own].sum() > 0}
        found[own] = scores([one for one in asked if one.person == left_out], entries - harmful)
    return found


async def gathered(files: Sequence[Path]) -> list[Asked]:
    cases = [case for file in files for case in read_recall(file)]
    async with open_embedder(from_process(None, {})) as embedder:
        return await prepared(cases, embedder)


def main() -> int:
    parser = bench_parser("concept_tables", __doc__)
    parser.add_argument("files", nargs="*", type=Path, default=BLIND, metavar="FACTS.jsonl")
    options = parser.parse_args()
    report = Report("concept_tables", BARS, options.json)
    asked = asyncio.run(gathered(options.files))
    entries = frozenset(name for one in asked for name in one.rows)
    everything, nothing = scores(asked, entries), scores(asked, ())
    gains = {
        name: scores(asked, entries - {name}) - everything
        for name in track(sorted(entries), description="entries left out", console=CONSOLE)
    }
    chosen = cross_validated(asked, entries, gains)
    effects = sorted(((name, -float(gain.sum())) for name, gain in gains.items() if gain.any()), key=lambda one: one[1])
    sheets = [
        Sheet("questions that an entry gains", ("entry", "questions"), effects),
        Sheet(
            f"{len(asked)} questions, {len(entries)} entries among the memories, {len(effects)} with an effect",
            ("entries", "score"),
            [("all", everything.mean()), ("none", nothing.mean()), ("cross-validated", chosen.mean())],
        ),
    ]
    result = {"all": everything.mean(), "none": nothing.mean(), "cross_validated": chosen.mean(), "gains": effects}
    figures = {
        "all entries, against none": float(everything.mean() - nothing.mean()),
        "entries left out by cross-validation, against all": float(chosen.mean() - everything.mean()),
    }
    return report.finish(result, sheets, figures)


if __name__ == "__main__":
    sys.exit(main())
