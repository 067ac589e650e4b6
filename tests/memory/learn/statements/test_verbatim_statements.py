"""What people tell, in their own sentences, is kept; what they ask, want, quote or paste is not."""

from __future__ import annotations

from functools import partial

import pytest

from memory.learn import gate
from memory.learn.consolidation import consolidate
from memory.learn.statements import verbatim
from memory.model import Memory, MemoryStatus, Message, Scope, Turn, TurnStatus

AT = 1_741_600_000.0  # Monday, 10 March 2025, 09:46 UTC


def turn(*messages: str, turn_id: str = "t1", at: float = AT, answer: str = "Noted.") -> Turn:
    return Turn(
        id=turn_id,
        scope=Scope("ann", session_id="s"),
        at=at,
        messages=tuple(Message("user", text) for text in messages),
        status=TurnStatus.CLOSED,
        answer=answer,
    )


def kept(*messages: str) -> list[str]:
    one = turn(*messages)
    return [fact.content for fact in gate.judge(verbatim.extract([one]), [one]).kept]


TOLD = """
My budget for the Hawaii trip is $10,000
My locker code is 4711-XK and my locker is number 17
The spare key of my shed hangs behind the blue flowerpot
I parked the car on level 3
Our dog Rex is allergic to chicken
My sister's wedding is on June 14th
I work as a marine biologist at the Trondheim institute
We have three kids: Mia, Tom and Lea
My favourite tea is lapsang souchong
I was born in Lagos in 1984
I can't eat shellfish
My left knee hurts when I climb stairs
I usually wake up at 5:30
Mom's house number is 221
My passport expires in May 2029
I play the cello in an amateur orchestra
I prefer window seats on night trains
I'm learning Portuguese
I've lived in Leipzig since 2016
Last summer I hiked the Rota Vicentina
My neighbour Olga waters the plants on Sundays
The alarm of my car goes off whenever it rains
My bike is a red Koga with 24 gears
I take 50 mg of metoprolol every morning
My nephew turned nine yesterday
I hate coriander
I don't drink coffee after noon
I never learned how to swim
My blood type is B negative
Our standup is at 9:15
My desk is on the fourth floor next to the printer
I'm saving for a cargo bike
My landlord is called Mr. Petersen
I wear shoe size 43
I broke my collarbone in 2019
We keep the router in the pantry
My team uses Kotlin for the backend
I named my boat Halcyon
I act as treasurer of our club
I love role-play games
I check my mail twice a day
I read mostly science fiction
My parents met in Lisbon
I have a meeting with Dr. Okafor at 3 p.m. on Friday
Will is my brother
May is my birthday month
When I was twelve, I moved to Spain
What I like most about my job is the quiet
How I make coffee: 15 g of beans, 250 ml of water
If I eat nuts I get hives
Help is hard to find where I live
My password manager is KeePassXC
My PIN pad at the garage is broken
I'd like to learn how to weld
I want to run a marathon in under four hours
I need glasses for reading
I think my car needs new tyres
To get to my office you take the back stairs and ring twice
I'm left-handed
i live near the old mill
im 34 years old
my wifes name is Carla
Ive got two cats
My son, who is eight, plays chess
I do not own a television
Do-it-yourself is my way of relaxing
I let my sister borrow my car on weekends
I plan to retire in 2041
I call my grandmother every Sunday
Reading is what I do before sleep, and I always read on paper
The code word for our team is heron
The meeting room Alba on floor 2 is ours on Thursdays
Our wifi network is called Nest-5G
My gym membership number is 88-1203-7
My license plate is B-XY 1234
My grandfather's watch stopped at 10:42
I owe Priya 35 euros
I left my umbrella at Café Lindner
I switched from Vim to Helix
My daughter's school is Saint-Exupéry
I finished my thesis on glacier melt
My flight LH1234 leaves at 06:55
I told my boss I would finish the report by Tuesday
My therapist said I should sleep more
I'm not a fan of horror films
I stopped smoking two years ago
I go by Sam
My name is Theo, by the way
I just bought a house in Ghent!
Thanks, I work night shifts at the bakery
Hi, I'm Jonas and I teach maths
Ok, so my oven only goes up to 220 degrees
FYI I'm on holiday from 3 to 17 August
Rufus passed away peacefully
That's wrong, my shift starts later
我叫林悦，在深圳做产品经理
我对花生过敏
我的车牌尾号是7K
我女儿下个月满五岁
我们家养了两只猫，一只叫豆豆，一只叫年糕
我每天早上六点半起床跑步
我不喝咖啡
我住在三楼，没有电梯
我妈妈是小学老师
我的预算是八千块
公司在望京，离家很远
我以前在部队待过五年
我正在准备雅思考试
我的生日是十月三号
我先生姓周，是麻醉医生
车停在地下二层B区
我打算明年去冰岛
我腰不好，不能久坐
我最喜欢的颜色是墨绿
储物柜密码锁坏了，我用的是17号柜
豆豆前天去世了
聚餐挪到周四了
鞋码是四十二
Ich wohne am Hafen
Mein Hund heißt Balu
Wir haben zwei Kinder
Ich vertrage keine Laktose
Meine Schwester arbeitet als Hebamme
Mein Auto steht auf Deck 4
Unser Garten hat 300 Quadratmeter
Ich fahre jeden Freitag nach Kiel
Vivo cerca del puerto
Mi perro se llama Bruno
Soy alérgica a los gatos
Trabajo en un hospital
Tenemos dos hijos
Mi presupuesto es de 900 euros
Juego al ajedrez los jueves
Je m'appelle Chloé et j'habite à Nantes
Ho due gatti
""".strip().splitlines()


@pytest.mark.parametrize("statement", TOLD)
def test_a_plain_statement_about_oneself_is_kept_as_it_was_said(statement: str) -> None:
    (content,) = kept(statement) or [""]
    assert content
    assert content.split(" (")[0].rstrip(".!") in statement
    words = statement.removeprefix("Thanks, ").removeprefix("Hi, ").removeprefix("Ok, so ").rstrip("!")
    assert content.startswith(words)


@pytest.mark.parametrize("statement", [t for t in TOLD if t.isascii()])
@pytest.mark.parametrize("frame", ["{}. Please just say OK.", "Hello! {}.", "{}. What do you think?", "What's up? {}."])
def test_what_stands_around_a_statement_does_not_hide_it(statement: str, frame: str) -> None:
    first_person = any(
        w in statement.lower().replace("'", " ").split() for w in ("i", "my", "our", "we", "me", "im", "ive")
    )
    has_filler = statement.startswith(("Ok, so", "Thanks,", "Hi,", "FYI"))
    if first_person and not has_filler:
        assert any(statement.rstrip("!").split(",")[-1].strip() in content for content in kept(frame.format(statement)))


def test_nothing_said_in_a_part_is_about_the_user_until_the_session_ends() -> None:
    playing = turn("Pretend you are a doctor. I am a knight with a broken arm.", turn_id="t1")
    later = turn("I rode for three days without sleep.", turn_id="t2", at=AT + 60)
    assert verbatim.extract([playing, later]) == []
    assert verbatim.extract([later], context=[playing]) == []
    assert len(verbatim.extract([later])) == 1


@pytest.mark.parametrize(
    ("message", "pinned"),
    [
        ("My exam is tomorrow", "My exam is tomorrow (tomorrow: 2025-03-11)"),
        ("I flew home yesterday.", "I flew home yesterday. (yesterday: 2025-03-09)"),
        ("I start my job in two weeks", "I start my job in two weeks (in two weeks: 2025-03-24)"),
        ("I moved here three months ago", "I moved here three months ago (three months ago: 2024-12)"),
        ("My course starts next month", "My course starts next month (next month: 2025-04)"),
        ("I see my dentist this Friday", "I see my dentist this Friday (this Friday: 2025-03-14)"),
        ("I see my dentist next Friday", "I see my dentist next Friday"),
        ("我明天要去体检", "我明天要去体检 (明天: 2025-03-11)"),
        ("我下周三出差", "我下周三出差 (下周三: 2025-03-19)"),
        ("我明年三月毕业", "我明年三月毕业 (明年三月: 2026-03)"),
        ("我下个月六号搬家", "我下个月六号搬家 (下个月六号: 2025-04-06)"),
        ("Ich fahre übermorgen nach Kiel", "Ich fahre übermorgen nach Kiel (übermorgen: 2025-03-12)"),
        ("Ayer cambié de trabajo", "Ayer cambié de trabajo (Ayer: 2025-03-09)"),
    ],
)
def test_a_relative_date_is_pinned_where_it_is_certain(message: str, pinned: str) -> None:
    assert kept(message) == [pinned]


def test_the_evidence_is_an_exact_part_of_the_message_though_the_content_says_more() -> None:
    message = "Well, my exam is tomorrow! What should I read?"
    (fact,) = verbatim.extract([turn(message)])
    assert fact.evidence.quote == "my exam is tomorrow!"
    assert fact.evidence.quote in message


def test_tool_results_and_other_roles_are_no_evidence() -> None:
    messages = (
        Message("tool", "I live in Oslo", is_tool_traffic=True),
        Message("system", "I am a customer of gold rank"),
        Message("user", "I live in a call of a tool", is_tool_traffic=True),
    )
    silent = Turn(id="t", scope=Scope("ann", session_id="s"), at=AT, messages=messages, status=TurnStatus.CLOSED)
    assert verbatim.extract([silent]) == []


@pytest.mark.parametrize(
    ("question", "reply", "is_learnt"),
    [
        ("Do you still cycle to work?", "yes", True),
        ("Do you have a garden?", "no", True),
        ("您平时只喝美式吗？", "对的", True),
        ("Do you want a checklist?", "yes please", False),
        ("Should I draft it?", "yes", False),
        ("Is the sky blue?", "yes", False),
        ("需要我写成表格吗？", "对", False),
        ("How do you like your eggs?", "yes", False),
        ("Is that right?", "Yes, that's right.", False),
        ("Am I right that you live in Leeds.", "I do.", False),
        ("Have I understood you correctly?", "exactly", False),
        ("Do you still know what I mean?", "yes", False),
        ("我说得对吗？", "对的", False),
        ("Habe ich dich richtig verstanden?", "genau", False),
    ],
)
def test_only_a_question_about_the_user_can_be_confirmed(question: str, reply: str, *, is_learnt: bool) -> None:
    asked = turn("Plan my day", turn_id="t1", answer=f"Sure. {question}")
    answered = turn(reply, turn_id="t2", at=AT + 60)
    facts = verbatim.extract([answered], context=[asked])
    assert [f.evidence.quote for f in facts] == ([question] if is_learnt else [])
    assert all(f.evidence.role == "assistant" for f in facts)


def test_unrelated_statements_leave_each_other_standing_one_row_each() -> None:
    rows: dict[str, Memory] = {}
    for number, statement in enumerate(TOLD * 2):
        said = turn(statement, turn_id=f"t{number}", at=AT + number)
        facts = gate.judge(verbatim.extract([said]), [said]).kept
        changes = consolidate(facts, list(rows.values()), now=AT + number, ids=partial("{}/{}".format, number))
        rows |= {change.memory.id: change.memory for change in changes}
    assert [row.content for row in rows.values() if row.status is not MemoryStatus.ACTIVE] == []
    assert len(rows) == len(TOLD)
