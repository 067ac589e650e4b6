"""Every stored row quotes the record word for word, and what memory told the model never comes back as news."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from claims import NOW, claim, turn
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_parts import Bench
from memory_rows import memory
from plain_reader import PlainReader
from trained_reader import trained_reader
from turn_logs import Process, sqlite_deployment

from memory.language import bare_reply
from memory.learn.feedback import CONFIDENCE_SURE, confirmations_of, is_restated, raised
from memory.model import Act, Evidence, Memory, Role, Turn, TurnStatus
from memory.ports import StatementReader
from memory.service.erasure import without_sources

TOLD = (
    "My budget for the Hawaii trip is $10,000.",
    "My cat is called Tom.",
    "I am allergic to peanuts.",
    "My sister lives in Oslo.",
    "I work at Nordwind as a tester.",
)
CONFIRMS = ("yes", "Yes, that's right.", "correct", "ok thanks", "right", "exactly", "Yes.")
REPLIES = ("Pasta.", "I like making pasta on Sundays.", "Twice a week, mostly.", "A red bicycle.", "I row at weekends.")
TELLING = ("Hawaii", "$10,000", "Tom", "peanut", "Oslo", "Nordwind")  # a word of each
TURNS, TURNS_OF_A_SESSION = 210, 50  # each form of each memory, with each reply

SAID = ("yes", "no", "I moved to Braga.", "Can you help me?", "我住在成都。", "Ich wohne in Köln.", "\u200b", "\n---\n")
FRAGMENTS = st.one_of(st.sampled_from([*TOLD, *SAID]), st.text(max_size=40))
MESSAGES = st.lists(FRAGMENTS, min_size=1, max_size=4).map(" ".join)
ANSWERS = st.sampled_from(["Noted.", "Do you still cycle to work?", "Is your cat called Tom?", "你还住在成都吗？"])


def restated(contents: Sequence[str], number: int) -> str:
    """The answer of an assistant that was given these memories: told as they are, asked back, or put to the user."""
    content = contents[number % len(contents)]
    about_you = re.sub(r"\bI am\b", "you are", re.sub(r"\b[Mm]y\b", "your", content.rstrip(".")))
    about_you = re.sub(r"\bI\b", "you", about_you)
    asked = re.sub(r"^(your .+?) (is|lives)\b", r"Is \1", about_you)
    forms = (
        f"I remember: {content}",
        f"You told me that {about_you}. Is that right?",
        f"{about_you[0].upper()}{about_you[1:]}, right?",
        "What I know of you:\n" + "\n".join(f"- {one}" for one in contents),
        f"{asked}?",
        f"Since {about_you}, what do you like to do at weekends?",
        f"What would you get yourself next, now that {about_you}?",
    )
    return forms[number % len(forms)]


LONG = pytest.mark.soak("the trained reader judges a thousand turns, and what it makes of them is its own")
READERS = [pytest.param(PlainReader, TURNS, id="plain"), pytest.param(trained_reader, 1_000, id="trained", marks=LONG)]


@pytest.mark.parametrize(("make_reader", "turns"), READERS)
@pytest.mark.parametrize(("replies", "new_max"), [(CONFIRMS, 0), (REPLIES, 3 * len(REPLIES))], ids=["yes", "else"])
async def test_whatever_is_replied_to_what_was_injected_it_never_comes_back(
    bench: Bench, make_reader: Callable[[], StatementReader], turns: int, replies: Sequence[str], new_max: int
) -> None:
    async with bench.deployment.start() as process:
        await bench.learn(process, *TOLD, session="first")
        worker = bench.worker(process, reader=make_reader())
        before = await bench.contents()
        assert before == sorted(TOLD)
        for number in range(turns):
            contents = await bench.contents()  # what a note would hold, including anything that crept in
            reply, session = replies[number % len(replies)], f"loop-{number // TURNS_OF_A_SESSION}"
            await bench.tell(process, reply, answer=restated(contents, number // 6), session=session)
            if number % 10 == 9:
                await worker.work_off()
        await worker.work_off()
        new = [content for content in await bench.contents() if content not in before]
        assert [content for content in new if any(word in content for word in TELLING)] == []
        assert len(new) <= new_max
        assert (await process.log.backlog("ann", opened_before=1e12)).pending == 0


@pytest.mark.parametrize(
    "asked",
    [
        "Is your cat called Tom?",
        "You told me that your cat is called Tom. Is that right?",
        "Your cat is called Tom, right?",
        "I know this of you:\n- your cat is called Tom\nIs your cat still called Tom?",
    ],
)
@pytest.mark.parametrize("is_one_window", [True, False])
async def test_a_yes_to_what_memory_told_stores_nothing_and_makes_that_surer(
    bench: Bench, process: Process, asked: str, *, is_one_window: bool
) -> None:
    told = await bench.tell(process, "My cat is called Tom.")
    if not is_one_window:
        await bench.worker(process).work_off()
    before = await bench.memories()
    await bench.tell(process, "Who is my cat?", answer=asked)
    await bench.learn(process, "yes")
    (memory,) = await bench.memories()
    assert memory.content == "My cat is called Tom."
    assert [evidence.turn_id for evidence in memory.evidence] == [told.id]
    assert all(memory.confidence > one.confidence for one in before)


@pytest.mark.parametrize(
    ("asked", "reply"),
    [("Is your cat called Felix?", "yes"), ("Do you have a dog?", "yes"), ("Is your cat called Tom?", "no")],
    ids=["another value", "another matter", "denied"],
)
async def test_an_answer_that_says_something_else_is_news(
    bench: Bench, process: Process, asked: str, reply: str
) -> None:
    await bench.tell(process, "My cat is called Tom.")
    await bench.tell(process, "What else do you want to know?", answer=asked)
    await bench.learn(process, reply)
    assert await bench.contents() == sorted(["My cat is called Tom.", f"{asked} {reply}"])


async def unquoted(bench: Bench, process: Process, memories: Sequence[Memory]) -> list[tuple[str, str]]:
    """Rows whose evidence does not stand, word for word, where it says, in the record."""
    record = {turn.id: turn async for turn in process.log.turns("ann")}
    order = list(record)
    return [
        (memory.content, quoted.quote if quoted else "")
        for memory in memories
        for quoted in memory.evidence or (None,)
        if quoted is None or not _stands(quoted.quote, quoted.role, quoted.turn_id, record, order)
    ]


def _stands(quote: str, role: str, turn_id: str, record: dict[str, Turn], order: list[str]) -> bool:
    turn = record.get(turn_id)
    if turn is None or not quote.strip():
        return False
    if role == Role.USER:
        return any(quote in message.content for message in turn.messages if message.role == Role.USER)
    later = [record[one] for one in order[order.index(turn_id) + 1 :]]
    reply = next((one for one in later if one.scope.session_id == turn.scope.session_id), None)
    return quote in turn.answer and reply is not None and bool(bare_reply(reply.messages[0].content))


@settings(max_examples=30, deadline=None)
@given(talk=st.lists(st.tuples(MESSAGES, ANSWERS), min_size=1, max_size=5))
async def test_all_evidence_of_any_talk_stands_in_the_record(talk: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(sqlite_deployment(Path(folder)))
        async with bench.deployment.start() as process:
            for message, answer in talk:
                await bench.tell(process, message, answer=answer)
            await bench.worker(process).work_off()
            assert await unquoted(bench, process, await bench.memories()) == []


YES = claim("Exactly right", act=Act.CONFIRM, turn="t2")
BEFORE = turn("What do you know?", turn_id="t1", at=NOW - 9, answer="You live in Leeds and keep two goats.")
AFTER = turn("Exactly right", turn_id="t2")


def test_a_confirmation_and_a_fragment_that_corrects_concern_the_answer_right_before_where_there_is_one() -> None:
    fragment = claim("no, three goats", act=Act.CORRECT, turn="t2", leans=True)
    found = confirmations_of([YES, fragment, replace(fragment, leans=False)], [BEFORE, AFTER])
    assert [(one.answer, one.at, one.is_right) for one in found] == [
        (BEFORE.answer, YES.said_at, is_right) for is_right in (True, False)
    ]
    assert confirmations_of([YES], [AFTER]) == []
    for status in (TurnStatus.FAILED, TurnStatus.ABORTED):
        assert confirmations_of([YES], [BEFORE, replace(BEFORE, status=status, id="t1b"), AFTER]) == []


@pytest.mark.parametrize(
    ("content", "values", "expected"),
    [
        ("I live in Leeds", ("Leeds",), True),
        ("I live in Oslo", ("Oslo",), False),
        ("I keep two goats", (), True),
        ("I play the cello on Sundays", (), False),
    ],
)
def test_a_memory_is_restated_where_its_words_and_values_are(
    content: str, values: tuple[str, ...], *, expected: bool
) -> None:
    assert is_restated(content, values, BEFORE.answer) is expected


def test_what_is_as_sure_as_can_be_is_not_written_again() -> None:
    known = Memory("m", "ann", "I live in Leeds", NOW, NOW, NOW - 99, confidence=0.8)
    surer = raised(known, now=NOW)
    assert surer is not None
    assert 0.8 < surer.confidence < 1.0
    assert raised(replace(known, confidence=CONFIDENCE_SURE), now=NOW) is None


CYCLE = "Do you still cycle to work?"


async def yes_after_a_question(bench: Bench, process: Process, *, is_learnt: bool = True) -> list[Turn]:
    """The turns of the question and of the yes, learnt one after the other."""
    turns = []
    for said, answer in (("Hello there.", CYCLE), ("yes", "Noted.")):
        turns.append(await bench.tell(process, said, answer=answer))
        if is_learnt:
            await bench.worker(process).work_off()
    return turns


@pytest.mark.parametrize("which", [0, 1], ids=["the question", "the yes"])
async def test_what_a_yes_confirmed_goes_with_the_turn_of_either(bench: Bench, process: Process, which: int) -> None:
    turns = await yes_after_a_question(bench, process)
    assert await bench.contents() == [f"{CYCLE} yes"]
    (memory,) = await bench.memories()
    assert [(one.quote, one.role) for one in memory.evidence] == [(CYCLE, Role.ASSISTANT), ("yes", Role.USER)]
    assert (await bench.erasure(process).source("ann", turns[which].id)).forgotten == (memory.id,)
    assert await bench.contents() == []


@pytest.mark.parametrize("is_learnt", [True, False], ids=["learnt", "in the same window"])
async def test_who_takes_a_yes_back_takes_back_what_it_confirmed(
    bench: Bench, process: Process, *, is_learnt: bool
) -> None:
    await yes_after_a_question(bench, process, is_learnt=is_learnt)
    assert len(await bench.contents()) == is_learnt
    await bench.learn(process, "Forget what I just said.")
    assert await bench.contents() == []


def test_a_yes_or_no_holds_up_nothing_but_its_question() -> None:
    asked, no = Evidence("Do you know Nora?", "t2", Role.ASSISTANT), Evidence("no", "t3")
    denied = memory("m", f"{asked.quote} no", evidence=(asked, no))
    later = replace(denied, evidence=(asked, no, Evidence("I met Nora.", "t4")))
    assert [without_sources(denied, [turn_id], now=NOW) for turn_id in ("t2", "t3")] == [None, None]
    assert without_sources(later, ["t4"], now=NOW) == replace(denied, confidence=later.confidence, updated_at=NOW)
    united = memory("m", "I know Nora", evidence=(Evidence("I know Nora", "t1"), asked, no))
    assert without_sources(united, ["t1"], now=NOW) is None
