"""Signals: what a message is, and whether it asks for something that no single memory answers.

"What did we talk about in May?" asks about a past conversation itself; "What did I do in May?" does not. "What do you
know about me?" asks about the user as a whole, and none of their memories resembles it. Two linear models over the
embedding of the query, which a search has anyway, and its words. They learn from phrases written for them, and must
never see evaluation data. No IO.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

from memory.model.recalled import AskedWhole
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


class QuestionKind(StrEnum):
    """What a question is about, where no single memory answers it."""

    PAST_TALK = "past_talk"
    ABOUT_USER = "about_user"
    ABOUT_PROJECT = "about_project"


KINDS = tuple(QuestionKind)
# Of the scores; `bench/train_signals.py` prints what each costs in five-fold cross-validation on the phrases.
PAST_TALK_MIN = 0.45
WHOLE_MIN = 0.45  # of both kinds that ask about a whole

KindScores: TypeAlias = Mapping[QuestionKind, float]
NO_KIND: KindScores = dict.fromkeys(KINDS, 0.0)
_WHOLES = {QuestionKind.ABOUT_USER: AskedWhole.USER, QuestionKind.ABOUT_PROJECT: AskedWhole.PROJECT}


class QuestionClassifier(LinearModel[QuestionKind]):
    """Of the kind that a question is of, if any."""

    labels = KINDS


def whole_of(scores: KindScores) -> AskedWhole | None:
    """What the question is about as a whole; None if it is not."""
    kind = max(_WHOLES, key=lambda one: scores[one])
    return _WHOLES[kind] if scores[kind] >= WHOLE_MIN else None
