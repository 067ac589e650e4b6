"""Train what says how far an order to forget reaches, on the encoder as it ships: one linear layer on each order.

    python bench/reader/train_reach.py                  # after train.py, or after a change of reach.tsv: a minute
    python bench/reader/train_reach.py --holdout 0.2    # without a fifth of reach.tsv, scored on it

Seeded. The holdout is optimistic where the languages share a thought.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import texts as corpus
from fingerprint import REACH_FILE, fingerprint
from heads import WEIGHTS, Fit, Floats, encoder_of, logistic, rows_of, save

from memory.learn.reading.labels import REACHES
from memory.learn.reading.trained import reach_of
from memory.learn.reading.units import units_of
from memory.model import ORDERS
from memory.ports import OrderReach
from memory.settings.loader import from_process

BESIDE_WEIGHT = 0.15  # some order after all: of two sentences that say it, one is marked
FIT = Fit(decay=0.5, steps=120, smoothing=0.02)


def beside() -> list[tuple[int, str]]:
    """Sentences of the training texts that stand beside orders and order nothing: "Got it." deletes nothing."""
    found: dict[str, None] = {}
    for marked in corpus.all_messages():
        if ORDERS & {span.act for span in marked.spans}:
            for unit in units_of(marked.text):
                if not any(one.act in ORDERS and one.start < unit.end and unit.start < one.end for one in marked.spans):
                    found[unit.text] = None
    return [(REACHES.index(OrderReach.LIMITED), text) for text in found]


def listed() -> list[tuple[int, str]]:
    """Label and order of each line. Raises `ValueError`."""
    lines = [line.split("\t", 1) for line in REACH_FILE.read_text(encoding="utf-8").splitlines()]
    return [(REACHES.index(OrderReach(label)), text) for label, text in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--holdout", type=float, default=0.0, help="share of reach.tsv; writes nothing")
    given = parser.parse_args()
    orders = listed()
    random.Random(given.seed).shuffle(orders)
    held = int(len(orders) * given.holdout)
    encoder = encoder_of(given.weights, from_process(None, {}).models_path)
    rows = rows_of(lambda order: encoder.pooled([order[1]], "")[0][None], orders)
    labels, others = [label for label, _ in orders], beside()
    known = np.concatenate([rows[held:], rows_of(lambda order: encoder.pooled([order[1]], "")[0][None], others)])
    shares = np.array([1.0] * (len(rows) - held) + [BESIDE_WEIGHT] * len(others), dtype=np.float32)
    given_labels = labels[held:] + [label for label, _ in others]
    weights = logistic(known, given_labels, FIT, kinds=len(REACHES), shares=shares)
    if held:
        score(rows[:held] @ weights[:, :-1].T + weights[:, -1], labels[:held])
        return
    head = {"reach": (weights[:, :-1], weights[:, -1])}
    save(head, given.weights, reach_seed=given.seed, reach=fingerprint(REACH_FILE))


def score(logits: Floats, labels: Sequence[int]) -> None:
    """Of each reach, how many are seen, and of the others how many are taken for it, as the reader decides."""
    odds, of = np.exp(logits - logits.max(-1, keepdims=True)), np.array(labels)
    shares = odds / odds.sum(-1, keepdims=True)
    said = np.array([REACHES.index(reach_of(dict(zip(REACHES, row, strict=True)))) for row in shares.tolist()])
    print(f"{(said == of).mean():.3f} of {len(of)} as meant")
    for number, reach in enumerate(REACHES):
        seen, wrong = (said[of == number] == number).mean(), (said[of != number] == number).mean()
        print(f"{reach}: {seen:.3f} of {(of == number).sum()} seen; wrongly, {wrong:.3f} of the others")


if __name__ == "__main__":
    main()
