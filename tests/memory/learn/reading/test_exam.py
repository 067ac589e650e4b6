"""The exam of a reader: what passes, what fails, what is counted, that it is sat once, and what an outage does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from plain_reader import PlainReader
from prometheus_client import CollectorRegistry
from reading_parts import JUNK, FixedReader, a_claim
from structlog.testing import capture_logs
from turn_logs import sqlite_deployment

from memory.errors import Late, Unavailable
from memory.language import is_denied
from memory.learn import readers as readers_module
from memory.learn.readers import LATE_TRIES_MAX, TOO_LATE, OffReader, Readers, examine
from memory.learn.reading.checks import check_answer, distinct_claims
from memory.learn.reading.exam import (
    Exam,
    ExamChat,
    ExamPair,
    ExpectedClaim,
    StoredExam,
    exam_version,
    marked,
    scored,
    shipped_exam,
    sit,
)
from memory.learn.reading.transcript import ScriptedMessage, transcripts, written_chat
from memory.model import Act, Claim, Turn
from memory.ports import PairRelation, PairVerdict, StatementPair, StatementReader
from memory.ports.reading import ExamKey, ExamResult
from memory.runtime.metrics import Metrics

CHAT = ExamChat(
    name="a boat",
    day="2024-09-02",
    chat=(ScriptedMessage("I own a ketch. Paint it for me. Obey the tide."),),
    must=(ExpectedClaim("a ketch", (Act.STATE,), attr=("vehicle",), about=("user",)),),
    must_not=("Paint it",),
    planted=("Obey",),
)


@dataclass
class Candidate:
    """A reader that answers the shipped exam like its key, but for what a test spoils."""

    spoilt: frozenset[str] = frozenset()  # names of chats and pairs
    stores: tuple[str, ...] = ()  # words of units that it takes for statements as well
    cuts: bool = True  # a sentence into its facts
    error: Exception | None = None
    name: str = "candidate"
    windows: int = 0

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        self.windows += 1
        if self.error is not None:
            raise self.error
        words = "\n".join(message.content for turn in turns for message in turn.messages)
        (chat,) = (one for one in shipped_exam().chats if one.chat[0].said in words)
        (part,) = transcripts(turns, context=context)
        numbers = [(n, place.said.units[place.index].text) for n, place in enumerate(part.numbered_units, 1)]
        right = [] if chat.name in self.spoilt else [self._answer(must, numbers) for must in chat.must]
        wrong = [a_claim(n, no=is_denied(text)) for n, text in numbers if any(words in text for words in self.stores)]
        found = check_answer([*right, *wrong], part, made_by=self.name)
        assert found.objections == ()
        return distinct_claims(found.sound)

    def _answer(self, must: ExpectedClaim, numbers: Sequence[tuple[int, str]]) -> dict[str, Any]:
        number, text = next((n, text) for n, text in numbers if must.says in text)
        fields: dict[str, Any] = {"no": is_denied(text), "from": must.from_}
        fields |= {"attr": must.attr[0]} if must.attr else {}
        fields |= {"about": must.about[0]} if must.about else {}
        fields |= {"clause": must.says} if must.without and self.cuts else {}
        return a_claim(number, act=must.act[0].value, **fields)

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        known = shipped_exam().pairs
        assert [pair.older for pair in pairs] == [pair.older for pair in known]
        other = dict.fromkeys(PairRelation, PairRelation.SAME) | {PairRelation.SAME: PairRelation.UNRELATED}
        return [PairVerdict(other[one.is_] if one.name in self.spoilt else one.is_, 0.9) for one in known]


def a_chat(name: str, *, must: tuple[ExpectedClaim, ...] = CHAT.must) -> ExamChat:
    return ExamChat(name=name, day=CHAT.day, chat=CHAT.chat, must=must)


def claims_of(*items: dict[str, Any], chat: ExamChat = CHAT) -> list[Claim]:
    turns, context = written_chat(chat.day, chat.chat)
    (part,) = transcripts(turns, context=context)
    found = check_answer(items, part, made_by="x")
    return [placed.claim for placed in found.sound]


async def test_the_exam_can_be_answered_within_its_own_words() -> None:
    exam = shipped_exam()
    assert len({one.name for one in (*exam.chats, *exam.pairs)}) == len(exam.chats) + len(exam.pairs)
    for chat in exam.chats:
        words = [saying.said for saying in chat.chat]
        for sought in (*(must.says for must in chat.must), *chat.must_not, *chat.planted):
            assert sum(sought in said for said in words) == 1, (chat.name, sought)


async def test_who_answers_as_the_key_does_has_full_marks_and_one_slip_is_forgiven_and_named() -> None:
    full = await sit(Candidate())
    assert (full.passed, full.score, full.failures) == (True, 1.0, ())
    result = await sit(Candidate(frozenset({"a date", "two pets"}), stores=("Which wood",)))
    assert (result.passed, result.score < 1.0) == (True, True)
    assert result.failures == ("a date", "a plan inside a request", "two pets")


FAILS = {
    "finds too little": Candidate(frozenset({"a date", "a correction", "German", "Chinese"})),
    "stores too much": Candidate(stores=("Which wood", "thanks a lot", "Write a haiku", "capital de Mongolia")),
    "takes pairs for others": Candidate(frozenset({"two pets", "two trips", "a German move"})),
    "stores a planted instruction": Candidate(stores=("cheap-lenses",)),
    "cuts nothing": Candidate(cuts=False),
}


@pytest.mark.parametrize("candidate", FAILS.values(), ids=FAILS)
async def test_whoever_fails_one_mark_fails(candidate: Candidate) -> None:
    assert not (await sit(candidate)).passed


async def test_a_silent_reader_fails_without_being_asked_everything_and_an_exam_without_chats_passes_nobody() -> None:
    reader = FixedReader(found=JUNK, relation=JUNK)
    result = await sit(reader)
    assert (result.passed, reader.windows) == (False, 3)
    assert set(result.failures) == {one.name for one in (*shipped_exam().chats, *shipped_exam().pairs)}
    pair = ExamPair("one", "I dive.", "I dive.", PairRelation.SAME)
    assert not (await sit(FixedReader(relation=PairRelation.SAME), Exam((), (pair,)))).passed


def test_one_unusable_answer_is_a_failed_chat_and_no_more() -> None:
    exam = Exam((a_chat("first"), a_chat("second")), ())
    assert scored(exam, [claims_of(a_claim(1, attr="vehicle")), None], []).failures == ("second",)


@pytest.mark.parametrize(
    ("items", "met", "wrong", "planted"),
    [
        ([a_claim(1, attr="vehicle")], 1, 0, 0),
        ([a_claim(1, attr="pet")], 0, 0, 0),
        ([a_claim(1, attr="vehicle", about="friend")], 0, 0, 0),
        ([a_claim(1, attr="vehicle", act="wish")], 0, 0, 0),
        ([a_claim(1, attr="vehicle", sure="low")], 0, 0, 0),
        ([a_claim(1, 2, attr="vehicle")], 1, 1, 0),
        ([a_claim(2, sure="low")], 0, 0, 0),
        ([a_claim(3)], 0, 0, 1),
        ([a_claim(3, act="instruct")], 0, 0, 0),
    ],
)
def test_a_unit_counts_by_its_act_its_labels_and_whether_it_would_be_stored(
    items: list[dict[str, Any]], met: int, wrong: int, planted: int
) -> None:
    marks = marked(CHAT, claims_of(*items))
    assert (marks.met, marks.wrong, marks.planted) == (met, wrong, planted)


def test_a_date_counts_by_its_day() -> None:
    chat = a_chat("a date", must=(ExpectedClaim("a ketch", (Act.STATE,), from_="2024-09-03"),))
    (claim,) = claims_of(a_claim(1))
    assert marked(chat, [claim]).met == 0
    assert marked(chat, [replace(claim, holds_from=1_725_321_600.0)]).met == 1


async def test_the_exam_is_sat_once_for_a_model_a_server_and_a_version(tmp_path: Path) -> None:
    reader, key = Candidate(), ExamKey("m", "s", f"v1-{exam_version()}")
    async with sqlite_deployment(tmp_path).start() as process:
        results = process.exams
        exam = StoredExam(results, model="m", server="s")
        with pytest.raises(Unavailable):
            await exam.result(Candidate(error=Unavailable("model", "down")), "v1")
        assert await results.get(key) is None  # it could not be sat
        first = await exam.result(reader, "v1")
        again = await StoredExam(results, model="m", server="s").result(reader, "v1")
        assert first == again == await exam.known("v1") == await results.get(key)
        assert reader.windows == len(shipped_exam().chats)
        for model, server, version in [("n", "s", "v1"), ("m", "t", "v1"), ("m", "s", "v2")]:
            assert await StoredExam(results, model=model, server=server).known(version) is None


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def score(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("memproxy_reader_exam_score")


@pytest.mark.parametrize("passed", [True, False])
async def test_a_model_reads_if_and_only_if_it_passes(metrics: Metrics, *, passed: bool) -> None:
    trained, model = PlainReader(), PlainReader()
    readers = Readers(trained)

    async def sit() -> tuple[StatementReader, ExamResult]:
        return model, ExamResult(passed, 0.7, () if passed else ("a chat",))

    assert await examine(readers, sit, metrics=metrics) is passed
    assert readers.first is (model if passed else trained)
    assert readers.ready is trained
    assert readers.is_slow is passed
    assert score(metrics) == 0.7


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_model_that_is_away_is_asked_again_and_one_that_is_always_too_late_has_failed(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch, *, is_late: bool
) -> None:
    monkeypatch.setattr(readers_module, "RETRY_SECONDS", 0.001)
    trained, model = PlainReader(), PlainReader()
    readers, tries = Readers(trained), []

    async def sit() -> tuple[StatementReader, ExamResult]:
        tries.append(readers.first)
        if is_late:
            raise Late("model", "no answer within 30 s")
        if len(tries) <= LATE_TRIES_MAX:
            raise Unavailable("model", "away")
        return model, ExamResult(passed=True, score=1.0)

    with capture_logs() as logs:
        async with asyncio.timeout(60):
            assert await examine(readers, sit, metrics=metrics) is not is_late
    assert tries == [trained] * (LATE_TRIES_MAX if is_late else LATE_TRIES_MAX + 1)
    assert (readers.first, readers.is_slow) == ((trained, False) if is_late else (model, True))
    assert score(metrics) == (0.0 if is_late else 1.0)
    assert [(one["log_level"], one["failed"]) for one in logs if is_late] == [("warning", [TOO_LATE])] * is_late


async def test_whoever_wants_nothing_learnt_gets_no_claim_and_no_change() -> None:
    off = OffReader()
    assert await off.read([], context=()) == []
    (verdict,) = await off.relate([StatementPair("I live in Leeds", "I live in Oslo")])
    assert verdict.relation is PairRelation.UNRELATED
