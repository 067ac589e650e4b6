"""Train what finds sentences that set or end a frame (role play, somebody else's text), on the encoder as it ships.

    python bench/reader/train_frames.py            # after train.py, or after a change of frames.toml: about a minute
    python bench/reader/train_frames.py --holdout  # cross-validation only, nothing is written

The encoder stays as it is: one linear layer is trained on what it makes of the sentences in frames.toml, alone and in
an ordinary message, and of the units of ordinary messages, which set no frame. Fitted by logistic and by ridge
regression, of which the better in cross-validation is written. Cross-validation also says from which margin a kind is
taken to be meant; its bias is set so that the most likely kind is then the one. Seeded.
"""

from __future__ import annotations

import argparse
import random
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import heads
import numpy as np
import texts as corpus
from fingerprint import FRAMES_FILE, fingerprint
from heads import WEIGHTS, Floats, encoder_of, save
from rich.progress import track

from memory.adapters.models.statement_encoder import OnnxStatementEncoder
from memory.learn.reading.labels import FRAMES
from memory.learn.reading.units import units_of
from memory.settings.loader import from_process

NOT_ORDINARY = ("frames", "roleplay")  # in the names of files whose messages set frames
MESSAGES, CHARACTERS_MAX = 500, 600  # of ordinary messages
WITHIN = ("{frame}\n\n{message}", "{frame} {message}", "{message} {frame}")
MESSAGES_EACH = 2  # that an example stands in, in each of these places
FOLDS = 5
# Of ordinary units that may reach the bar, of which about half do set a frame, although they are taken for ordinary
# here. A role play that is none costs all facts behind it, presented text those of a message, an end nothing.
FALSE_MAX: Mapping[str, float] = {"plays": 0.005, "ends": 0.01, "presents": 0.01}
LOGISTIC, RIDGE = heads.Fit(decay=1.0, steps=60), 10.0


@dataclass(frozen=True, slots=True)
class Sentence:
    """`place`: "alone", "within" an ordinary message, or "ordinary". One `group` is held out together."""

    group: int
    kind: str
    place: str
    vector: Floats


def sentences(encoder: OnnxStatementEncoder, *, seed: int) -> Iterator[Sentence]:
    rng = random.Random(seed)
    listed = tomllib.loads(FRAMES_FILE.read_text(encoding="utf-8"))
    examples = [(text, kind) for kind in FRAMES for text in listed[kind]]
    ordinary = [one for one in corpus.all_messages() if not any(name in one.source for name in NOT_ORDINARY)]
    short = [one.text for one in ordinary if not one.before and len(one.text) <= CHARACTERS_MAX]
    for group, (text, kind) in enumerate(track(examples, description="encoding examples")):
        yield from _placed(encoder, text, text, Sentence(group, kind, "alone", np.empty(0)))
        for form in WITHIN * MESSAGES_EACH:
            message = form.format(frame=text, message=rng.choice(short))
            yield from _placed(encoder, message, text, Sentence(group, kind, "within", np.empty(0)))
    sample = rng.sample(ordinary, MESSAGES)
    for group, marked in enumerate(track(sample, description="encoding messages"), len(examples)):
        said = Sentence(group, FRAMES[0], "ordinary", np.empty(0))
        yield from _placed(encoder, marked.text, "", said, before=marked.before)


def _placed(
    encoder: OnnxStatementEncoder, message: str, frame: str, of: Sentence, *, before: str = ""
) -> Iterator[Sentence]:
    """The units of the message: those within `frame` are such as `of`, the others are ordinary."""
    units = units_of(message)
    start = message.index(frame)
    for unit, vector in zip(units, encoder.pooled([unit.text for unit in units], before), strict=True):
        if frame and start <= unit.start and unit.end <= start + len(frame):
            yield Sentence(of.group, of.kind, of.place, vector)
        elif unit.is_own and not (unit.start < start + len(frame) and start < unit.end):
            yield Sentence(of.group, FRAMES[0], "ordinary", vector)


def logistic(inputs: Floats, labels: Sequence[int]) -> Floats:
    """Weights and bias per kind, shape `(kinds, width + 1)`."""
    return heads.logistic(inputs, labels, LOGISTIC, kinds=len(FRAMES))


def ridge(inputs: Floats, labels: Sequence[int]) -> Floats:
    """As `logistic`. The bias is not drawn to zero."""
    rows = np.hstack([inputs, np.ones((len(inputs), 1))]).astype(np.float64)
    decay = np.diag([*[RIDGE] * inputs.shape[1], 1e-6])
    return np.linalg.solve(rows.T @ rows + decay, rows.T @ np.eye(len(FRAMES))[labels]).T.astype(np.float32)


def margins(weights: Floats, inputs: Floats) -> Floats:
    """By how much each kind exceeds the plain one, shape `(rows, kinds)`."""
    outputs = inputs @ weights[:, :-1].T + weights[:, -1]
    return np.asarray(outputs - outputs[:, :1])


Fit = Callable[[Floats, Sequence[int]], Floats]


def held_out(fit: Fit, found: Sequence[Sentence], inputs: Floats, *, seed: int) -> Floats:
    """The margins of each sentence by weights that were fitted without its group."""
    labels = [FRAMES.index(one.kind) for one in found]
    groups = np.array([one.group for one in found])
    folds = np.random.default_rng(seed).permutation(groups.max() + 1)[groups] % FOLDS
    scores = np.zeros((len(found), len(FRAMES)), dtype=np.float32)
    for fold in range(FOLDS):
        seen = folds != fold
        weights = fit(inputs[seen], [label for label, is_seen in zip(labels, seen, strict=True) if is_seen])
        scores[~seen] = margins(weights, inputs[~seen])
    return scores


def bars_of(found: Sequence[Sentence], scores: Floats) -> dict[str, float]:
    """By kind, the lowest margin that no more of the ordinary units reach than may."""
    is_ordinary = np.array([one.place == "ordinary" for one in found])
    bars = {}
    for column, kind in enumerate(FRAMES[1:], 1):
        ordered = np.sort(scores[is_ordinary, column])[::-1]
        bars[kind] = float(ordered[int(len(ordered) * FALSE_MAX[kind])]) + 1e-6
    return bars


def seen_shares(found: Sequence[Sentence], scores: Floats, bars: Mapping[str, float]) -> dict[tuple[str, str], float]:
    """By kind and place, the share of its sentences that are taken for it; for the place "plain", of plain examples."""
    kinds, places = np.array([one.kind for one in found]), np.array([one.place for one in found])
    reached = {kind: scores[:, column] >= bars[kind] for column, kind in enumerate(FRAMES[1:], 1)}
    of_plain = (kinds == FRAMES[0]) & (places != "ordinary")
    shares = {(kind, "plain"): float(hits[of_plain].mean()) for kind, hits in reached.items()}
    for kind, hits in reached.items():
        shares |= {
            (kind, place): float(hits[(kinds == kind) & (places == place)].mean()) for place in ("alone", "within")
        }
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--holdout", action="store_true", help="cross-validation only")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    encoder = encoder_of(given.weights, from_process(None, {}).models_path)
    found = list(sentences(encoder, seed=given.seed))
    inputs = np.stack([one.vector for one in found])
    outcomes: list[tuple[float, Fit, dict[str, float]]] = []
    for fit in (logistic, ridge):
        scores = held_out(fit, found, inputs, seed=given.seed)
        bars = bars_of(found, scores)
        shares = seen_shares(found, scores, bars)
        seen = np.mean([share for (_, place), share in shares.items() if place != "plain"])
        informed = float(seen - np.mean([shares[kind, "plain"] for kind in FRAMES[1:]]))
        outcomes.append((informed, fit, bars))
        for kind in FRAMES[1:]:
            print(
                f"{fit.__name__:8} {kind:8} from {bars[kind]:+.2f}: {shares[kind, 'alone']:.2f} seen alone, "
                f"{shares[kind, 'within']:.2f} within a message, {shares[kind, 'plain']:.2f} of plain examples; "
                f"{FALSE_MAX[kind]:.3f} of ordinary units"
            )
    informed, fit, bars = max(outcomes, key=lambda outcome: outcome[0])
    print(f"{len(found)} sentences; {fit.__name__} is better: {informed:.3f} seen, less those of plain examples")
    if not given.holdout:
        weights = fit(inputs, [FRAMES.index(one.kind) for one in found])
        weights = weights - weights[:1]
        bias = weights[:, -1] - np.array([0.0, *(bars[kind] for kind in FRAMES[1:])])
        save({"frame": (weights[:, :-1], bias)}, given.weights, frames=fingerprint(FRAMES_FILE), frames_seed=given.seed)


if __name__ == "__main__":
    main()
