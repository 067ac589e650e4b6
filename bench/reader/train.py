"""Trains the statement encoder on the texts in this folder, and writes the weights.

    python bench/reader/train.py --out memory/learn/reading/weights.npz    # what is shipped: on all texts
    python bench/reader/train.py --holdout 0.1                             # a tenth is kept out, and scored

Writes low-rank factors and heads in half precision, with a card that names the fingerprint of the texts and the
settings. Seeded; that a second training gives the same weights was not tried. `--processes` share each step.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import texts as corpus
import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from examples import Example, PairExample, Texts, batches, characters_of, standing_together
from fingerprint import FOLDER, fingerprint
from model import SCALE, LowRank, Reader
from scoring import scored

BATCH_TOKENS = 1_280  # padded, of one process in one step
HEAD_RATE = 2e-3
GRADIENT_NORM_MAX = 1.0


@dataclass(frozen=True, slots=True)
class Settings:
    texts: Path
    out: Path | None
    epochs: int
    rank: int
    rate: float
    holdout: float
    seed: int
    processes: int


def train(number: int, settings: Settings, meeting: str) -> None:
    """One of the processes. Each takes its share of every epoch's batches; gradients are averaged at each step.

    `meeting`: a file that does not exist yet, by which the processes find each other.
    """
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=number, world_size=settings.processes)
    rng = random.Random(settings.seed)
    torch.manual_seed(settings.seed)
    messages, pairs = list(corpus.messages(settings.texts)), list(corpus.pairs(settings.texts))
    rng.shuffle(messages)
    rng.shuffle(pairs)
    held, held_pairs = int(len(messages) * settings.holdout), int(len(pairs) * settings.holdout)
    characters = characters_of(messages, pairs)
    reading = Texts(characters)
    written = [*pairs[held_pairs:], *standing_together(messages[held:])]
    seen, seen_pairs = reading.examples(messages[held:]), reading.pairs(written)
    model = Reader(settings.rank, reading.ids, reading.known)
    if number == 0:
        print(f"{len(messages)} messages, {sum(len(e.judged) for e in seen)} units, {len(written)} pairs", flush=True)
    _run(model, seen, seen_pairs, rng, settings, number)
    if number == 0 and settings.holdout:
        scored(model, reading.examples(messages[:held]), reading.pairs(pairs[:held_pairs]))
    if number == 0 and settings.out is not None:
        save(model, settings, characters)
    dist.destroy_process_group()


def _run(
    model: Reader,
    seen: Sequence[Example],
    seen_pairs: Sequence[PairExample],
    rng: random.Random,
    settings: Settings,
    number: int,
) -> None:
    trained = [p for p in model.parameters() if p.requires_grad]
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    factors = [p for name, p in named if name.endswith((".a", ".b"))]
    others = [p for name, p in named if not name.endswith((".a", ".b"))]
    groups = [{"params": factors, "lr": settings.rate}, {"params": others, "lr": HEAD_RATE}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    epochs = [_steps(seen, seen_pairs, rng, settings.processes) for _ in range(settings.epochs)]
    total = sum(len(steps) for steps in epochs)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, [settings.rate, HEAD_RATE], total_steps=total + 1, pct_start=0.1
    )
    model.train()
    began = time.perf_counter()
    for epoch, steps in enumerate(epochs, 1):
        losses: list[float] = []
        for step in steps:
            batch: Any = step[number]
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = model.message_loss(batch) if isinstance(batch[0], Example) else model.pair_loss(batch)
            optimizer.zero_grad(set_to_none=False)
            loss.backward()  # type: ignore[no-untyped-call]
            _average(trained, settings.processes)
            torch.nn.utils.clip_grad_norm_(trained, GRADIENT_NORM_MAX)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        if number == 0:
            seconds = time.perf_counter() - began
            print(f"epoch {epoch}: {seconds:.0f} s, loss {np.mean(losses):.3f}", flush=True)


def _steps(
    seen: Sequence[Example], seen_pairs: Sequence[PairExample], rng: random.Random, shares: int
) -> list[list[list[Example] | list[PairExample]]]:
    """One batch for each process in every step, of the same kind."""
    steps: list[list[list[Example] | list[PairExample]]] = []
    for made in (batches(seen, rng, tokens_max=BATCH_TOKENS), batches(seen_pairs, rng, tokens_max=BATCH_TOKENS)):
        steps += [list(made[i : i + shares]) for i in range(0, len(made) - shares + 1, shares)]
    rng.shuffle(steps)
    return steps


def _average(parameters: Sequence[torch.nn.Parameter], shares: int) -> None:
    if shares == 1:
        return
    gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat /= shares
    position = 0
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = flat[position : position + gradient.numel()].view_as(gradient)
        position += gradient.numel()


def save(model: Reader, settings: Settings, characters: str) -> None:
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
    arrays["characters"] = np.array(characters)
    arrays["rows"] = model.encoder.embeddings.word_embeddings.rows.detach().numpy().astype(np.float16)
    told = {"epochs": settings.epochs, "rank": settings.rank, "rate": settings.rate, "seed": settings.seed}
    arrays["card"] = np.array(json.dumps({"texts": fingerprint(settings.texts), **told}))
    np.savez_compressed(settings.out, **arrays)
    print(f"wrote {settings.out}: {settings.out.stat().st_size / 1e6:.2f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--rate", type=float, default=8e-4)
    parser.add_argument("--holdout", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--processes", type=int, default=2)
    settings = Settings(**vars(parser.parse_args()))
    with tempfile.TemporaryDirectory() as folder:
        processes.spawn(train, args=(settings, f"{folder}/meeting"), nprocs=settings.processes)


if __name__ == "__main__":
    main()
