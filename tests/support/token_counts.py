"""Token counts as the product makes them, with the packaged model's tokenizer, loaded once a test process."""

from __future__ import annotations

from functools import cache

from memory.adapters.models.packaged_encoder import sentence_pieces
from memory.adapters.models.sentence_pieces import sentence_piece_tokens
from memory.ports import Tokens
from memory.settings.loader import from_process


@cache
def counted_tokens() -> Tokens:
    return sentence_piece_tokens(sentence_pieces(from_process(None, {}).models_path))
