"""Train what tells questions that only ask from those that state or order something, on the encoder as it ships.

    python bench/reader/train_asks.py                  # after train.py, or after a change of asking.tsv: minutes
    python bench/reader/train_asks.py --holdout 0.2    # without a fifth of asking.tsv, scored on it

"What is my sister's number?" has all that a fact has but its value, and whoever has a memory is asked such questions;
so the acts take many for statements, and "do you remember …?" for an order. The encoder stays as it is: one linear
layer is fitted by logistic regression on what it makes of the questions in asking.tsv, of those of the training texts,
and of those that recall is taught to see as questions about the user and earlier talk. Fitted on 8 bits. Seeded.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import texts as corpus
from fingerprint import ASKING_FILE, CHANGES_FOLDER, ORDERS_FOLDER, fingerprint
from heads import WEIGHTS, Fit, Floats, encoder_of, logistic, rows_of, save

from memory.language import is_asked
from memory.learn.reading.assembly import ONLY_ASKS_MIN, ORDERS_NOTHING_MIN
from memory.learn.reading.labels import ASKS
from memory.learn.reading.units import units_of
from memory.recall.signals.phrases import question_phrases
from memory.settings.loader import from_process

STATES, ORDERS, ONLY_ASKS = range(len(ASKS))
ORDER_ACTS = {"wish", "remember", "forget", "withhold", "correct"}
ASKING_WEIGHT = 0.1  # of a question of the training texts that only asks: there are many, mostly of the world
FIT = Fit(decay=0.3, steps=120, smoothing=0.02)
BARS = (0.3, ONLY_ASKS_MIN, ORDERS_NOTHING_MIN, 0.9)


@dataclass(frozen=True, slots=True)
class Questions:
    """The sentences of a message, and the labels of those that are questions by their places."""

    sentences: tuple[str, ...]
    labels: dict[int, int]


def listed() -> Iterator[Questions]:
    """Raises `ValueError`."""
    for number, line in enumerate(ASKING_FILE.read_text(encoding="utf-8").splitlines(), 1):
        label, _, text = line.partition("\t")
        if label not in ASKS or not text:
            raise ValueError(f"{ASKING_FILE.name}, line {number}: expected {' or '.join(ASKS)}, a tab and a question")
        yield Questions((text,), {0: ASKS.index(label)})


def of_recall() -> Iterator[Questions]:
    """They ask what the user said, or what is known of the user."""
    for phrase in question_phrases():
        if phrase.label is not None and is_asked(phrase.text):
            yield Questions((phrase.text,), {0: ONLY_ASKS})


def of_texts() -> Iterator[Questions]:
    for marked in corpus.all_messages():
        units, labels = units_of(marked.text), dict[int, int]()
        for place, unit in enumerate(units):
            if is_asked(unit.text):
                acts = {span.act for span in marked.spans if span.start < unit.end and unit.start < span.end}
                labels[place] = ORDERS if acts & ORDER_ACTS else STATES if acts else ONLY_ASKS
        if labels:
            yield Questions(tuple(unit.text for unit in units), labels)


def of_users() -> Iterator[Questions]:
    """Orders to forget a fact of theirs, and what ends or repeats one, asked."""
    for folder, label in ((ORDERS_FOLDER, ORDERS), (CHANGES_FOLDER, STATES)):
        for said in (said for user in corpus.taught_users(folder) for said in user.later):
            if is_asked(said.text) and (said.ends or said.repeats):
                yield Questions((said.text,), {0: label})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--holdout", type=float, default=0.0, help="share of asking.tsv; writes nothing")
    given = parser.parse_args()
    questions = list(listed())
    random.Random(given.seed).shuffle(questions)
    held = int(len(questions) * given.holdout)
    encoder = encoder_of(given.weights, from_process(None, {}).models_path)

    def pooled(one: Questions) -> Floats:
        return encoder.pooled(one.sentences, "")[list(one.labels)]

    sure, texts = [*questions[held:], *of_recall(), *of_users()], list(of_texts())
    known = [*sure, *texts]
    labels = [label for one in known for label in one.labels.values()]
    shares = np.ones(len(labels), dtype=np.float32)
    shares[len(sure) :][np.array(labels[len(sure) :]) == ONLY_ASKS] = ASKING_WEIGHT
    weights = logistic(rows_of(pooled, known), labels, FIT, kinds=len(ASKS), shares=shares)
    if held:
        kept = questions[:held]
        logits = rows_of(pooled, kept) @ weights[:, :-1].T + weights[:, -1]
        score(logits, [label for one in kept for label in one.labels.values()])
        return
    head = {"asks": (weights[:, :-1], weights[:, -1])}
    save(head, given.weights, asks_seed=given.seed, asks=fingerprint(ASKING_FILE))


def score(logits: Floats, labels: Sequence[int]) -> None:
    """Of those that only ask, how many are seen from which share, and of the others, how many are taken for such."""
    odds, of = np.exp(logits - logits.max(-1, keepdims=True)), np.array(labels)
    shares = odds[:, ONLY_ASKS] / odds.sum(-1)
    for bar in BARS:
        seen, states, orders = ((shares[of == kind] >= bar).mean() for kind in (ONLY_ASKS, STATES, ORDERS))
        print(f"from {bar}: {seen:.3f} seen; wrongly, {states:.3f} of those that state, {orders:.3f} of orders")


if __name__ == "__main__":
    main()
