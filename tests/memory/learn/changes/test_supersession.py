"""What the user's words change, what they leave standing, and what only looks alike."""

from __future__ import annotations

import pytest

from memory.learn.changes.supersession import compare, covers, may_change

CHANGED = [
    # (older, newer, a part of the older one that must still hold)
    ("I live in Porto", "I moved to Braga last month", ""),
    ("I'm living in Porto, my brother is in Faro", "We relocated to Braga in May", "my brother is in Faro"),
    ("My address is 5 Mill Lane", "My address is 12 Station Road now", ""),
    ("I work at Nordwind as a tester", "I quit Nordwind, I work at Halden Labs now", ""),
    ("I work at Nordwind", "I changed jobs: I now work at Halden Labs", ""),
    ("My boss is Ulrike", "My new boss is Tamsin", ""),
    ("My boss is Ulrike and my mentor is Odd", "Ulrike left the company, I report to Tamsin now", "my mentor is Odd"),
    ("My rent is 900 euros", "My rent went up, it's 980 euros now", ""),
    ("The wedding is on 4 July", "We moved the wedding to 11 July", ""),
    ("My dentist appointment is on Tuesday at 10:00", "The dentist appointment got pushed to Thursday", ""),
    ("I drink three coffees a day", "I'm down to one coffee a day", ""),
    ("I smoke ten cigarettes a day", "I stopped smoking cigarettes", ""),
    ("I have a Golf and a camper van", "I sold the Golf last week", "I have a camper van"),
    (
        "We use Trello for planning and Slack for chat",
        "We switched from Trello to Linear for planning",
        "We use Slack for chat",
    ),
    ("My phone is a Pixel 6", "I replaced my phone, it's an iPhone 15 now", ""),
    ("My phone number ends in 4471", "My phone number changed, it ends in 9020 now", ""),
    ("I'm vegan", "I'm no longer vegan, I eat eggs now", ""),
    ("I like tea", "I don't like tea", ""),
    ("My daughter Lea is in year 3", "Lea is in year 4 now", ""),
    ("My gym sessions are on Mondays", "Gym is on Wednesdays now", ""),
    ("I'm flying to Oslo on 3 March", "I cancelled the Oslo flight", ""),
    (
        "We booked Rome for Easter; Vienna is for Christmas",
        "We're not going to Rome after all",
        "Vienna is for Christmas",
    ),
    ("Keep your answers detailed", "Please keep answers short from now on", ""),
    ("My favourite band is Wardruna", "My favourite band is Heilung now", ""),
    ("My project deadline is 1 June", "The project deadline was moved to 15 June", ""),
    ("Otto's birthday is 5 May", "Sorry, I was wrong, Otto's birthday is 6 May", ""),
    ("My budget for the boat is 20k", "My budget for the boat is 25k", ""),
    ("My weight is 82 kg", "My weight is 79 kg", ""),
    ("Our backup runs at 2 am", "The backup runs at 4 am now", ""),
    ("My cat gets 2 pills a day", "The vet lowered it: my cat gets 1 pill a day now", ""),
    ("I take the bus to work", "I no longer take the bus to work", ""),
    ("My landlord is Mr Voss", "The house was sold, our landlord is Ms Adler now", ""),
    ("I study chemistry", "I dropped chemistry, I study law now", ""),
    ("我住在成都", "我搬到重庆了", ""),
    ("我在腾讯上班", "我跳槽到字节了，不在腾讯了", ""),
    ("我女儿上三年级，儿子上幼儿园", "我女儿现在上四年级了", "儿子上幼儿园"),
    ("我的手机是小米", "我的手机换成华为了", ""),
    ("周三下午三点开例会", "例会改到周四下午三点了", ""),
    ("我每天喝两杯咖啡", "我现在每天只喝一杯咖啡", ""),
    ("我的预算是三千块", "我的预算是五千块", ""),
    ("国庆去西安，春节回老家", "西安不去了", "春节回老家"),
    ("我们用的是飞书开会", "我们现在用钉钉开会", ""),
    ("我的导师是陈老师", "我的导师换成吴老师了", ""),
    ("I'm allergic to shellfish", "It turns out I'm not allergic to shellfish", ""),
    ("I'm allergic to shellfish", "My doctor says that I'm not allergic to shellfish after all", ""),
    ("我对虾过敏", "我对虾不过敏", ""),
    ("我对虾过敏", "检查结果显示我其实对虾不过敏", ""),
    ("I'm 51 years old", "I'm 52 now", ""),
    ("I'm 51", "I just turned 52", ""),
    ("I work at Nordwind", "I got fired from Nordwind", ""),
    ("I work for Nordwind", "I left Nordwind in May", ""),
    ("I'm single", "I got married in Lugano", ""),
    ("我单身", "我上个月结婚了", ""),
    ("My trip to Bergen is in June", "The Bergen trip got cancelled because of a strike", ""),
    ("I have a physio appointment on Friday", "My Friday appointment was cancelled", ""),
    ("My hiking trip is in June", "Unfortunately my trip got cancelled", ""),
    ("My budget is 500 euros for the fence", "My budget is 900 euros for the fence", ""),
    ("Ich wohne in Jena", "Ich bin nach Gera umgezogen, ich wohne jetzt in Gera", ""),
    ("Mein Chef ist Herr Kolb", "Mein Chef ist jetzt Frau Winter", ""),
    ("Der Kurs ist am Montag", "Der Kurs ist jetzt am Dienstag", ""),
    ("Vivo en Lugo", "Ahora vivo en Vigo", ""),
    ("Mi coche es un Seat", "He vendido el Seat, ahora tengo un Dacia", ""),
    ("La clase de yoga es los lunes", "La clase de yoga ahora es los viernes", ""),
]


@pytest.mark.parametrize(("older", "newer", "rest"), CHANGED)
def test_what_the_users_words_change_no_longer_holds_and_the_rest_does(older: str, newer: str, rest: str) -> None:
    verdict = compare(newer, older)
    assert may_change(newer)
    assert verdict is not None
    assert verdict.remainder == rest


APART = [
    ("My locker code is 4711-XK", "My locker code is 9921-AB"),
    ("I'm going to Rome on 3 May", "I'm going to Oslo on 8 June"),
    ("My daughter is called Mia", "My daughter is called Lea"),
    ("My friend Bob lives in Rome", "My friend Al now lives in Oslo"),
    ("I have a cat called Tom", "I now have two dogs"),
    ("My cat weighs 5 kg", "I now have two cats"),
    ("My wife's birthday is 3 May", "My birthday is 4 June"),
    ("My sister lives in Oslo", "I moved to Bergen"),
    ("I work from home on Mondays", "My yoga class is on Fridays now"),
    ("My yoga class is on Mondays", "My salsa class is on Fridays now"),
    ("The kitchen budget is 12k", "The bathroom budget is 6k now"),
    ("I have a meeting with Ana on Monday", "I moved the meeting with Bo to Friday"),
    ("My bike lock code is 1234", "I sold my car"),
    ("My colleague Ana's birthday is 3 May", "Ana went to the sales team"),
    ("I'm allergic to nuts", "I'm allergic to shellfish now"),
    ("I play the violin", "My son now plays the violin"),
    ("I like jazz", "I like techno now"),
    ("My car is a Volvo", "I washed my car today"),
    ("I was born in Leeds", "I moved to York"),
    ("I live in Leeds", "My son now lives in York"),
    ("My first computer was an Amiga", "My computer is a ThinkPad now"),
    ("The spare key hangs behind the flowerpot", "I parked the car on level 3 now"),
    ("Our team deploys Heron with Jenkins", "Magpie is now deployed with Buildkite"),
    ("I live near the old mill", "I live in a house with a green door"),
    ("I live in Leeds", "When I was twelve, I moved to Spain"),
    ("My trip to Bergen is in June", "My trip to Lugano got cancelled"),
    ("I'm flying to Bergen in June", "My flight to Lugano was cancelled"),
    ("My physio appointment is on Friday", "My tax office appointment was cancelled"),
    ("I have a meeting with Odd on Friday", "The meeting with Kari is called off"),
    ("Our trip is in June", "Our trip in August is cancelled"),
    ("我七月去青岛旅游", "我九月去婺源的旅行取消了"),
    ("My name is Una", "My name is easy to forget"),
    ("My manager is Odd", "My manager is off sick until Friday"),
    ("My manager is Odd", "My manager is very busy now"),
    ("My address is 9 Mill Lane", "My address is private"),
    ("My salary is 3000 euros", "My salary is too low"),
    ("My job is teaching children", "My job is tiring"),
    ("My budget is 300 euros for a tent", "My budget is 800 euros for a bike"),
    ("我的经理是老贺", "我的经理很忙"),
    ("我住在成都", "我搬到了另一个部门"),
    ("I live in Leeds", "I moved to the sales team"),
    ("I'm single", "My sister got married in Lugano"),
    ("I'm 51 years old", "My son is 12 now"),
    ("I'm 51 years old", "I'm 180 cm tall now"),
    ("I work at Nordwind", "I left Halden in 2010"),
    ("I'm allergic to shellfish", "It turns out I'm not allergic to dust"),
    ("我住在三楼", "我住在公园旁边"),
    ("我妹妹住在苏州", "我搬到杭州了"),
    ("我对花生过敏", "我现在对虾也过敏"),
    ("大女儿叫苗苗", "小女儿叫芽芽"),
    ("我的储物柜是17号", "我现在坐地铁上班"),
    ("我五一去青岛", "我端午去婺源"),
    ("Mein Bruder wohnt in Kiel", "Ich wohne jetzt in Bonn"),
    ("Mi hermana vive en Lugo", "Ahora vivo en Vigo"),
    ("I work night shifts", "Our parrot died in the night"),
    ("I don't drink coffee after noon", "Rufus passed away at noon"),
]


@pytest.mark.parametrize(("older", "newer"), APART)
def test_two_statements_that_merely_resemble_each_other_stay_two(older: str, newer: str) -> None:
    assert compare(newer, older) is None


def test_what_is_said_to_stay_does_not_fall() -> None:
    verdict = compare(
        "The kitchen budget is 15k now, the bathroom budget stays at 6k",
        "The kitchen budget is 12k, the bathroom budget is 6k",
    )
    assert verdict is not None
    assert verdict.remainder == "the bathroom budget is 6k"


def test_a_heading_stays_with_the_rest() -> None:
    verdict = compare("oops, Ada's is 13 March", "Birthdays: Ada's is 3 March, Ben's is 30 March")
    assert verdict is not None
    assert verdict.remainder == "Birthdays: Ben's is 30 March"


def test_a_statement_covers_another_that_says_no_more() -> None:
    assert covers("My budget for the Hawaii trip is $10,000", "Is your budget for the Hawaii trip $10,000?")
    assert not covers("My budget for the Hawaii trip is $10,000", "Is your budget for the Hawaii trip $12,000?")
