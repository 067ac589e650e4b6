"""Fits what tells which stored facts an order to forget means.

`python bench/fit_targets.py`, after a training of the reader; a minute. Data: the users of `bench/reader/orders/` on
whom nothing was trained, with some ten facts each, and orders with the facts that each means. Facts and orders are read
by the trained reader and embedded as in production. Logistic regression with a small ridge; prints the weights of
`memory/learn/forget_targets.py`, and from five-fold cross-validation over users how many of the facts that are meant
are found, how many others are, and how many orders are carried out exactly.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from report import Bar, Report, Sheet, bench_parser
from rich.progress import track

from memory.adapters.models import embedding_model, reader_weights
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.adapters.models.statement_encoder import OnnxStatementEncoder
from memory.learn import forget_targets
from memory.learn.closeness import closeness_of
from memory.learn.reading.trained import TrainedReader
from memory.model import STORED_ACTS, Act, Claim, Evidence, Message, Scope, Turn
from memory.ports import OrderReach
from memory.settings import EmbeddingSettings
from memory.settings.loader import from_process

sys.path.insert(0, str(Path(__file__).resolve().parent / "reader"))
import texts as corpus  # isort: skip - the texts of the reader lie in a folder of their own

FOLDS, RIDGE, STEPS = 5, 1.0, 30
SCOPE = Scope("u", session_id="s")
NAMES = tuple(forget_targets.WEIGHTS)
BARS = (Bar("meant facts found", at_least=0.85), Bar("others found", at_most=0.03))
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Order:
    """`evidence`: of each request that it was read as, of each fact, shape `(requests, facts, weights)`.

    `meant`: of each fact. `fold`: of its user. An order of two sentences may be two requests, or none were seen.
    """

    language: str
    evidence: Floats
    meant: npt.NDArray[np.bool_]
    fold: int

    def found(self, weights: Floats) -> npt.NDArray[np.bool_]:
        return np.asarray((self.evidence @ weights >= forget_targets.MEANT_MIN).any(axis=0))


class Reading:
    """Reads and embeds facts and orders as the worker does."""

    def __init__(self, models: Path) -> None:
        self._reader = TrainedReader(OnnxStatementEncoder(reader_weights.prepared(models)))
        self._model = OnnxModel(embedding_model.prepared(EmbeddingSettings().model, models))

    async def claims(self, text: str) -> list[Claim]:
        turn = Turn("t", SCOPE, at=0.0, messages=(Message("user", text),))
        return await self._reader.read([turn], context=())

    async def fact(self, text: str) -> Claim:
        """As it is stored; what the reader does not see as one is a fact of no kind."""
        stored = [claim for claim in await self.claims(text) if claim.act in STORED_ACTS]
        return stored[0] if stored else Claim(Act.STATE, text, Evidence(text, "t"), SCOPE, 0.0)

    async def order(self, language: str, text: str, facts: Sequence[Claim], means: Sequence[int], fold: int) -> Order:
        requests = [claim for claim in await self.claims(text) if claim.act is Act.FORGET]
        tables = [await self._evidence(request, facts) for request in requests]
        meant = np.isin(np.arange(len(facts)), means)
        return Order(language, np.array(tables).reshape(len(tables), len(facts), len(NAMES)), meant, fold)

    async def _evidence(self, request: Claim, facts: Sequence[Claim]) -> list[list[float]]:
        texts = [request.text, *map(forget_targets.text_of, facts)]
        vectors = {text: self._model.vector(self._model.prefixes.document + text) for text in texts}
        close = await closeness_of([request.text], texts[1:], vectors, self._reader.relate)
        (reach,) = await self._reader.reaches([request.text])
        rows = forget_targets.evidence(request, facts, close, is_whole=reach is OrderReach.WHOLE)
        return [[float(row[name]) for name in NAMES] for row in rows if row is not None]


async def read_orders(reading: Reading) -> list[Order]:
    users = [user for user in corpus.users(corpus.ORDERS_FOLDER) if user.is_kept_out]
    found: list[Order] = []
    for number, user in enumerate(track(users, description="reading")):
        facts = [await reading.fact(text) for text in user.facts]
        found += [
            await reading.order(user.language, said.text, facts, sorted(said.ends), number % FOLDS)
            for said in user.later
        ]
    return found


def fitted(orders: Sequence[Order]) -> Floats:
    """By Newton steps, from orders that are one request. The base is not drawn to zero."""
    seen = [order for order in orders if len(order.evidence) == 1]
    inputs = np.concatenate([order.evidence[0] for order in seen])
    labels = np.concatenate([order.meant for order in seen]).astype(float)
    ridge = np.diag([0.0 if name == "base" else RIDGE for name in NAMES])
    weights = np.zeros(len(NAMES))
    for _ in range(STEPS):
        shares = 1.0 / (1.0 + np.exp(-inputs @ weights))
        slope = inputs.T @ (labels - shares) - ridge @ weights
        curve = (inputs * (shares * (1.0 - shares))[:, None]).T @ inputs + ridge
        weights += np.linalg.solve(curve + 1e-9 * np.eye(len(NAMES)), slope)
    return weights


def scored(orders: Sequence[Order], weights: Mapping[int, Floats]) -> tuple[int, float, float, float, float]:
    """How many orders; shares of them that were seen as one and carried out exactly, of meant facts found, of others.

    `weights`: by fold.
    """
    found = [order.found(weights[order.fold]) for order in orders]
    meant, others = (
        np.concatenate([one[order.meant == kind] for one, order in zip(found, orders, strict=True)])
        for kind in (True, False)
    )
    exact = np.mean([(one == order.meant).all() for one, order in zip(found, orders, strict=True)])
    seen = np.mean([len(order.evidence) > 0 for order in orders])
    return len(orders), float(seen), float(exact), float(meant.mean()), float(others.mean())


def main() -> int:
    options = bench_parser("fit_targets", __doc__).parse_args()
    report = Report("fit_targets", BARS, options.json)
    orders = asyncio.run(read_orders(Reading(from_process(None, {}).models_path)))
    shipped = dict.fromkeys(range(FOLDS), np.array(list(forget_targets.WEIGHTS.values())))
    crossed = {fold: fitted([one for one in orders if one.fold != fold]) for fold in range(FOLDS)}
    of_language: dict[str, list[Order]] = defaultdict(list)
    for order in orders:
        of_language[order.language].append(order)
    rows = [("shipped weights", *scored(orders, shipped)), ("fitted on other users", *scored(orders, crossed))]
    rows += [(language, *scored(found, crossed)) for language, found in sorted(of_language.items())]
    weights = fitted(orders)
    sheets = [
        Sheet("orders", ("", "orders", "seen as one", "exactly", "meant found", "others found"), rows),
        Sheet("weights", ("", "shipped", "fitted"), list(zip(NAMES, shipped[0], weights, strict=True))),
    ]
    *_, meant, others = scored(orders, crossed)
    result = {"weights": dict(zip(NAMES, weights, strict=True))}
    return report.finish(result, sheets, {"meant facts found": meant, "others found": others})


if __name__ == "__main__":
    sys.exit(main())
