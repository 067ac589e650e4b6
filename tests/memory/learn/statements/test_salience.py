"""A statement is taken out of what stands around it; a question, a request or a courtesy is none, a wish may be."""

from __future__ import annotations

import pytest
from taken_words import kept

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


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ("the Osprey audit is due on 22 March. Draft a note for the team?", "the Osprey audit is due on 22 March."),
        ("caterer rang: the tasting starts at 5pm. Help me plan", "caterer rang: the tasting starts at 5pm."),
        ("the Porto workshop is off, the host fell ill. ideas?", "the Porto workshop is off, the host fell ill."),
        ("billing runs on Rails 7.1 since Friday, why is it slow?", "billing runs on Rails 7.1 since Friday"),
        ("La boda se aplaza al 20 de septiembre, ¿cómo aviso?", "La boda se aplaza al 20 de septiembre"),
        ("测试库是 MySQL 8.4，慢查询日志怎么看？", "测试库是 MySQL 8.4"),
        ("婚礼延期到10月6号，酒店怎么沟通？", "婚礼延期到10月6号"),
        ("Ich wohne in Gera, dritter Stock. Wer hilft beim Tragen?", "Ich wohne in Gera, dritter Stock."),
        (
            "had a look at my card: my blood type is O positive. who can donate?",
            "had a look at my card: my blood type is O positive.",
        ),
    ],
)
def test_a_value_that_is_told_before_a_request_is_kept(message: str, value: str) -> None:
    assert value in kept(message)


@pytest.mark.parametrize(
    "message",
    [
        "The battle of Hastings was on 14 October 1066. True?",
        "The following code runs on Python 3.9. Convert it",
        "what is due on 3 May?",
        "Is Python 3.12 faster?",
        "has the train left? When is the next one?",
        "国庆节是哪天，放几天假？",
    ],
)
def test_what_anybody_may_know_or_ask_is_not(message: str) -> None:
    assert kept(message) == []
