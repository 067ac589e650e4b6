"""What the user says about what they were told: right, wrong, and what is right instead. English and Chinese."""

from __future__ import annotations

import pytest
from learning_parts import Bench
from turn_logs import Process

from memory.learn.corrections.feedback import CONFIDENCE_MIN, USER_MESSAGES_MAX
from memory.learn.worker import WorkerSettings
from memory.model import Memory, MemoryStatus, Trust, TurnStatus
from memory.ports import LearnDue


async def recalled(bench: Bench, process: Process, told: str, answer: str, *said: str) -> None:
    """One session tells; in another the assistant restates it, and the user says something to that."""
    await bench.tell(process, told, session="first")
    await bench.worker(process).work_off()
    bench.deployment.clock.now += 100
    await bench.tell(process, "What do you know of me?", answer=answer, session="second")
    for message in said:
        await bench.tell(process, message, answer="I see.", session="second")
    await bench.worker(process).work_off()


async def active(bench: Bench) -> dict[str, Memory]:
    return {memory.content: memory for memory in await bench.memories(status=MemoryStatus.ACTIVE)}


CAT = "My cat is called Tom."
CAT_ZH = "我的猫叫米粒。"
BUDGET = "My budget is $10,000."


@pytest.mark.parametrize(
    ("told", "answer", "said"),
    [
        (CAT, "Your cat is called Tom.", "Exactly!"),
        (CAT, "I know that your cat is called Tom. Shall I go on?", "Yes, that's right."),
        (CAT_ZH, "你的猫叫米粒。", "完全正确！"),
        (CAT_ZH, "你的猫叫米粒。", "没错"),
        ("Ich wohne in Köln.", "Du wohnst in Köln.", "Genau."),
    ],
)
async def test_a_restated_memory_that_is_confirmed_is_surer_and_nothing_is_added(
    bench: Bench, told: str, answer: str, said: str
) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, told, session="first")
        await bench.worker(process).work_off()
        (before,) = await bench.memories()
        await recalled(bench, process, "Thanks.", answer, said)
        (after,) = await bench.memories()
    assert after.confidence > before.confidence
    assert (after.id, after.content, after.evidence) == (before.id, before.content, before.evidence)


async def test_a_confirmation_of_something_else_touches_nothing(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await recalled(bench, process, CAT, "Paris is the capital of France.", "Exactly!")
        (memory,) = await bench.memories()
    assert memory.updated_at < bench.deployment.clock.now


@pytest.mark.parametrize(
    ("told", "answer", "said", "instead"),
    [
        (CAT, "Your cat is called Tom.", "No, it's Miso.", "My cat is called Miso."),
        (CAT, "Your cat is called Tom.", "That's wrong. My cat is called Miso.", "My cat is called Miso."),
        ("My locker is number 41.", "Your locker is number 41.", "No, it's 52.", "My locker is number 52."),
        (CAT_ZH, "你的猫叫米粒。", "不对，应该是豆豆。", "我的猫叫豆豆。"),
    ],
)
async def test_a_correction_supersedes_what_was_wrong_and_says_what_to_avoid(
    bench: Bench, told: str, answer: str, said: str, instead: str
) -> None:
    async with bench.deployment.start() as process:
        await recalled(bench, process, told, answer, said)
        now = await active(bench)
        (old,) = await bench.memories(status=MemoryStatus.SUPERSEDED)
    (content, memory) = next(iter(now.items()))
    assert len(now) == 1
    assert content.endswith(instead)
    assert (memory.category, memory.trust, memory.metadata["avoid"]) == ("correction", Trust.EXPLICIT, told)
    assert (old.content, old.superseded_by) == (told, memory.id)
    assert memory.evidence[0].quote in said


@pytest.mark.parametrize(
    ("told", "answer", "said"),
    [(CAT, "Your cat is called Tom.", "That's wrong."), (CAT_ZH, "你的猫叫米粒。", "不对。")],
)
async def test_a_correction_without_the_right_value_lowers_confidence_and_keeps_the_memory(
    bench: Bench, told: str, answer: str, said: str
) -> None:
    async with bench.deployment.start() as process:
        await recalled(bench, process, told, answer, said)
        (memory,) = await bench.memories(status=MemoryStatus.ACTIVE)
    assert memory.content == told
    assert memory.confidence < 0.5


@pytest.mark.parametrize("status", [TurnStatus.FAILED, TurnStatus.ABORTED])
@pytest.mark.parametrize("is_one_window", [False, True])
@pytest.mark.parametrize(
    ("question", "said"), [("Do you still cycle to work?", "Yes."), ("Your cat is called Tom.", "Exactly!")]
)
async def test_a_yes_behind_a_reply_that_broke_off_is_none_to_the_question_before_it(
    bench: Bench, question: str, said: str, status: TurnStatus, *, is_one_window: bool
) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, CAT, session="first")
        await bench.worker(process).work_off()
        (before,) = await bench.memories()
        await bench.tell(process, "What do you know of me?", answer=question, session="second")
        if not is_one_window:
            await bench.worker(process).work_off()
        await bench.tell(process, "Plan a trip.", answer="Are you ready?", session="second", status=status)
        await bench.tell(process, said, session="second")
        settings = WorkerSettings(due=LearnDue(batch_turns_max=10))
        await bench.worker(process, settings=settings).work_off()
        assert await bench.memories() == [before]


@pytest.mark.parametrize(("status", "is_heard"), [(TurnStatus.ABORTED, True), (TurnStatus.FAILED, False)])
async def test_what_the_user_cut_short_to_correct_it_is_corrected(
    bench: Bench, status: TurnStatus, *, is_heard: bool
) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, CAT, session="first")
        await bench.tell(process, "Hello!", answer="Hello, how can I help?", session="second")
        await bench.worker(process).work_off()
        await bench.tell(process, "Who am I?", answer="Your cat is called Tom, and", session="second", status=status)
        await bench.tell(process, "No, it's Miso.", session="second")
        await bench.worker(process).work_off()
        now = set(await active(bench))
        assert now & {CAT, "My cat is called Miso."} == ({"My cat is called Miso."} if is_heard else {CAT})


@pytest.mark.parametrize(("between", "is_heard"), [(USER_MESSAGES_MAX - 2, True), (USER_MESSAGES_MAX + 1, False)])
async def test_a_correction_reaches_back_over_the_last_six_user_messages(
    bench: Bench, between: int, is_heard: bool
) -> None:
    async with bench.deployment.start() as process:
        chatter = [f"What is {number} plus one?" for number in range(between)]
        await recalled(bench, process, CAT, "Your cat is called Tom.", *chatter, "No, it's Miso.")
        assert ("My cat is called Miso." in await active(bench)) is is_heard


@pytest.mark.parametrize(
    ("question", "is_new"),
    [
        ("Your cat is called Tom, is that still the case?", False),
        ("Your cat is called Tom and you work as a nurse in Leeds, right?", False),
        ("你的猫叫米粒，没记错吧？", False),
        ("Wohnst du noch in Köln?", False),
        ("¿Comes mucho en Sevilla?", False),
        ("Is your budget still $10,000?", False),
        ("Is your budget still $10,900?", True),
        ("Is your cat called Tomke?", True),
        ("Your cat is called Tom and he is three years old, right?", True),
        ("Does your cat work in Leeds, right?", True),
    ],
)
async def test_a_confirmed_question_is_news_only_by_what_no_memory_says(
    bench: Bench, question: str, *, is_new: bool
) -> None:
    async with bench.deployment.start() as process:
        for told in (
            CAT,
            "I work as a nurse in Leeds.",
            CAT_ZH,
            "Ich wohne in Köln.",
            "Como mucho en Sevilla.",
            BUDGET,
        ):
            await bench.tell(process, told, session="first")
        await bench.worker(process).work_off()
        before = await bench.contents()
        assert len(before) == 6
        await bench.tell(process, "What do you know of me?", answer=question, session="second")
        await bench.tell(process, "Yes.", session="second")
        await bench.worker(process).work_off()
        news = set(await bench.contents()) - set(before)
    assert news == ({f"{question} Yes."} if is_new else set())


async def test_a_thousand_restatements_that_are_confirmed_store_nothing_new(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        for told in (CAT, "I work as a nurse in Leeds.", CAT_ZH):
            await bench.tell(process, told, session="first")
        await bench.worker(process).work_off()
        before = {memory.id: (memory.content, memory.evidence) for memory in await bench.memories()}
        for number in range(100):
            answer = ("Your cat is called Tom, right?", "You work as a nurse in Leeds?", "你的猫叫米粒，对吗？")[
                number % 3
            ]
            said = ("Yes, right.", "Yes", "对的", "Exactly!")[number % 4]
            await bench.tell(process, said, answer=f"I remember. {answer}", session="loop")
        await bench.worker(process).work_off()
        after = {memory.id: (memory.content, memory.evidence) for memory in await bench.memories()}
    assert after == before


VEGAN = "I'm vegan."
HOME = "I live in Leeds."


@pytest.mark.parametrize(
    ("told", "answer", "said"),
    [
        (VEGAN, "Would you like a vegan menu for Sunday?", "No"),
        (VEGAN, "Did you enjoy the vegan dinner?", "Not really."),
        (VEGAN, "Should I only show vegan places?", "Nope."),
        (HOME, "Shall I remember that you live in Leeds?", "Not really"),
        (HOME, "Since you live in Leeds: do you want a map?", "No."),
        (HOME, "You live in Leeds. Anything else?", "No."),
        (CAT_ZH, "你的猫叫米粒，要不要我推荐猫粮？", "不"),
    ],
)
async def test_a_no_to_an_offer_says_nothing_of_what_is_known(bench: Bench, told: str, answer: str, said: str) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, told, session="first")
        await bench.worker(process).work_off()
        (before,) = await bench.memories()
        await recalled(bench, process, "Thanks.", answer, said)
        after = {memory.id: memory for memory in await bench.memories()}
    assert after[before.id].confidence == before.confidence


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        (HOME, "You live in Leeds, right?"),
        (HOME, "Do you still live in Leeds?"),
        (HOME, "I know that you live in Leeds. Is that still right?"),
        (CAT_ZH, "你的猫叫米粒，对吗？"),
    ],
)
async def test_a_no_to_whether_it_is_so_lowers_confidence_and_never_to_nothing(
    bench: Bench, told: str, answer: str
) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, told, session="first")
        await bench.worker(process).work_off()
        (before,) = await bench.memories()
        confidences = [before.confidence]
        for number in range(5):
            bench.deployment.clock.now += 100
            await bench.tell(process, "What do you know of me?", answer=answer, session=f"asked {number}")
            await bench.tell(process, "不是" if told == CAT_ZH else "No.", session=f"asked {number}")
            await bench.worker(process).work_off()
            memories = {memory.id: memory for memory in await bench.memories()}
            confidences.append(memories[before.id].confidence)
    assert confidences[1] < confidences[0]
    assert confidences[-1] == CONFIDENCE_MIN
