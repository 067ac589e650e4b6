"""The part of the composition root that builds the compactor of a filter.

As in `composition`, no decisions are made here.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.chat.plain_lines import on_one_line
from memory.learn.reading.units import units_of
from memory.ports import CompactedStates, Tokens
from memory.ports.writing import GroundedWriter
from memory.processes.from_settings import compaction_limits, recording
from memory.processes.reader_parts import FirstNeeded, ready_reader
from memory.runtime.instruments import Instruments
from memory.sessions.compaction.compactor import Compactor, CompactorParts
from memory.settings import Settings


def own_sentences(message: str) -> Sequence[str]:
    """The sentences of a message without code, quotations and tables."""
    lines = (line.strip() for unit in units_of(message) if unit.is_own for line in unit.text.splitlines())
    return [line for line in lines if line]


def compactor_of(
    settings: Settings,
    *,
    states: CompactedStates,
    tokens: Tokens,
    writer: GroundedWriter | None,
    instruments: Instruments,
) -> Compactor:
    parts = CompactorParts(
        states=states,
        reader=FirstNeeded(lambda: ready_reader(settings)),
        tokens=tokens,
        sentences=own_sentences,
        plain=on_one_line,
        redact=recording(settings),
        writer=writer,
    )
    return Compactor(parts, limits=compaction_limits(settings), instruments=instruments)


__all__ = ["compactor_of", "own_sentences"]
