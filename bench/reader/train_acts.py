"""Trains the acts of sentences once more, on the encoder as it ships: what asks to keep, what to delete.

    python bench/reader/train_acts.py            # after train.py, or after a change of acts/: three minutes
    python bench/reader/train_acts.py --holdout  # without a fifth of acts/, and scored on it; nothing is written

"Don't forget that I am left-handed" and "Forget that I am left-handed" have nearly the same words. acts/ has many such
sentences, which the encoder was not trained on. The encoder stays as it is: the head for acts moves from where
`train.py` left it, drawn back to there, on the units of acts/ and of ordinary messages. Seeded.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import texts as corpus
import torch
from examples import act_of
from fingerprint import ACTS_FOLDER, fingerprint
from heads import WEIGHTS, Floats, encoder_of, save
from rich.progress import track

from memory.adapters.models.statement_encoder import OnnxStatementEncoder
from memory.learn.reading.labels import ACTS
from memory.learn.reading.units import units_of
from memory.settings.loader import from_process

ORDINARY = 3_500  # messages, with all their units
ACTS_WEIGHT = 4.0  # of a unit of acts/, beside an ordinary one
DRAWN_BACK, STEPS = 3.0, 80
HELD_OUT_EVERY = 5


@dataclass(frozen=True, slots=True)
class Units:
    """`vectors`: shape `(units, inputs of the head)`; `acts`: their numbers."""

    vectors: Floats
    acts: npt.NDArray[np.int64]

    def told_right(self, weight: Floats, bias: Floats) -> float:
        return float(((self.vectors @ weight.T + bias).argmax(-1) == self.acts).mean())


def units_in(encoder: OnnxStatementEncoder, messages: Iterable[corpus.Marked], description: str) -> Units:
    vectors: list[Floats] = []
    acts: list[int] = []
    for marked in track(list(messages), description=description):
        units = units_of(marked.text)
        if units:
            vectors += list(encoder.pooled([unit.text for unit in units], marked.before))
            acts += [ACTS.index(act_of(unit, marked)) for unit in units]
    return Units(np.stack(vectors), np.array(acts))


def trained(weight: Floats, bias: Floats, seen: Sequence[tuple[Units, float]]) -> tuple[Floats, Floats]:
    """The head, moved from `weight` and `bias`. `seen`: with the weight of each unit."""
    given = torch.from_numpy(np.concatenate([units.vectors for units, _ in seen]))
    wanted = torch.from_numpy(np.concatenate([units.acts for units, _ in seen]))
    shares = torch.cat([torch.full((len(units.acts),), share) for units, share in seen])
    first = torch.from_numpy(weight)
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0])
    layer.weight.data.copy_(first)
    layer.bias.data.copy_(torch.from_numpy(bias))
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        lost = (shares * torch.nn.functional.cross_entropy(layer(given), wanted, reduction="none")).sum()
        lost = lost + DRAWN_BACK / 2 * (layer.weight - first).square().sum()
        lost.backward()  # type: ignore[no-untyped-call]
        return lost

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return layer.weight.detach().numpy(), layer.bias.detach().numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--holdout", action="store_true", help="without a fifth of acts/, which is scored")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    encoder = encoder_of(given.weights, from_process(None, {}).models_path)
    with np.load(given.weights, allow_pickle=False) as arrays:
        weight, bias = (arrays[f"head/act/{name}"].astype(np.float32) for name in ("weight", "bias"))
    rng, asking = random.Random(given.seed), list(corpus.messages(ACTS_FOLDER))
    ordinary = units_in(encoder, rng.sample(list(corpus.all_messages()), ORDINARY), "encoding messages")
    rng.shuffle(asking)
    held = asking[::HELD_OUT_EVERY] if given.holdout else []
    kept_out = units_in(encoder, held, "encoding acts/") if held else None
    taught = units_in(encoder, [one for one in asking if one not in held], "encoding acts/")
    new = trained(weight, bias, [(ordinary, 1.0), (taught, ACTS_WEIGHT)])
    for name, units in (("messages", ordinary), ("acts/", taught), ("acts/ held out", kept_out)):
        if units is not None:
            before, after = units.told_right(weight, bias), units.told_right(*new)
            print(f"{name}: {len(units.acts)} units, {before:.3f} told right before, {after:.3f} after")
    if not given.holdout:
        save({"act": new}, given.weights, acts=fingerprint(ACTS_FOLDER))


if __name__ == "__main__":
    main()
