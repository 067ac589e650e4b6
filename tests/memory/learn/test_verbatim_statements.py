"""What people tell, in their own sentences, is kept; what they ask, want, quote or paste is not."""

from __future__ import annotations

from functools import partial

import pytest

from memory.learn import gate, verbatim
from memory.learn.consolidation import consolidate
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


NOT_TOLD = """
What is the capital of Peru?
what is my budget
how do i tie a bowline
can you help me with my tax return
Could you write a poem about my dog?
Can you remember my locker number?
Can you call me back?
could you call me tomorrow
Would you call me a taxi?
能叫我起床吗？
Write a haiku about autumn
write me a cover letter
Please translate this into French
Tell me a joke
give me three ideas for dinner
make it shorter
shorter please
in one sentence
two paragraphs, formal tone
Thanks!
thank you so much
ok
great, thanks a lot
hello there
good morning
never mind
sounds good
I see
I understand
got it
yes
no
lol
you're right
that's wrong
that's wrong, try again
call me later
Reply in one word
that is not what I asked
I don't understand this
I have a question
let's try something else
Is it going to rain tomorrow?
do i need a visa for Japan
should I buy or rent
which one is better
any tips for sleeping better
I wonder what time it is in Tokyo
I was wondering if you could help me
who am I
remember when we talked about boats?
what do you know about me?
If I were a bird, where would I fly?
imagine I am a pirate
pretend you are my grandmother
Explain quantum tunnelling to me like I'm five
fix the bug in this function
more details
continue
now in German
another one
need a quick recipe for pancakes
你好
谢谢
好的
在吗？
今天天气怎么样
帮我写一封辞职信
什么是量子纠缠
给我讲个笑话
再短一点
换个说法
这句话怎么翻译
我该怎么办？
可以了
没事
为什么天是蓝的
请用英文回答
总结一下
Wie spät ist es?
Schreib mir ein Gedicht
danke dir
Was soll ich kochen?
¿Qué hora es?
Escribe un poema
gracias
hola
""".strip().splitlines()


@pytest.mark.parametrize("text", NOT_TOLD)
def test_a_question_a_request_or_a_courtesy_is_not_kept(text: str) -> None:
    assert kept(text) == []


@pytest.mark.parametrize(
    ("message", "statement"),
    [
        ("Suggest a recipe, I'm vegan", "I'm vegan"),
        ("Recommend a film for tonight - my wife hates horror", "my wife hates horror"),
        ("my laptop is a ThinkPad X1, how do I update its BIOS?", "my laptop is a ThinkPad X1"),
        ("what should I cook, I only have eggs and rice", "I only have eggs and rice"),
        ("Since I have a newborn, what vaccines come first?", "Since I have a newborn"),
        ("Please remember that my car is a grey Twingo.", "my car is a grey Twingo."),
        ("Remember: I hate surprises", "I hate surprises"),
        ("don't forget that we fly on the 9th", "we fly on the 9th"),
        ("Note that our server room is B12.", "our server room is B12."),
        ("记住我家门牌是42号", "我家门牌是42号"),
        ("Could you please remember that my bike has 24 gears?", "my bike has 24 gears"),
        ("能记住我不吃香菜吗？", "我不吃香菜"),
        ("Can you call me Theo?", "call me Theo"),
        ("你能叫我阿强吗？", "叫我阿强"),
        ("请记住：我周三不开会", "我周三不开会"),
        ("推荐个餐厅，我吃素", "我吃素"),
        ("我吃素，推荐个餐厅", "我吃素"),
        ("Merk dir, dass ich kein Fleisch esse", "ich kein Fleisch esse"),
        ("Recuerda que vivo solo", "vivo solo"),
    ],
)
def test_the_statement_is_taken_out_of_what_stands_around_it(message: str, statement: str) -> None:
    assert kept(message) == [statement]


@pytest.mark.parametrize(
    "wish",
    [
        "Always answer in metric units",
        "Never use emojis when you write to me",
        "From now on keep your answers short",
        "Call me Sam",
        "Please call me Captain from now on",
        "Don't use tables anymore",
        "Reply in short sentences from now on",
        "以后回答都用繁体",
        "叫我阿强就好",
        "Antworte künftig immer auf Deutsch",
        "A partir de ahora respóndeme siempre en catalán",
    ],
)
def test_a_wish_that_is_meant_to_last_is_kept_though_it_is_a_command(wish: str) -> None:
    assert kept(wish) == [wish]


PASTED = [
    "Fix this please:\n```python\nname = 'Marta'\nprint('I live in Oslo')\n```",
    "Summarise this text:\nI am a nurse in Graz. I speak Slovene.\nI play the oboe.",
    "translate to German: I live in a small house by the sea and I love my garden",
    "Proofread: 'I have been working here for ten years and I love my colleagues.'",
    "What does this mail want?\nFrom: Ann\nSubject: My flat\n\nI live in Rome and my cat is ill.",
    "<document>I am the owner of three boats. My name is Kurt.</document> how many boats?",
    "> I moved to Dublin last year\n> and my rent is 1,900\n\nwhat would you reply?",
    "Is this good English? “I have a big house and I am living there since five years.”",
    "How does this read?\n---\nMy name is Vera. I sell honey.\n---",
    "把这段翻译成英文：我叫王芳，住在成都，今年三十岁。",
    "润色：“我在银行工作了十年，想换一份工作。”",
    '{"name": "Kim", "note": "I live in Busan"}',
    "my code:\nUSER_NAME=Marta\nCITY_OF_USER=Oslo\nwhy does it fail?",
    "I want you to check this.\n" + "I live in Oslo and I like my flat very much indeed. " * 40,
]


@pytest.mark.parametrize("message", PASTED)
def test_what_was_pasted_is_not_what_the_user_says(message: str) -> None:
    assert kept(message) == []


def test_a_document_of_many_pages_teaches_nothing() -> None:
    assert kept("I live in Oslo.\n" * 2_000) == []


def test_inline_code_and_short_titles_stay_in_the_users_sentence() -> None:
    message = "To release we run `make ship`, then I tag it. My talk 'Quiet Machines' is on 5 June."
    assert kept(message) == ["To release we run `make ship`, then I tag it.", "My talk 'Quiet Machines' is on 5 June."]


def test_a_statement_beside_pasted_code_is_kept() -> None:
    assert kept("I work on the Lumen team.\n```\nprint(1)\n```\nwhat does it print?") == ["I work on the Lumen team."]


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
