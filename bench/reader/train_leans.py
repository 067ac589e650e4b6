"""Train what says whether a clause can be understood alone, on the encoder as it is.

    python bench/reader/train_leans.py    # after train.py, or after a change of leaning.tsv: two minutes

The encoder stays as it is: one linear layer is fitted by logistic regression on what it makes of the clauses in
texts/leaning.tsv, of corrections (of each user in changes/corrections_*.jsonl the fragments lean), and, with less
weight, of messages that say one thing and nothing else, which mostly stand. Some of those follow a short answer, which
changes nothing in them. Fitted on 8 bits, as production sees them. Seeded.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import texts as corpus
from examples import Example, Texts
from fingerprint import CHANGES_FOLDER
from heads import WEIGHTS, Fit, Floats, encoder_of, logistic, save
from rich.progress import track
from texts import Leaning, Marked

from memory.adapters.models.statement_encoder import pooled_of
from memory.learn.reading.labels import ACTS
from memory.settings.loader import from_process

FOLLOWS_SHARE = 0.5  # of the messages that say one thing
ANSWERS = (
    "Okay.", "I see.", "Alright.", "Got it.", "Thanks for telling me.", "好的。", "Verstanden.", "D'accord.", "Vale.",
)  # fmt: skip
STANDS_WEIGHT = 0.2  # of those messages
FIT = Fit(decay=3.0, steps=80, smoothing=0.02)


def alone(messages: Sequence[Marked], rng: random.Random) -> Iterator[Marked]:
    """Those that state one thing, some of them behind a short answer."""
    for marked in messages:
        if len(marked.spans) == 1 and marked.spans[0].act == "state" and not marked.before:
            follows = rng.random() < FOLLOWS_SHARE
            yield replace(marked, before=rng.choice(ANSWERS)) if follows else marked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    reading, rng = Texts(), random.Random(given.seed)
    corrections = [
        Leaning(said.leans, "", ANSWERS[0], said.text)
        for user in corpus.users(CHANGES_FOLDER)
        for said in user.later
        if said.leans is not None
    ]
    known = reading.leanings([*corpus.leanings(), *corrections])
    standing = [one for one in reading.examples(alone(list(corpus.all_messages()), rng)) if len(one.judged) == 2]
    encoder = encoder_of(given.weights, from_process(None, {}).models_path)

    def pooled(example: Example) -> Floats:
        hidden = encoder.hidden(example.window)
        return np.stack([pooled_of(hidden, one.first, one.stop) for one in example.judged])

    def rows(of: Sequence[Example]) -> Floats:
        with ThreadPoolExecutor() as pool:  # the encoder computes outside of the interpreter's lock
            return np.concatenate(list(track(pool.map(pooled, of), description="encoding", total=len(of))))

    labels = [one.labels[-1] for example in known for one in example.judged]
    inputs = np.concatenate([rows(known), rows(standing)])
    stands = len(inputs) - len(labels)
    assert all(one.labels[0] == ACTS.index("state") for example in standing for one in example.judged)
    shares = np.array([1.0] * len(labels) + [STANDS_WEIGHT] * stands, dtype=np.float32)
    labels += [0] * stands
    weights = logistic(inputs, labels, FIT, kinds=2, shares=shares)
    save({"leans": (weights[:, :-1], weights[:, -1])}, given.weights, leans_seed=given.seed)


if __name__ == "__main__":
    main()
