"""The port of readers, which turn messages into claims and compare new claims with older memories; and of writers,
which make a short text from numbered lines and say which lines each sentence is based on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from memory.model import Claim, Turn


class PairRelation(StrEnum):
    """The effect of a newer statement on an older one."""

    SAME = "same"  # repeats it
    REPLACES = "replaces"  # the older one does not hold any more
    UNRELATED = "unrelated"  # both hold


@dataclass(frozen=True, slots=True)
class FactContext:
    """The sentence that a fact is a part of, and the other facts of it that still stand; both empty for a whole one."""

    sentence: str = ""
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementPair:
    """Two statements of one user, verbatim; `older` was said first. `likeness`: cosine of their embeddings, where they
    are compared because the newer one may replace something; then the older ones beside one newer compete.
    """

    older: str
    newer: str
    older_context: FactContext = FactContext()
    newer_context: FactContext = FactContext()
    likeness: float | None = None


NOT_OVER = -6.0  # log odds of what nobody asked a reader about, or what it gives no odds for


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """`confidence`: 0..1. `over`: log odds that the older statement is over with the newer one, of a `ReadyReader`."""

    relation: PairRelation
    confidence: float
    over: float = NOT_OVER


class FrameKind(StrEnum):
    """What a sentence does to the words around it."""

    PLAYS = "plays"  # from here on the author speaks as somebody else
    ENDS = "ends"  # the author speaks as themselves again
    PRESENTS = "presents"  # what follows in the message is somebody else's text


@dataclass(frozen=True, slots=True)
class FrameMark:
    """A sentence that sets or ends a frame: characters `start` to `end` of the author's message `message` of a turn."""

    kind: FrameKind
    turn_id: str
    message: int
    start: int
    end: int


class OrderReach(StrEnum):
    """How far an order to forget or not to store something reaches."""

    TOPIC = "topic"  # what its words name
    WHOLE = "whole"  # all about a person or thing that they name
    PREVIOUS = "previous"  # what was said right before
    EVERYTHING = "everything"  # all that is known about the user
    LIMITED = "limited"  # nothing: only for a while, or with an exception
    CONVERSATION = "conversation"  # all that was and will be said in the conversation in which it is said
    STOP = "stop"  # whatever is said from now on: in the conversation in which it is said
    REVOKED = "revoked"  # nothing, and the order before it does not count: "no wait, keep it"
    MESSAGE = "message"  # the message that contains it; no reader says that


class StatementReader(Protocol):
    """The only component that interprets sentences. Two implementations: a chat model, and our own encoder.

    Its claims are proposals, checked afterwards. It never sees another user's text.
    """

    @property
    def name(self) -> str:
        """The value of `made_by`: the kind of reader, with the version of its weights or prompt."""

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        """The claims of `turns`, all of one user and session, in the order said.

        `context`: a few turns before them, oldest first; no claims are made from those. Each claim quotes a message of
        `turns` verbatim. Limited in time. Raises `Unavailable("model", …)`, including `Unusable`.
        """

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        """One verdict per pair, in order. Raises `Unavailable("model", …)`, including `Unusable`."""


class ReadyReader(StatementReader, Protocol):
    """A reader in this process, which raises nothing."""

    async def frames(self, turns: Sequence[Turn]) -> list[FrameMark]:
        """The sentences of `turns`, consecutive ones of a session, that set or end a frame, in the order said."""

    async def reaches(self, orders: Sequence[str]) -> list[OrderReach]:
        """One for each of these clauses that order to forget or not to store something."""

    async def leaning(self, texts: Sequence[str]) -> list[float]:
        """How likely each text cannot be understood without what was said before it, 0..1."""


@dataclass(frozen=True, slots=True)
class ExamKey:
    """The key of an exam result: the model's name, its server, and the version of prompts and exam."""

    model: str
    server: str
    version: str


@dataclass(frozen=True, slots=True)
class ExamResult:
    """`score`: 0..1, for people to compare; `failures`: names of the failed chats and pairs."""

    passed: bool
    score: float
    failures: tuple[str, ...] = ()


class ExamResults(Protocol):
    """Exam results, shared by all workers, bounded. Raises `Unavailable`.

    A failed exam expires after a day, a passed one after a month: the model behind a name may have been replaced.
    """

    async def get(self, key: ExamKey) -> ExamResult | None:
        """The result, or None if there is none or it has expired."""

    async def put(self, key: ExamKey, result: ExamResult) -> None:
        """Replaces an earlier result of that key; durable on return."""


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
