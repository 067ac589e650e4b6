"""A compactor with a reader that finds nothing, for users of whom nothing is remembered: sentences alone decide."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from token_counts import counted_tokens

from memory.adapters.sql.notes import SqlCompactedStates
from memory.chat.plain_lines import on_one_line
from memory.learn.readers import OffReader
from memory.ports import StatementReader
from memory.ports.reading import GroundedWriter
from memory.processes.background_parts import no_kinds, own_sentences
from memory.runtime.tracing import Telemetry
from memory.sessions.compaction.compactor import Compactor, CompactorParts


def plain_compactor(
    states: SqlCompactedStates,
    telemetry: Telemetry,
    *,
    redact: Callable[[str], str],
    reader: StatementReader | None = None,
    writer: GroundedWriter | None = None,
) -> Compactor:
    async def none_held(user_id: str, texts: Sequence[str]) -> Collection[str]:
        return ()

    async def load() -> StatementReader:
        return reader or OffReader()

    return Compactor(
        CompactorParts(
            *(states, load, counted_tokens(), own_sentences, no_kinds, none_held),
            plain=on_one_line,
            redact=redact,
            writer=writer,
        ),
        threshold_tokens=4_000,
        telemetry=telemetry,
    )
