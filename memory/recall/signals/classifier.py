"""Part of stage 6: classifies a message with a linear model over its embedding and its words, trained at the start.

This module must never see evaluation data: it learns from phrases written for it. No IO.
"""

from __future__ import annotations

from enum import StrEnum

from memory.recall.signals.linear_model import LinearModel


class SignalLabel(StrEnum):
    """What a message is, and whether it wants memory."""

    GENERAL_FACT = "general_fact"
    TOOL = "tool"
    GREETING = "greeting"
    PERSONAL = "personal"
    TASK = "task"
    SMALLTALK = "smalltalk"

    @property
    def wants_memory(self) -> bool:
        return self in (SignalLabel.PERSONAL, SignalLabel.TASK, SignalLabel.SMALLTALK)


class SignalClassifier(LinearModel[SignalLabel]):
    """Of what a message is."""

    labels = tuple(SignalLabel)
