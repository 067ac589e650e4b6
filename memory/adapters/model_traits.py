"""What is the same for capabilities of models on every adapter: names, which lesson counts, and how long.

Needed in every request: each process therefore remembers what it read for some seconds. Lessons expire, since the
template, or the model behind a name, may have changed. Model names come from clients, hence the limits.
"""

from __future__ import annotations

from collections import OrderedDict

from memory.model import Placement

REMEMBERED_SECONDS = 5.0  # how late a process may see another one's change
LESSON_SECONDS_MAX = 30 * 86_400.0  # then one request may be refused again
MODELS_MAX = 1_000  # remembered, and stored
MODEL_CHARACTERS_MAX = 256  # no server has longer names

_CAREFUL = {Placement.BEFORE_LAST_USER: 0, Placement.SYSTEM: 1, Placement.OFF: 2}


def named(model: str) -> str:
    return model[:MODEL_CHARACTERS_MAX].encode(errors="replace").decode()


def is_lesson(known: Placement | None, placement: Placement) -> bool:
    """Whether it is more careful than what is known."""
    return known is None or _CAREFUL[known] < _CAREFUL[placement]


class RememberedPlacements:
    """What this process read or learnt some seconds ago."""

    def __init__(self) -> None:
        self._placements: OrderedDict[str, tuple[Placement | None, float]] = OrderedDict()  # with when it expires

    def get(self, name: str, *, now: float) -> tuple[Placement | None, bool]:
        """With whether it is known."""
        known, until = self._placements.get(name, (None, 0.0))
        return known, now < until

    def put(self, name: str, placement: Placement | None, *, now: float) -> None:
        self._placements[name] = (placement, now + REMEMBERED_SECONDS)
        self._placements.move_to_end(name)
        if len(self._placements) > MODELS_MAX:
            self._placements.popitem(last=False)
