"""Trains what tells how much a message needs each memory.

    python bench/train_needed.py                 # writes the weights that are shipped; two minutes on two cores
    python bench/train_needed.py --config FILE   # for that file's embedding model, into the folder of prepared models

Data: `bench/needed/*.jsonl`, users with some dozen facts, and messages with the indexes of the facts that an answer
needs; those that it may use are left out. Logistic regression on the product of the fact's embedding with the
message's and a hidden layer over it, what either says alone, and the topical evidence of the ranking; the mean of one
training for each of `SEEDS`. Prints, from five-fold cross-validation over users, how often a fact that is needed comes
before one that is not, and at what recall and precision which odds cut.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from report import Bar, Report, Sheet, bench_parser
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

from memory.evaluation.dataset import USER
from memory.model import Memory, Query, Question, Record, Scope
from memory.ports import Embedder
from memory.processes.composition import open_embedder
from memory.processes.from_settings import needs_file
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.features import add_vector_features, text_features
from memory.recall.ranking.needed import SHIPPED, Needs, write
from memory.recall.ranking.weights import DEFAULT_RANKING, TOPICAL
from memory.settings.loader import from_process

TEXTS = Path(__file__).resolve().parent / "needed"
NOW, DAY = 1.76e9, 86_400.0
UNITS, RANK, DROPPED = 256, 32, 0.2  # of the units and ranks of each training
DECAY, RATE, EPOCHS, BATCH = 3.0, 5e-3, 12, 1_024
VECTOR_SCALE, UNIT_SCALE = 20.0, 0.1  # of what enters and leaves the hidden layer,
PAIR_SCALE, OWN_SCALE = 10.0, 5.0  # and of products: one learning rate suits all
MISSED_COST = 2.5  # of a needed memory that is not told, where one told in vain costs 1
FOLDS, SEEDS = 5, (0, 1, 2)
RECALLS = (0.7, 0.8, 0.9)
BARS = (Bar("in order", at_least=0.935),)
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Of each message with each fact of its user: both embeddings, the topical evidence, whether it is needed."""

    user: npt.NDArray[np.int64]
    message: npt.NDArray[np.int64]
    question: Floats
    fact: Floats
    topic: Floats
    is_needed: npt.NDArray[np.bool_]

    def where(self, rows: npt.NDArray[np.bool_]) -> Pairs:
        return Pairs(*(getattr(self, name)[rows] for name in Pairs.__slots__))


class Odds(nn.Module):
    """The log odds that a fact is needed."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(dimension, UNITS)
        self.of_question = nn.Parameter(torch.randn(dimension + UNITS, RANK) * 0.05)
        self.of_fact = nn.Parameter(torch.randn(dimension, RANK) * 0.05)
        self.question, self.fact = nn.Parameter(torch.zeros(dimension + UNITS)), nn.Parameter(torch.zeros(dimension))
        self.constant, self.topic = nn.Parameter(torch.tensor(-2.0)), nn.Parameter(torch.tensor(0.5))
        self.dropped = nn.Dropout(DROPPED)

    def forward(self, question: Tensor, fact: Tensor, topic: Tensor) -> Tensor:
        units = self.dropped(torch.relu(self.hidden(question * VECTOR_SCALE))) * UNIT_SCALE
        asked = torch.cat((question, units), dim=1)
        both = (self.dropped(asked @ self.of_question) * (fact @ self.of_fact)).sum(1) * PAIR_SCALE
        alone = (asked @ self.question + fact @ self.fact) * OWN_SCALE
        odds: Tensor = both + alone + self.constant + self.topic * topic
        return odds


@torch.no_grad()
def mean_of(models: Sequence[Odds]) -> Needs:
    """Their mean, as one model with the units and the ranks of all."""
    dimension, share = len(models[0].fact), 1 / len(models)

    def joined(name: str, axis: int) -> Tensor:
        return torch.cat([model.get_parameter(name) for model in models], dim=axis)

    def mean(name: str) -> Tensor:
        return torch.stack([model.get_parameter(name) for model in models]).mean(dim=0)

    of_vector = torch.cat([one.of_question[:dimension] for one in models], dim=1)
    of_units: Tensor = torch.block_diag(*(one.of_question[dimension:] for one in models))  # type: ignore[no-untyped-call]
    own_of_units = torch.cat([one.question[dimension:] for one in models]) * share
    return Needs(
        hidden=(joined("hidden.weight", 0).T * VECTOR_SCALE).numpy(),
        bias=joined("hidden.bias", 0).numpy(),
        of_question=(torch.cat((of_vector, of_units * UNIT_SCALE)) * PAIR_SCALE * share).numpy(),
        question=(torch.cat((mean("question")[:dimension], own_of_units * UNIT_SCALE)) * OWN_SCALE).numpy(),
        of_fact=joined("of_fact", 1).numpy(),
        fact=(mean("fact") * OWN_SCALE).numpy(),
        constant=float(mean("constant")),
        topic=float(mean("topic")),
    )


def users() -> list[dict[str, Any]]:
    lines = (line for path in sorted(TEXTS.glob("*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines())
    return [json.loads(line) for line in lines]


async def pairs_of(told: Sequence[dict[str, Any]], embedder: Embedder) -> Pairs:
    weights = np.array([getattr(DEFAULT_RANKING.weights, name) for name in TOPICAL], dtype=np.float32)
    rows: list[tuple[int, int, Floats, Floats, float, bool]] = []
    message = 0
    for number, user in enumerate(track(told, description="embedding", console=Console(stderr=True))):
        vectors = await embedder.embed(user["facts"], is_urgent=False)
        texts = [ask["text"] for ask in user["asks"]]
        asked = await embedder.embed(texts, is_urgent=False, as_query=True)
        corpus = Corpus(map(Record, map(_memory, range(len(vectors)), user["facts"]), vectors))
        layout = corpus.prepare()
        places = [int(memory.id) for memory in layout.memories]
        for ask, vector in zip(user["asks"], asked, strict=True):
            message += 1
            reading = text_features(corpus, layout, Question(Query(ask["text"]), Scope(USER), NOW))
            found = add_vector_features(corpus, reading, vector, needs=None)
            topic = weights @ np.stack([found.arrays[name] for name in TOPICAL])
            rows += [
                (number, message, vector, vectors[place], float(topic[row]), place in ask["needs"])
                for row, place in enumerate(places)
                if place not in ask.get("may", ())
            ]
    user_of, message_of, question, fact, topical, needed = zip(*rows, strict=True)
    return Pairs(
        np.array(user_of),
        np.array(message_of),
        np.stack(question),
        np.stack(fact),
        np.array(topical, dtype=np.float32),
        np.array(needed),
    )


def _memory(place: int, text: str) -> Memory:
    at = NOW - DAY * (place + 1)
    return Memory(str(place), USER, text, created_at=at, updated_at=at, said_at=at, valid_from=at)


def trained(pairs: Pairs) -> Needs:
    return mean_of([_trained(pairs, seed) for seed in SEEDS])


def _trained(pairs: Pairs, seed: int) -> Odds:
    torch.manual_seed(seed)
    model = Odds(pairs.question.shape[1])
    drawn = [one for name, one in model.named_parameters() if name not in ("constant", "topic")]
    groups = [{"params": drawn, "weight_decay": DECAY}, {"params": [model.constant, model.topic], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    given = [torch.from_numpy(one) for one in (pairs.question, pairs.fact, pairs.topic)]
    wanted = torch.from_numpy(pairs.is_needed.astype(np.float32))
    lost = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(MISSED_COST))
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(wanted)).split(BATCH):  # type: ignore[no-untyped-call]
            optimizer.zero_grad()
            lost(model(*(one[batch] for one in given)), wanted[batch]).backward()
            optimizer.step()
    return model.eval()


def odds_of(needs: Needs, pairs: Pairs) -> Floats:
    """As the ranking adds them up."""
    odds = needs.topic * pairs.topic
    for message in np.unique(pairs.message):
        rows = pairs.message == message
        direction = needs.direction(pairs.question[rows][0])
        assert direction is not None  # weights and vectors are of one model
        odds[rows] += pairs.fact[rows] @ direction.vector + direction.offset
    return odds


def cross_validated(pairs: Pairs) -> Floats:
    """The odds of each pair by what was trained on the other folds' users."""
    odds = np.zeros(len(pairs.user), dtype=np.float32)
    fold = np.random.default_rng(SEEDS[0]).permutation(pairs.user.max() + 1)[pairs.user] % FOLDS
    for number in range(FOLDS):
        odds[fold == number] = odds_of(trained(pairs.where(fold != number)), pairs.where(fold == number))
    return odds


def in_order(odds: Floats, is_needed: npt.NDArray[np.bool_]) -> float:
    """In how many pairs of one that is needed and one that is not the former has higher odds."""
    ranks = np.argsort(np.argsort(odds))[is_needed]
    needed, other = int(is_needed.sum()), int((~is_needed).sum())
    return float((ranks.sum() - needed * (needed - 1) / 2) / (needed * other))


def cuts(odds: Floats, pairs: Pairs) -> Iterator[tuple[float, ...]]:
    best = np.argsort(-odds)
    found = np.cumsum(pairs.is_needed[best])
    wants = set(pairs.message[pairs.is_needed].tolist())
    empty = set(pairs.message.tolist()) - wants
    for recall in RECALLS:
        last = int(np.searchsorted(found, recall * found[-1]))
        bar = odds[best[last]]
        told = set(pairs.message[odds >= bar].tolist())
        precision, quiet = found[last] / (last + 1), 1 - len(told & empty) / len(empty)
        yield round(float(bar), 2), recall, round(precision, 3), round(quiet, 2)


async def measure(config: Path | None) -> tuple[Pairs, Floats]:
    """Writes the weights that all pairs give, and returns the odds that other users' pairs give."""
    settings = from_process(config, {})
    async with open_embedder(settings) as embedder:
        pairs = await pairs_of(users(), embedder)
    target = needs_file(settings) or Path(str(files("memory.recall.ranking") / SHIPPED))
    write(trained(pairs), target)
    return pairs, cross_validated(pairs)


def main() -> int:
    parser = bench_parser("train_needed", __doc__)
    parser.add_argument("--config", type=Path)
    given = parser.parse_args()
    report = Report("train_needed", BARS, given.json)
    pairs, odds = asyncio.run(measure(given.config))
    figures = {"in order": in_order(odds, pairs.is_needed)}
    columns = ("from", "recall", "precision", "quiet where nothing is needed")
    sheets = [
        Sheet(
            f"{name}: {in_order(values, pairs.is_needed):.3f} of {len(values)} pairs in order",
            columns,
            [*cuts(values, pairs)],
        )
        for name, values in (("topical evidence alone", pairs.topic), ("what is trained", odds))
    ]
    return report.finish(figures, sheets, figures)


if __name__ == "__main__":
    sys.exit(main())
