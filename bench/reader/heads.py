"""Heads that are trained on the encoder as it ships: the encoder to train them on, and their place in the weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from rich.progress import track

from memory.adapters.models import reader_weights
from memory.adapters.models.statement_encoder import OnnxStatementEncoder
from memory.learn.reading.labels import ASKS, FRAMES, PAIR_RELATIONS, REACHES
from memory.ports import PairRelation

WEIGHTS = Path(__file__).resolve().parents[2] / "memory" / "learn" / "reading" / "weights.npz"
LATER_HEADS = {"frame": FRAMES, "asks": ASKS, "reach": REACHES}  # which `train.py` does not train, with their kinds
REPLACES = PAIR_RELATIONS.index(PairRelation.REPLACES)

Floats: TypeAlias = npt.NDArray[np.float32]
Encoded = TypeVar("Encoded")


def encoder_of(weights: Path, models: Path) -> OnnxStatementEncoder:
    """The encoder of these weights. Those that `train.py` just made get empty heads for these first."""
    with np.load(weights, allow_pickle=False) as arrays:
        inputs = arrays["head/act/weight"].shape[1]
        lacking = [(name, len(of)) for name, of in LATER_HEADS.items() if f"head/{name}/weight" not in arrays]
    if lacking:
        save({name: (np.zeros((kinds, inputs)), np.zeros(kinds)) for name, kinds in lacking}, weights)
    return OnnxStatementEncoder(reader_weights.prepared(models, weights))


def rows_of(pooled: Callable[[Encoded], Floats], of: Sequence[Encoded]) -> Floats:
    """What `pooled` makes of each, one after another, with a progress bar."""
    with ThreadPoolExecutor() as pool:  # the encoder computes outside of the interpreter's lock
        return np.concatenate(list(track(pool.map(pooled, of), description="encoding", total=len(of))))


@dataclass(frozen=True, slots=True)
class Fit:
    """How a logistic regression is fitted."""

    decay: float
    steps: int
    smoothing: float = 0.0


def logistic(inputs: Floats, labels: Sequence[int], fit: Fit, *, kinds: int, shares: Floats | None = None) -> Floats:
    """Weights and bias per kind, shape `(kinds, width + 1)`; the bias is not drawn to zero. `shares`: of each row."""
    given, wanted = torch.from_numpy(inputs), torch.tensor(labels)
    weight = torch.ones(len(inputs)) if shares is None else torch.from_numpy(shares)
    layer = torch.nn.Linear(inputs.shape[1], kinds)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=fit.steps, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        losses = torch.nn.functional.cross_entropy(
            layer(given), wanted, reduction="none", label_smoothing=fit.smoothing
        )
        lost = (losses * weight).sum() + fit.decay / 2 * layer.weight.square().sum()
        lost.backward()  # type: ignore[no-untyped-call]
        return lost

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return np.hstack([layer.weight.detach().numpy(), layer.bias.detach().numpy()[:, None]])


def competition_loss(logits: torch.Tensor, labels: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """How unsure it is which facts of a user are over with what they say later, beside each other and none of them.

    `logits`: of `PAIR_RELATIONS` for each pair, shape `(pairs, 3)`. `sizes`: of each thing said, how many of them.
    """
    shares = logits.float().log_softmax(-1)
    others = torch.cat([shares[:, :REPLACES], shares[:, REPLACES + 1 :]], dim=-1)
    sure = (shares[:, REPLACES] - others.logsumexp(-1)).split(list(sizes))
    meant = (labels == REPLACES).float().split(list(sizes))
    lost = []
    for odds, is_over in zip(sure, meant, strict=True):
        is_none = (1.0 - is_over.sum()).clamp(min=0.0)[None]
        wanted = torch.cat([is_over, is_none])
        lost.append(-(wanted / wanted.sum() * torch.cat([odds, odds.new_zeros(1)]).log_softmax(0)).sum())
    return torch.stack(lost).mean()


def save(heads: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]], target: Path, **card: object) -> None:
    """Writes weight and bias of these heads in place of those that `target` holds, and adds to its card."""
    with np.load(target, allow_pickle=False) as arrays:
        kept: dict[str, Any] = {name: arrays[name] for name in arrays.files}
    for name, (weight, bias) in heads.items():
        kept[f"head/{name}/weight"], kept[f"head/{name}/bias"] = weight.astype(np.float16), bias.astype(np.float32)
    kept["card"] = np.array(json.dumps({**json.loads(str(kept["card"])), **card}))
    np.savez_compressed(target, **kept)
    print(f"wrote {target}: {target.stat().st_size / 1e6:.2f} MB")
