"""The product's own trained reader with the weights that are shipped, merged once and loaded once a test process."""

from __future__ import annotations

from functools import cache

from memory.adapters.models.reader_weights import prepared
from memory.adapters.models.statement_encoder import OnnxStatementEncoder
from memory.learn.reading.trained import TrainedReader
from memory.settings.loader import from_process


@cache
def statement_encoder() -> OnnxStatementEncoder:
    return OnnxStatementEncoder(prepared(from_process(None, {}).models_path))


@cache
def trained_reader() -> TrainedReader:
    return TrainedReader(statement_encoder())
