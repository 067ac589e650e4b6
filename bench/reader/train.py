"""Trains the statement encoder on the texts in this folder, and writes the weights.

    python bench/reader/train.py --seeds 7 8 --out memory/learn/reading/weights.npz   # what is shipped: the mean of two
    python bench/reader/train.py --out FILE.npz                                       # of one training, on all texts
    python bench/reader/train.py --holdout 0.1                                        # a tenth is kept out, and scored

With several seeds the result is the mean of one training for each, whose heads are trained once more on it: the mean
of encoders is less sure than each.

Writes low-rank factors and heads in half precision, with a card that names the fingerprint of the texts and the
settings. Seeded: on one machine a second training gives the same weights.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import texts as corpus
import torch
from examples import Example, PairExample, Texts, batches, standing_together
from fingerprint import ORDERS_FOLDER, READING_FOLDERS, fingerprint
from model import SCALE, FrozenLayers, LowRank, Reader, mean_of
from rich.progress import track
from scoring import scored

BATCH_TOKENS = 2_560  # padded, in one step
FROZEN_AT_ONCE = 32  # windows
HEAD_RATE = 2e-3
GRADIENT_NORM_MAX = 1.0


@dataclass(frozen=True, slots=True)
class Settings:
    out: Path | None
    epochs: int
    rank: int
    rate: float
    holdout: float
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """What is trained on."""

    examples: Sequence[Example]
    pairs: Sequence[PairExample]


def train(settings: Settings) -> None:
    rng = random.Random(settings.seeds[0])
    messages, pairs = list(corpus.all_messages()), list(corpus.all_pairs())
    rng.shuffle(messages)
    rng.shuffle(pairs)
    held, held_pairs = int(len(messages) * settings.holdout), int(len(pairs) * settings.holdout)
    reading = Texts()
    written = [*pairs[held_pairs:], *standing_together(messages[held:])]
    leanings = list(corpus.leanings())
    rng.shuffle(leanings)
    held_leanings = int(len(leanings) * settings.holdout)
    examples = [*reading.examples(messages[held:]), *reading.leanings(leanings[held_leanings:])]
    examples += reading.orders(corpus.taught_users(ORDERS_FOLDER))
    seen = Seen(examples, reading.pairs(written))
    kept = [*reading.examples(messages[:held]), *reading.leanings(leanings[:held_leanings])]
    kept_pairs = reading.pairs(pairs[:held_pairs])
    print(f"{len(messages)} messages, {sum(len(e.judged) for e in examples)} units and clauses, {len(written)} pairs")
    frozen = FrozenLayers()
    windows = (example.window for example in (*seen.examples, *seen.pairs, *kept, *kept_pairs))
    frozen.read(windows, at_once=FROZEN_AT_ONCE)
    model = mean_of([_trained(frozen, seen, seed, settings) for seed in settings.seeds], frozen)
    if len(settings.seeds) > 1:
        _run(model, seen, rng, epochs=1, rate=settings.rate)
    if settings.out is not None:
        save(model, settings)
    if settings.holdout:
        scored(model, kept, kept_pairs)


def _trained(frozen: FrozenLayers, seen: Seen, seed: int, settings: Settings) -> Reader:
    torch.manual_seed(seed)
    model = Reader(settings.rank, frozen)
    _run(model, seen, random.Random(seed), epochs=settings.epochs, rate=settings.rate)
    return model


def _run(model: Reader, seen: Seen, rng: random.Random, *, epochs: int, rate: float) -> None:
    """Trains what of the model requires gradients."""
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    factors = [p for name, p in named if name.endswith((".a", ".b"))]
    others = [p for name, p in named if not name.endswith((".a", ".b"))]
    groups = [{"params": factors, "lr": rate}, {"params": others, "lr": HEAD_RATE}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    steps = [_steps(seen, rng) for _ in range(epochs)]
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, [rate, HEAD_RATE], total_steps=sum(map(len, steps)) + 1, pct_start=0.1
    )
    capable = torch.cpu.get_capabilities()
    in_half = bool(capable.get("amx_bf16") or capable.get("avx512_bf16"))  # emulated it takes hours
    model.train()
    began = time.perf_counter()
    for epoch, batched in enumerate(steps, 1):
        losses: list[float] = []
        for batch in track(batched, description=f"epoch {epoch} of {epochs}"):
            made: Any = batch
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=in_half):
                loss = model.message_loss(made) if isinstance(made[0], Example) else model.pair_loss(made)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_([p for _, p in named], GRADIENT_NORM_MAX)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: {time.perf_counter() - began:.0f} s, loss {np.mean(losses):.3f}", flush=True)
    model.eval()


def _steps(seen: Seen, rng: random.Random) -> list[list[Example] | list[PairExample]]:
    steps: list[list[Example] | list[PairExample]] = [
        *batches(seen.examples, rng, tokens_max=BATCH_TOKENS),
        *batches(seen.pairs, rng, tokens_max=BATCH_TOKENS),
    ]
    rng.shuffle(steps)
    return steps


def save(model: Reader, settings: Settings) -> None:
    assert settings.out is not None
    arrays: dict[str, Any] = {}
    for name, module in model.named_modules():
        if isinstance(module, LowRank):
            arrays[f"factor/{name}/a"] = module.a.detach().numpy().astype(np.float16)
            arrays[f"factor/{name}/b"] = (module.b * SCALE).detach().numpy().astype(np.float16)
    for name, head in model.heads.items():
        assert isinstance(head, torch.nn.Linear)
        arrays[f"head/{name}/weight"] = head.weight.detach().numpy().astype(np.float16)
        arrays[f"head/{name}/bias"] = head.bias.detach().numpy().astype(np.float32)
    told = {"epochs": settings.epochs, "rank": settings.rank, "rate": settings.rate, "seeds": settings.seeds}
    arrays["card"] = np.array(json.dumps({"texts": fingerprint(*READING_FOLDERS), **told}))
    np.savez_compressed(settings.out, **arrays)
    print(f"wrote {settings.out}: {settings.out.stat().st_size / 1e6:.2f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--rate", type=float, default=8e-4)
    parser.add_argument("--holdout", type=float, default=0.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[7], help="one training for each")
    given = parser.parse_args()
    train(Settings(**(vars(given) | {"seeds": tuple(given.seeds)})))


if __name__ == "__main__":
    main()
