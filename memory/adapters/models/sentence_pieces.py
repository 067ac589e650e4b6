"""The packaged model's tokenizer, by Google's sentencepiece: for 250,000 pieces it takes far less time and memory than
`tokenizers`. One for each process.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from sentencepiece import SentencePieceProcessor

from memory.ports import Tokens

CACHED_TEXTS_MAX = 4_096  # the same memories are counted again and again


class SentencePieces:
    """Thread-safe. `start`, `end`: ids of the tokens that the encoder expects around a text."""

    def __init__(self, model: bytes) -> None:
        """`model`: a serialised `ModelProto` of sentencepiece, from `packaged_encoder`."""
        self._pieces: Any = SentencePieceProcessor(model_proto=model)
        self.start: int = self._pieces.bos_id()
        self.end: int = self._pieces.eos_id()

    def ids(self, text: str) -> list[int]:
        """Without `start` and `end`."""
        ids: list[int] = self._pieces.encode(_readable(text))
        return ids

    def placed(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids, and for each the characters of `text` that it stands for, without white space before them."""
        readable = _readable(text)
        found = self._pieces.encode(readable, return_type="proto").pieces
        # sentencepiece counts bytes: those that continue a character are not counted
        is_first = np.frombuffer(readable.encode(), dtype=np.uint8) & 0xC0 != 0x80
        place = np.concatenate([[0], is_first.cumsum()])
        stops = place[[piece.end for piece in found]].tolist() if found else []
        blanks = [len(piece.surface) - len(piece.surface.lstrip()) for piece in found]
        starts = [stop - len(piece.surface) + blank for stop, piece, blank in zip(stops, found, blanks, strict=True)]
        return [piece.id for piece in found], list(zip(starts, stops, strict=True))


@functools.cache
def sentence_pieces_of(file: Path) -> SentencePieces:
    """The one of this process for this file."""
    return SentencePieces(file.read_bytes())


def sentence_piece_tokens(pieces: SentencePieces) -> Tokens:
    """Counts: an estimate for the chat model's tokens, and the same in every process."""
    return functools.lru_cache(maxsize=CACHED_TEXTS_MAX)(lambda text: len(pieces.ids(text)))


def _readable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # a lone surrogate counts as a question mark
