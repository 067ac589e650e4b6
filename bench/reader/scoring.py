"""Scores a trained reader on held-out texts: by language, and as confusion matrices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import torch
from examples import BEGIN, IGNORED, INSIDE, Example, PairExample
from model import Reader

from memory.learn.reading.labels import ACTS, PAIR_RELATIONS

BATCH = 32
BAR = 0.5
LEFT_OUT = (ACTS.index("none"), ACTS.index("instruct"))


@torch.no_grad()
def scored(model: Reader, examples: Sequence[Example], pairs: Sequence[PairExample]) -> None:
    model.eval()
    kept: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    acts = np.zeros((len(ACTS), len(ACTS)), dtype=int)
    right: dict[str, list[bool]] = defaultdict(list)
    for start in range(0, len(examples), BATCH):
        batch = examples[start : start + BATCH]
        units = model.units(model.hidden([example.window for example in batch]), batch)
        shares = model.heads["act"](units).softmax(-1)
        guesses = {head: model.heads[head](units).argmax(-1) for head in ("attribute", "relation", "category")}
        judged = [(example.source[:2], unit) for example in batch for unit in example.judged]
        for row, (language, unit) in enumerate(judged):
            share = 1.0 - sum(float(shares[row, act]) for act in LEFT_OUT)
            kept[language].append((unit.labels[0] not in LEFT_OUT, share > BAR))
            acts[unit.labels[0], int(shares[row].argmax())] += 1
            leans = int(model.heads["leans"](units[row]).argmax())
            right["leans"] += [leans == unit.labels[4]] if unit.labels[4] != IGNORED else []
            for column, (head, guess) in enumerate(guesses.items(), 1):
                if unit.labels[column] != IGNORED:
                    right[head].append(int(guess[row]) == unit.labels[column])
    for language, rows in sorted(kept.items()):
        facts = [is_kept for is_fact, is_kept in rows if is_fact]
        others = [is_kept for is_fact, is_kept in rows if not is_fact]
        print(f"  {language}: {len(rows)} units, facts kept {_mean(facts):.3f}, others kept {_mean(others):.3f}")
    print("  " + ", ".join(f"{head} {_mean(rows):.3f}" for head, rows in right.items()))
    print(f"  acts (rows: true): {', '.join(ACTS)}\n{acts}")
    _score_clauses(model, examples)
    _score_pairs(model, pairs)


def _score_clauses(model: Reader, examples: Sequence[Example]) -> None:
    """How many clauses are found with more than half of their tokens, how many found ones are clauses, and how many
    windows with two or more are cut exactly into as many.
    """
    found, true, several = [], [], []
    for start in range(0, len(examples), BATCH):
        batch = examples[start : start + BATCH]
        guesses = model.heads["clause"](model.hidden([example.window for example in batch])).argmax(-1).tolist()
        for row, example in enumerate(batch):
            wanted = _clauses(example.marks)
            got = _clauses(
                [guess if mark >= 0 else mark for guess, mark in zip(guesses[row], example.marks, strict=False)]
            )
            true += [any(_alike(one, other) for other in got) for one in wanted]
            found += [any(_alike(one, other) for other in wanted) for one in got]
            several += [len(got) == len(wanted)] if len(wanted) > 1 else []
    print(
        f"  clauses: found {_mean(true):.3f}, right {_mean(found):.3f}, several cut into as many {_mean(several):.3f}"
    )


def _clauses(marks: Sequence[int]) -> list[frozenset[int]]:
    found: list[set[int]] = []
    for token, mark in enumerate(marks):
        if mark == BEGIN or (mark == INSIDE and (token == 0 or marks[token - 1] not in (BEGIN, INSIDE))):
            found.append({token})
        elif mark == INSIDE:
            found[-1].add(token)
    return [frozenset(one) for one in found]


def _alike(one: frozenset[int], other: frozenset[int]) -> bool:
    return 2 * len(one & other) > max(len(one), len(other))


def _score_pairs(model: Reader, pairs: Sequence[PairExample]) -> None:
    table = np.zeros((len(PAIR_RELATIONS), len(PAIR_RELATIONS)), dtype=int)
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        for example, guess in zip(batch, model.pair_logits(batch).argmax(-1).tolist(), strict=True):
            table[example.label, guess] += 1
    print(f"  pairs (rows: true): {', '.join(PAIR_RELATIONS)}\n{table}", flush=True)


def _mean(rows: Sequence[bool]) -> float:
    return float(np.mean(rows)) if rows else float("nan")
