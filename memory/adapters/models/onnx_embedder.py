"""Embeds text in this process: the prepared model on ONNX Runtime; requests have priority over learning.

Texts are embedded one at a time: with 8-bit activations a vector would otherwise depend on the rest of the batch, by as
much as the quantisation error, and a batch saves a quarter of the time at most. Computing threads do not hold the
interpreter. Queues are bounded, and only the texts of the most recent vectors are kept.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from memory.adapters.models.embedding_model import ENCODER, TOKENIZER, Card, card_of
from memory.adapters.models.packaged_encoder import EMBEDDINGS, SENTENCE_PIECES, TOKEN_TABLE, TokenTable, cpu_session
from memory.adapters.models.recent_vectors import CACHE_TEXTS, Prefixes, RecentVectors
from memory.adapters.models.sentence_pieces import sentence_pieces_of
from memory.adapters.well_formed import well_formed
from memory.errors import Busy, Unavailable
from memory.model import Vector
from memory.runtime.metrics import Metrics

PART = "embedder"
TEXT_CHARACTERS_MAX = 32_768  # the model reads 512 tokens; the rest has no effect
QUEUED_TEXTS_MAX = {"request": 256, "learn": 16_384}  # beyond it, waiting is useless

Lane: TypeAlias = Literal["request", "learn"]


class OnnxModel:
    """A loaded model: takes some tenths of a second and 60 MB. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        """`folder`: from `embedding_model.prepared`."""
        self.card: Card = card_of(folder)
        self._session = cpu_session(folder / ENCODER)
        self._table, self._pieces, self._tokenizer = None, None, None
        if self.card.base:
            base = folder.with_name(self.card.base)
            self._table = TokenTable(base / TOKEN_TABLE, width=self.card.dimension)
            self._pieces = sentence_pieces_of(base / SENTENCE_PIECES)
        else:
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            self._tokenizer.enable_truncation(self.card.tokens_max)

    @property
    def prefixes(self) -> Prefixes:
        return Prefixes(self.card.prompts.get("query", ""), self.card.prompts.get("document", ""))

    def vector(self, text: str) -> Vector:
        """A unit vector, shape `(dimension,)`; text beyond the model's input is cut off."""
        ids = np.array([self._ids(text)], dtype=np.int64)
        given: dict[str, npt.NDArray[Any]] = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        if self._table is not None:
            given[EMBEDDINGS] = self._table(ids)
        inputs = {name: given[name] if name in given else np.zeros_like(ids) for name in self.card.inputs}
        (vectors,) = self._session.run(None, inputs)
        return np.asarray(vectors[0], dtype=np.float32)

    def _ids(self, text: str) -> list[int]:
        if self._pieces is not None:
            return [self._pieces.start, *self._pieces.ids(text)[: self.card.tokens_max - 2], self._pieces.end]
        assert self._tokenizer is not None
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids


@dataclass(frozen=True, slots=True)
class EmbeddingLimits:
    """`threads`: concurrent texts, 0 is half of the cores. `urgent_seconds`: limit of a call that a chat waits for."""

    threads: int = 0
    urgent_seconds: float = 0.1
    cache_texts: int = CACHE_TEXTS
    prefixes: Prefixes = field(default_factory=Prefixes)


@dataclass(slots=True, eq=False)
class _Text:
    text: str
    lane: Lane
    vector: asyncio.Future[Vector]


class OnnxEmbedder:
    """`memory.ports.Embedder`. Open with `async with`; callers waiting when it is closed get `Unavailable`."""

    def __init__(self, model: OnnxModel, *, limits: EmbeddingLimits | None = None, metrics: Metrics) -> None:
        self._model = model
        self._limits = limits or EmbeddingLimits()
        self._metrics = metrics
        self.dimension = model.card.dimension
        self._recent = RecentVectors(texts_max=self._limits.cache_texts, dimension=self.dimension)
        self._idle = self._limits.threads or max(1, (os.cpu_count() or 2) // 2)
        self._lines: dict[Lane, deque[_Text]] = {"request": deque(), "learn": deque()}
        self._threads = ThreadPoolExecutor(self._idle, thread_name_prefix="embedding")

    async def __aenter__(self) -> Self:
        await asyncio.get_running_loop().run_in_executor(self._threads, self._model.vector, "The first one allocates.")
        return self

    async def __aexit__(self, *_: object) -> None:
        for line in self._lines.values():
            for one in line:
                if not one.vector.done():
                    one.vector.set_exception(Unavailable(PART, "it is being closed"))
            line.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def embed(self, texts: Sequence[str], *, is_urgent: bool, as_query: bool = False) -> Vector:
        prefix = self._limits.prefixes.of(as_query=as_query)
        wanted = [well_formed(prefix + text)[:TEXT_CHARACTERS_MAX] or " " for text in texts]
        vectors = partial(self._vectors, lane="request" if is_urgent else "learn")
        try:
            async with asyncio.timeout(self._limits.urgent_seconds if is_urgent else None):
                return await self._recent.of(wanted, vectors)
        except TimeoutError:
            raise Unavailable(PART, f"no vector within {self._limits.urgent_seconds:g} s") from None

    async def _vectors(self, texts: list[str], *, lane: Lane) -> Vector:
        line = self._lines[lane]
        if len(line) + len(texts) > QUEUED_TEXTS_MAX[lane]:
            self._metrics.embed_shed.inc(len(texts))
            raise Busy(PART, "too many texts are waiting")
        loop = asyncio.get_running_loop()
        asked = [_Text(text, lane, loop.create_future()) for text in texts]
        line.extend(asked)
        self._hand_out()
        return np.stack(await asyncio.gather(*(one.vector for one in asked)))

    def _hand_out(self) -> None:
        """Assign waiting texts to idle threads, requests first. Abandoned calls are skipped."""
        loop = asyncio.get_running_loop()
        for line in self._lines.values():
            while line and self._idle:
                one = line.popleft()
                if not one.vector.done():
                    self._idle -= 1
                    computing = loop.run_in_executor(self._threads, self._timed, one)
                    computing.add_done_callback(partial(self._came, one))

    def _timed(self, one: _Text) -> Vector:
        began_at = time.perf_counter()
        vector = self._model.vector(one.text)
        self._metrics.embed_seconds.labels(one.lane).observe(time.perf_counter() - began_at)
        return vector

    def _came(self, one: _Text, done: asyncio.Future[Vector]) -> None:
        self._idle += 1
        if done.cancelled():
            return  # with its thread
        error = done.exception()
        if one.vector.done():
            pass  # the caller gave up
        elif error is None:
            one.vector.set_result(done.result())
        else:
            one.vector.set_exception(Unavailable(PART, type(error).__name__))
        self._hand_out()
