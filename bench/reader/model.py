"""The statement encoder in training: the packaged encoder with low-rank factors for its upper layers, and small heads.

The lower layers stay as they are, so their outputs are computed once for each text: a training takes half the time,
and what the encoder knows of languages without training texts is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from examples import IGNORED, PARTLY_KNOWN, Example, PairExample
from rich.progress import track
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy

from memory.adapters.models.packaged_encoder import Archive
from memory.learn.reading.encoding import TokenWindow
from memory.learn.reading.labels import (
    ACTS,
    ATTRIBUTE_NAMES,
    CATEGORY_NAMES,
    CLAUSE_MARKS,
    CLAUSE_WEIGHTS,
    PAIR_RELATIONS,
    RELATION_NAMES,
    TOKEN_KINDS,
)

SIDES, SIDES_WIDTH = 5, 128  # what a pair is judged by: five vectors, and how many features are made of them

ATTENTION = ("query", "key", "value")
DENSE = ("attention.output.dense", "intermediate.dense", "output.dense")
FROZEN_LAYERS = 6  # of 12
SCALE = 2.0  # of the factors' product
DROPOUT = 0.1
SMOOTHING = 0.02
RARE_ACT_WEIGHT = 2.0  # of an act that is neither none nor state: there are few of each
TOKEN_WEIGHTS = (0.3, 1.0, 1.0, 1.5)  # most tokens are plain
# Of the loss, beside the act's 1.
ATTRIBUTE_SHARE, RELATION_SHARE, CATEGORY_SHARE, TOKEN_SHARE, CLAUSE_SHARE = 0.5, 0.2, 0.3, 0.5, 0.5
LEANS_SHARE = 0.3


class LowRank(nn.Module):
    """A frozen linear layer plus `SCALE · b @ a`."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, inputs: Tensor) -> Tensor:
        adapted: Tensor = self.base(inputs) + (inputs @ self.a.T) @ self.b.T * SCALE
        return adapted


class FrozenLayers:
    """What the layers that stay as they are make of each text: computed once, for all trainings."""

    def __init__(self) -> None:
        self._encoder: Any = Archive().bert("sdpa").eval()
        self._read: dict[tuple[int, ...], Tensor] = {}  # by ids; a second segment begins after the same ids

    @torch.no_grad()
    def read(self, windows: Iterable[TokenWindow], *, at_once: int) -> None:
        """In half precision. A pass of a model needs the windows that it is given here first."""
        ordered = sorted({window.ids: window for window in windows}.values(), key=lambda one: len(one.ids))
        for start in track(range(0, len(ordered), at_once), description="frozen layers"):
            batch = ordered[start : start + at_once]
            ids, segments, mask = _padded(batch)
            hidden = self._encoder.embeddings(input_ids=ids, token_type_ids=segments)
            hidden = through_layers(self._encoder.encoder.layer[:FROZEN_LAYERS], hidden, mask)
            for row, window in enumerate(batch):
                self._read[window.ids] = hidden[row, : len(window.ids)].to(torch.float16).clone()

    def of(self, windows: Sequence[TokenWindow]) -> Tensor:
        """Shape `(windows, tokens, width)`."""
        return nn.utils.rnn.pad_sequence([self._read[window.ids] for window in windows], batch_first=True).float()


def through_layers(layers: Iterable[Any], hidden: Tensor, mask: Tensor) -> Tensor:
    seen = mask[:, None, None, :].bool()
    for layer in layers:
        hidden = layer(hidden, attention_mask=seen)[0]
    return hidden


class Reader(nn.Module):
    def __init__(self, rank: int, frozen: FrozenLayers) -> None:
        super().__init__()
        self._frozen = frozen
        self.encoder: Any = Archive().bert("sdpa")
        self.encoder.requires_grad_(requires_grad=False)
        for layer in self.encoder.encoder.layer[FROZEN_LAYERS:]:
            layer.attention.self.dropout_prob = 0.0  # of all pairs of tokens: a third of a training's time
            for name in (*(f"attention.self.{one}" for one in ATTENTION), *DENSE):
                path, _, last = name.rpartition(".")
                parent = layer.get_submodule(path)
                setattr(parent, last, LowRank(getattr(parent, last), rank))
        hidden = self.encoder.config.hidden_size
        self.heads = nn.ModuleDict(
            {
                "act": nn.Linear(2 * hidden, len(ACTS)),
                "attribute": nn.Linear(2 * hidden, len(ATTRIBUTE_NAMES)),
                "relation": nn.Linear(2 * hidden, len(RELATION_NAMES)),
                "category": nn.Linear(2 * hidden, len(CATEGORY_NAMES)),
                "sides": nn.Linear(SIDES * hidden, SIDES_WIDTH),
                "pair": nn.Linear(SIDES_WIDTH, len(PAIR_RELATIONS)),
                "token": nn.Linear(hidden, len(TOKEN_KINDS)),
                "leans": nn.Linear(2 * hidden, 2),
                "clause": nn.Linear(hidden, len(CLAUSE_MARKS)),
            }
        )
        self.dropout = nn.Dropout(DROPOUT)
        weights = [1.0 if act in ("none", "state") else RARE_ACT_WEIGHT for act in ACTS]
        self.register_buffer("act_weights", torch.tensor(weights))
        self.register_buffer("token_weights", torch.tensor(TOKEN_WEIGHTS))
        self.register_buffer("clause_weights", torch.tensor(CLAUSE_WEIGHTS))

    def hidden(self, windows: Sequence[TokenWindow]) -> Tensor:
        """Shape `(windows, tokens, width)`."""
        _, _, mask = _padded(windows)
        upper = self.encoder.encoder.layer[FROZEN_LAYERS:]
        with sdpa_kernel(SDPBackend.MATH):  # the fused kernel is slower backwards
            dropped: Tensor = self.dropout(through_layers(upper, self._frozen.of(windows), mask))
        return dropped

    def units(self, hidden: Tensor, examples: Sequence[Example]) -> Tensor:
        """Of every judged unit and clause, the mean of its tokens and the first token: shape `(judged, 2 · width)`."""
        judged = [(row, unit) for row, example in enumerate(examples) for unit in example.judged]
        means = _means(hidden, [(row, unit.first, unit.stop) for row, unit in judged])
        return torch.cat([means, hidden[[row for row, _ in judged], 0]], dim=1)

    def message_loss(self, examples: Sequence[Example]) -> Tensor:
        hidden = self.hidden([example.window for example in examples])
        units = self.units(hidden, examples)
        labels = torch.tensor([unit.labels for example in examples for unit in example.judged])
        loss = cross_entropy(self.heads["act"](units), labels[:, 0], weight=self.act_weights, label_smoothing=SMOOTHING)
        shares = (
            ("attribute", ATTRIBUTE_SHARE),
            ("relation", RELATION_SHARE),
            ("category", CATEGORY_SHARE),
            ("leans", LEANS_SHARE),
        )
        for column, (head, share) in enumerate(shares, 1):
            if bool((labels[:, column] != IGNORED).any()):
                loss = loss + share * cross_entropy(self.heads[head](units), labels[:, column], ignore_index=IGNORED)
        if all(example.source == PARTLY_KNOWN for example in examples):
            return loss  # there is no token with a label
        kinds = torch.full(hidden.shape[:2], IGNORED)
        for row, example in enumerate(examples):
            kinds[row, : len(example.kinds)] = torch.tensor(example.kinds)
        tokens = self.heads["token"](hidden).flatten(0, 1)
        of_tokens = cross_entropy(tokens, kinds.flatten(), ignore_index=IGNORED, weight=self.token_weights)
        marks = torch.full(hidden.shape[:2], IGNORED)
        for row, example in enumerate(examples):
            marks[row, : len(example.marks)] = torch.tensor(example.marks)
        clauses = self.heads["clause"](hidden).flatten(0, 1)
        of_clauses = cross_entropy(clauses, marks.flatten(), ignore_index=IGNORED, weight=self.clause_weights)
        return loss + TOKEN_SHARE * of_tokens + CLAUSE_SHARE * of_clauses

    def pair_logits(self, examples: Sequence[PairExample]) -> Tensor:
        """Of both sides beside each other, their difference and what they share: `sides_of` in production."""
        hidden = self.hidden([example.window for example in examples])
        windows = [example.window for example in examples]
        middles = [len(window.segments) - sum(window.segments) for window in windows]
        older = _means(hidden, [(row, 1, middle - 1) for row, middle in enumerate(middles)])
        newer = _means(hidden, [(row, middle, len(windows[row].ids) - 1) for row, middle in enumerate(middles)])
        pooled = torch.cat([older, newer, (older - newer).abs(), older * newer, hidden[:, 0]], dim=1)
        sides = torch.nn.functional.relu(self.heads["sides"](pooled))
        logits: Tensor = self.heads["pair"](self.dropout(sides))
        return logits

    def pair_loss(self, examples: Sequence[PairExample]) -> Tensor:
        labels = torch.tensor([example.label for example in examples])
        return cross_entropy(self.pair_logits(examples), labels, label_smoothing=SMOOTHING)


def _means(hidden: Tensor, spans: Sequence[tuple[int, int, int]]) -> Tensor:
    """Of `(row, first, stop)` the mean of these tokens, all in one product: shape `(spans, width)`."""
    rows, tokens, width = hidden.shape
    shares = torch.zeros(len(spans), rows, tokens)
    for number, (row, first, stop) in enumerate(spans):
        shares[number, row, first:stop] = 1 / (stop - first)
    return shares.flatten(1) @ hidden.reshape(rows * tokens, width)


@torch.no_grad()
def mean_of(models: Sequence[Reader], frozen: FrozenLayers) -> Reader:
    """The mean of all factors' products, as factors of the summed rank that stay as they are, and of the heads."""
    if len(models) == 1:
        return models[0]
    adapted = [[one for one in model.modules() if isinstance(one, LowRank)] for model in models]
    mean = Reader(sum(layers[0].a.shape[0] for layers in adapted), frozen)
    for target, *layers in zip((one for one in mean.modules() if isinstance(one, LowRank)), *adapted, strict=True):
        target.a.copy_(torch.cat([one.a for one in layers])).requires_grad_(requires_grad=False)
        target.b.copy_(torch.cat([one.b for one in layers], dim=1) / len(layers)).requires_grad_(requires_grad=False)
    for target, *heads in zip(mean.heads.parameters(), *(model.heads.parameters() for model in models), strict=True):
        target.copy_(torch.stack(list(heads)).mean(0))
    return mean


def _padded(windows: Sequence[TokenWindow]) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, segments and mask, each of shape `(windows, tokens)`."""
    longest = max(len(window.ids) for window in windows)
    ids = torch.zeros(len(windows), longest, dtype=torch.long)
    segments, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, window in enumerate(windows):
        ids[row, : len(window.ids)] = torch.tensor(window.ids)
        segments[row, : len(window.ids)] = torch.tensor(window.segments)
        mask[row, : len(window.ids)] = 1
    return ids, segments, mask
