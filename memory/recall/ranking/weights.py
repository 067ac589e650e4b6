"""How the kinds of evidence are grouped. What each counts is a setting, with its reason: `memory/settings/ranking.py`.

The ranking takes those values as they are, so that a default stands in one place. Nothing here reads a configuration:
whoever ranks is handed the numbers.
"""

from __future__ import annotations

from memory.settings import Bar, HalfLives, NeighbourWeights, RankingSettings, Unspaced, Weights

PARTS: dict[str, tuple[str, ...]] = {
    "dense": ("dense",),
    "lexical": ("lexical",),
    "concept": ("concept", "aspect"),
    "speaker": ("speaker",),
    "neighbours": ("window_dense", "window_lexical", "answer"),
    "session": ("session_dense", "session_lexical"),
    "time": ("time", "when", "dated"),
    "form": ("question", "first_person", "manner"),
    "recency": ("recency",),
    "importance": ("importance",),
    "confidence": ("confidence",),
    "scope": ("scope",),
    "correction": ("correction",),
    "expiry": ("expiry",),
}
"""The score parts that a receipt shows, and the kinds of evidence behind each."""

TOPICAL = (
    "dense",
    "lexical",
    "concept",
    "speaker",
    "window_dense",
    "window_lexical",
    "session_dense",
    "session_lexical",
    "time",
)
"""The kinds that say whether a memory bears on the question at all; the others only order those that do."""

NAMES = Weights.__struct_fields__
DEFAULT_RANKING = RankingSettings()

__all__ = [
    "DEFAULT_RANKING",
    "NAMES",
    "PARTS",
    "TOPICAL",
    "Bar",
    "HalfLives",
    "NeighbourWeights",
    "RankingSettings",
    "Unspaced",
    "Weights",
]
