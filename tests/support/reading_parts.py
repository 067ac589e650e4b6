"""Chat models and readers by script, small makers of chats and claims, and exam results in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from memory.errors import Unusable
from memory.learn.reading.exam import exam_version
from memory.model import Claim, Message, Scope, Turn
from memory.ports import Completion, FrameMark, OrderReach, PairRelation, PairVerdict, StatementPair
from memory.ports.reading import ExamKey, ExamResult, ExamResults
from memory.processes.reader_parts import examinee, open_model_reader
from memory.runtime.metrics import Metrics
from memory.settings import Settings

AT = 1_717_409_600.0  # Monday, 2024-06-03 10:13 UTC
ANN = Scope("ann", session_id="s1")


def said(*messages: str, answers: Sequence[str] = (), at: float = AT) -> list[Turn]:
    """One turn for each message of the user. `answers`: the assistant's, in order."""
    given = [*answers, *[""] * len(messages)]
    return [
        Turn(f"t{n}", ANN, at + n, (Message("user", message),), answer=given[n]) for n, message in enumerate(messages)
    ]


def a_claim(*units: int, **fields: Any) -> dict[str, Any]:
    """As a model writes it."""
    plain = {"act": "state", "about": "user", "attr": "none", "values": [], "category": "fact", "sure": "high"}
    return {"u": list(units), **plain, **fields}


def claims(*written: Mapping[str, Any]) -> str:
    return json.dumps({"claims": list(written)}, ensure_ascii=False)


def a_verdict(n: int, relation: str, what: str = "", sure: str = "high") -> dict[str, Any]:
    return {"n": n, "what": what, "is": relation, "sure": sure}


def verdicts(*written: Mapping[str, Any]) -> str:
    return json.dumps({"pairs": list(written)}, ensure_ascii=False)


def cut(text: str) -> Completion:
    return Completion(text, is_cut=True)


class ScriptedChat:
    """`memory.ports.ChatModel` that gives one answer after the other, or raises it; the last one again and again."""

    def __init__(self, *answers: str | Completion | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[list[Message]] = []

    @property
    def questions(self) -> list[str]:
        return [messages[-1].content for messages in self.asked]

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        assert schema is not None
        assert max_tokens > 0
        assert seconds > 0
        self.asked.append(list(messages))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Completion) else Completion(answer)


class FixedReader:
    """A reader that reads what it was told to, or raises it; all that it judges leans that much."""

    def __init__(
        self,
        name: str = "fixed",
        *,
        found: Sequence[Claim] | Exception = (),
        relation: PairRelation | Exception = PairRelation.UNRELATED,
        leaning: float = 0.0,
    ) -> None:
        self.name = name
        self.windows = 0
        self._found = found
        self._relation = relation
        self._leaning = leaning

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        self.windows += 1
        if isinstance(self._found, Exception):
            raise self._found
        return list(self._found)

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        if isinstance(self._relation, Exception):
            raise self._relation
        return [PairVerdict(self._relation, 0.9)] * len(pairs)

    async def leaning(self, texts: Sequence[str]) -> list[float]:
        return [self._leaning for _ in texts]

    async def frames(self, turns: Sequence[Turn]) -> list[FrameMark]:
        return []

    async def reaches(self, orders: Sequence[str]) -> list[OrderReach]:
        return [OrderReach.TOPIC for _ in orders]


JUNK = Unusable("model", "junk")


async def examined_with(
    settings: Settings, exams: ExamResults, *, has_passed: bool, score: float = 0.9, failures: tuple[str, ...] = ()
) -> None:
    """The result of the model that should read, as a worker stores it."""
    model, url = await examinee(settings)
    async with open_model_reader(settings, model, Metrics(CollectorRegistry()), endpoint=url) as reader:
        key = ExamKey(model.llm_model_name, url, f"{reader.prompt_version}-{exam_version()}")
    await exams.put(key, ExamResult(passed=has_passed, score=score, failures=failures))
