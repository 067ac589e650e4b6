"""Train what says whether a clause can be understood alone, on the encoder as it is.

    python bench/reader/train_leans.py                  # after train.py, or after a change of leaning.tsv: minutes
    python bench/reader/train_leans.py --holdout 0.2    # without a fifth of the clauses, scored on it

The encoder stays as it is: one linear layer is fitted by logistic regression on what it makes of the clauses in
texts/leaning.tsv and leaning.tsv, of corrections (of each user in changes/corrections_*.jsonl the fragments lean), and,
with less weight, of messages that say one thing and nothing else and of short facts, which mostly stand. Each is read
by itself, as production reads it: beside what it leans on, the encoder knows what "it" means. Fitted on 8 bits. Seeded.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import texts as corpus
from examples import Example, Texts
from fingerprint import CHANGES_FOLDER, LEANING_FILE, ORDERS_FOLDER, fingerprint
from heads import WEIGHTS, Fit, Floats, encoder_of, logistic, rows_of, save
from texts import Leaning, Marked

from memory.adapters.models.statement_encoder import pooled_of
from memory.learn.reading.assembly import LEANING_SHARE_MIN, LOST_SHARE_MIN
from memory.learn.reading.labels import ACTS
from memory.settings.loader import from_process

STANDS_WEIGHT = 0.2  # of those messages
FIT = Fit(decay=3.0, steps=80, smoothing=0.02)


def stating_one_thing(messages: Iterable[Marked]) -> Iterator[Marked]:
    return (m for m in messages if len(m.spans) == 1 and m.spans[0].act == "state" and not m.before)


def short_facts() -> Iterator[str]:
    """Of users and cards: as a memory says them."""
    for user in (*corpus.users(ORDERS_FOLDER), *corpus.users(CHANGES_FOLDER)):
        yield from user.facts
    for card in corpus.cards():
        yield from card.olders


def by_itself(one: Leaning) -> Leaning:
    return replace(one, before="", answer="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--holdout", type=float, default=0.0, help="share of the clauses; writes nothing")
    given = parser.parse_args()
    reading, rng = Texts(), random.Random(given.seed)
    corrections = [
        Leaning(said.leans, "", "", said.text)
        for user in corpus.users(CHANGES_FOLDER)
        for said in user.later
        if said.leans is not None
    ]
    clauses = list(map(by_itself, (*corpus.leanings(), *corpus.leanings(LEANING_FILE))))
    rng.shuffle(clauses)
    held = int(len(clauses) * given.holdout)
    known = reading.leanings([*clauses[held:], *corrections])
    standing = [one for one in reading.examples(stating_one_thing(corpus.all_messages())) if len(one.judged) == 2]
    standing += reading.leanings(Leaning(leans=False, before="", answer="", clause=fact) for fact in short_facts())
    encoder = encoder_of(given.weights, from_process(None, {}).models_path)

    def pooled(example: Example) -> Floats:
        hidden = encoder.hidden(example.window)
        return np.stack([pooled_of(hidden, one.first, one.stop) for one in example.judged])

    labels = [one.labels[-1] for example in known for one in example.judged]
    inputs = np.concatenate([rows_of(pooled, known), rows_of(pooled, standing)])
    stands = len(inputs) - len(labels)
    assert all(one.labels[0] == ACTS.index("state") for example in standing for one in example.judged)
    shares = np.array([1.0] * len(labels) + [STANDS_WEIGHT] * stands, dtype=np.float32)
    labels += [0] * stands
    weights = logistic(inputs, labels, FIT, kinds=2, shares=shares)
    if held:
        kept = reading.leanings(clauses[:held])
        score(
            rows_of(pooled, kept) @ weights[:, :-1].T + weights[:, -1],
            [one.labels[-1] for e in kept for one in e.judged],
        )
        return
    save(
        {"leans": (weights[:, :-1], weights[:, -1])},
        given.weights,
        leans_seed=given.seed,
        leans=fingerprint(LEANING_FILE),
    )


def score(logits: Floats, labels: Sequence[int]) -> None:
    """Of those that lean, how many are seen from which share, and of those that stand, how many are taken for such."""
    shares, of = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1])), np.array(labels, dtype=bool)
    for bar in (0.3, LEANING_SHARE_MIN, 0.7, LOST_SHARE_MIN):
        print(f"from {bar}: {(shares[of] >= bar).mean():.2f} seen, {(shares[~of] >= bar).mean():.2f} wrongly")


if __name__ == "__main__":
    main()
