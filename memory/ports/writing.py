"""The port of writers, which make a short text from numbered lines and say which lines each sentence is based on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class WritingTask:
    """What is to be written. `instruction`: the rules, for the writer. `kinds`: of sentences, of which each gets one.
    `answer_tokens_max`: of the whole answer.
    """

    instruction: str
    kinds: tuple[str, ...]
    sentences_max: int = 20
    answer_tokens_max: int = 500


@dataclass(frozen=True, slots=True)
class GroundedSentence:
    """`sources`: numbers of the lines that it is based on, from 1, at least one."""

    text: str
    sources: tuple[int, ...]
    kind: str


Objections: TypeAlias = Callable[[Sequence[GroundedSentence]], Sequence[str]]
"""What is wrong with a text, in short sentences for the writer; empty: it can be used."""


class GroundedWriter(Protocol):
    """Writes from given lines only. A text is a proposal, which the caller has to check."""

    async def write(
        self, task: WritingTask, lines: Sequence[str], *, objections: Objections
    ) -> Sequence[GroundedSentence]:
        """A text from these lines; if there are objections, the better of two.

        Sources are lines that exist, and kinds are among those of the task; nothing else is certain. Limited in time.
        Raises `Unavailable("model", …)`: `Unusable` if there was no such text, `Late` if there was none in time.
        """
        ...
