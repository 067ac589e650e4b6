"""Looks for words anywhere in files, as parts of other words too: no byte of what was deleted may be left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq


def files_with(places: Sequence[Path], words: Sequence[str]) -> list[str]:
    """Names of the files, in these folders or these files themselves, that hold one of the words."""
    return [
        path.name if path == place else str(path.relative_to(place))
        for place in places
        for path in sorted(one for one in (place, *place.rglob("*")) if one.is_file())
        if any(word.encode() in held for held in _contents(path) for word in words)
    ]


def _contents(path: Path) -> Iterator[bytes]:
    """Its bytes, and the rows of a Parquet file, which are compressed. Nothing of a file that vanishes meanwhile."""
    try:
        yield path.read_bytes()
        if path.suffix == ".parquet":
            table = pq.read_table(path)  # a file of deleted rows has no vectors
            yield repr(table.select([name for name in table.column_names if name != "embedding"]).to_pylist()).encode()
    except FileNotFoundError:
        return
