"""What is the same for capabilities of models on every adapter: names, which lesson counts, and how long.

Lessons expire, since the template, or the model behind a name, may have changed. Model names come from clients, hence
the limits.
"""

from __future__ import annotations

from memory.model import Placement

LESSON_SECONDS_MAX = 30 * 86_400.0  # then one request may be refused again
MODELS_MAX = 1_000  # stored
MODEL_CHARACTERS_MAX = 256  # no server has longer names

_CAREFUL = {Placement.BEFORE_LAST_USER: 0, Placement.SYSTEM: 1, Placement.OFF: 2}


def named(model: str) -> str:
    return model[:MODEL_CHARACTERS_MAX].encode(errors="replace").decode()


def is_lesson(known: Placement | None, placement: Placement) -> bool:
    """Whether it is more careful than what is known."""
    return known is None or _CAREFUL[known] < _CAREFUL[placement]
