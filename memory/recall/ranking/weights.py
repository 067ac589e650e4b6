"""Groups the ranking features. The weights are settings, with their reasons: `memory/settings/ranking.py`.

The ranking uses those values unchanged, so that each default is defined in one place. Nothing here reads configuration.
"""

from __future__ import annotations

from memory.settings import RankingSettings, Weights

PARTS: dict[str, tuple[str, ...]] = {
    "dense": ("dense",),
    "lexical": ("lexical",),
    "wanted": ("wanted",),
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
"""The score parts that a receipt shows, and the features behind each."""

TOPICAL = (
    "dense",
    "lexical",
    "speaker",
    "window_dense",
    "window_lexical",
    "session_dense",
    "session_lexical",
    "time",
)
"""The features that say whether a memory relates to the question; the others only order those that do."""

NAMES = Weights.__struct_fields__
DEFAULT_RANKING = RankingSettings()
