"""What somebody is told who writes a key that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_INSTEAD_OF_REDIS = (
    "the turn log is no longer kept on Redis; write database_url: postgresql://HOST:PORT/DATABASE, and memory.database "
    "for role and password; `memproxy export` of the release before and `memproxy import` move what was kept"
)
_OF_REDIS = ("redis_url", "redis")  # keys of earlier releases


def unknown(key: str, known: Iterable[str], source: str) -> str:
    """The nearest known key, or all of them."""
    if key.rpartition(".")[2] in _OF_REDIS or "_REDIS" in key:
        return f"{key} ({source}): {_INSTEAD_OF_REDIS}"
    names = list(known)
    nearest = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
    advice = f"did you mean {nearest[0]}?" if nearest else f"known here: {', '.join(names)}"
    return f"unknown setting {key} ({source}): {advice}"
