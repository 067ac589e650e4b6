"""The product's own trained reader with the weights that are shipped, merged once and loaded once a test process."""

from __future__ import annotations

from functools import cache

from memory.adapters.reader_weights import prepared
from memory.adapters.statement_encoder import OnnxStatementEncoder
from memory.config import from_process
from memory.learn.reading.trained import TrainedReader


@cache
def statement_encoder() -> OnnxStatementEncoder:
    return OnnxStatementEncoder(prepared(from_process(None, {}).models_path))


@cache
def trained_reader() -> TrainedReader:
    return TrainedReader(statement_encoder())
