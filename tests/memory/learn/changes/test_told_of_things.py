"""A named thing has one date, place, price, version and number at a time; two things, or two of a sort, stay two."""

from __future__ import annotations

import pytest

from memory.learn.changes.supersession import compare, may_change

REPLACED = [  # each: what was said first, and later
    ("Our wedding is in June", "The wedding is postponed to September"),
    ("The loft conversion starts on 4 May", "the builder rang: the loft conversion starts on 18 May"),
    ("The Heron report is due on 15 March", "the Heron report is due on 22 March"),
    ("Deadline for the thesis is 1 September", "the thesis is due on 15 October"),
    ("My choir rehearses on Tuesdays", "choir rehearsal is on Thursdays"),
    ("Our stand-up is at 9:15", "stand-up is at 10 in room Oak"),
    ("The bins go out on Mondays", "bins go out on Fridays"),
    ("Book club meets on Wednesdays", "book club is at Priya's on Thursdays"),
    ("项目例会每周一上午十点在301开", "项目例会是每周三下午两点，在508"),
    ("我们的婚礼定在5月2号", "婚礼延期到10月6号"),
    ("La boda es el 14 de junio", "La boda se aplaza al 20 de septiembre"),
    ("Das Sommerfest ist am 4. Juli", "Das Sommerfest findet am 11. Juli statt"),
    ("The router sits in the hall", "the router sits in the attic"),
    ("The spare key is under the blue pot", "the spare key is with our neighbour"),
    ("Our office is on Mill Street", "Our office is on Canal Road"),
    ("The reception is at Harrow Barn", "the reception is at Quay House"),
    ("Our budget for the Madeira trip is 1,800 euros", "Madeira budget is 2,300 euros"),
    ("The boat mooring costs 90 euros a month", "the boat mooring is 120 euros a month"),
    ("我家装修预算15万", "装修预算20万"),
    ("Our billing service runs on Django 4.2", "billing runs on Django 5.1 since Friday"),
    ("We use Postgres 14", "we're on Postgres 16"),
    ("我们生产库用的是 MySQL 5.7", "生产库是 MySQL 8.4"),
    ("We keep 6 hens in the garden", "we have 4 hens left"),
    ("我家养了两只猫", "家里有三只猫"),
    ("Our wedding venue is Harrow Barn", "the venue is the Glasshouse in the end"),
    ("My physio is called Hamish, Thursdays at four", "My physio is Signe, she's brutal"),
    ("My accountant is Mr Ode", "my accountant is Ms Birk"),
    ("我家的猫粮是皇家", "我家的猫粮是渴望"),
    ("我的专业是会计", "我的专业是法律"),
    ("房租每月2800", "房租每月3100，房东说是市场价"),
    ("My car is a blue Fiat Panda", "the car is a Kia Niro"),
    ("Ich fahre einen alten Passat", "Ich fahre einen Skoda"),
    ("我用的手机是小米", "我用的手机是华为"),
    ("I drink two coffees a day", "I drink one coffee a day"),
    ("我每天喝三杯咖啡", "我每天喝一杯咖啡"),
    ("I go to the gym three times a week", "I go to the gym once a week"),
    ("备用钥匙放在鞋柜里", "备用钥匙放在门口花盆下面"),
    ("The Graz train leaves at 9:10", "the Graz train leaves at 11:30"),
    ("I take metformin 500 mg twice a day", "doctor put me on 1000 mg metformin twice a day"),
    ("My blood type is A positive", "looked it up on my card: my blood type is A negative"),
]
BOTH_HOLD = [  # likewise
    ("Our wedding is in June", "My sister's wedding is in September"),
    ("Our wedding is in June", "The wedding cake is ordered for May"),
    ("婚礼定在5月2号", "我姐的婚礼在10月6号"),
    ("My trip is in June", "My trip is in August"),  # of trips, flights, appointments there are several
    ("My flight is on 3 May", "My flight is on 8 June"),
    ("The course starts on 4 May", "The course ends on 18 June"),
    ("The Heron report is due on 15 March", "The Plover report is due on 29 March"),
    ("Bo's birthday is on 4 May", "Al's birthday is on 9 June"),
    ("My brother's driving test is on 14 June", "my driving test got pushed back to 30 June, the examiner is ill"),
    ("Swimming is on Mondays", "Swimming is also on Thursdays"),
    ("I play padel on Mondays", "I play padel on Thursdays"),
    ("项目例会每周一在301开", "复盘会每周五在402"),
    ("我妈周一体检", "我妈周三打麻将"),
    ("我周一去游泳", "我周三去游泳"),
    ("My boss is on holiday until Monday", "My boss is on holiday until Friday"),
    ("The spare key is in the drawer", "The car key is in the bowl"),
    ("My desk is by the window", "My desk is in the corner"),
    ("Our office is in Germany", "Our office is in Berlin"),
    ("Our office is on the third floor", "Our office is on Mill Street"),
    ("My sister is in the garden", "My sister is in the hospital"),
    ("The kitchen budget is 12k", "The bathroom budget is 6k"),
    ("My rent is 900 euros a month", "My garage is 90 euros a month"),
    ("The mooring costs 90 euros a month", "The mooring costs 900 euros a year"),
    ("我家装修预算15万", "买车预算20万"),
    ("We use Python 3.11 for the API", "We use Python 3.8 for the scripts"),
    ("Our billing service runs on Django 4.2", "Our reporting service runs on Django 3.2"),
    ("We run Postgres 14", "We run Redis 7"),
    ("生产库是 MySQL 5.7", "测试库是 MySQL 8.0"),
    ("We have 4 hens", "We have 2 cats"),
    ("I have 2 meetings on Monday", "I have 3 meetings on Tuesday"),
    ("We keep 6 hens and 2 geese", "We have 4 hens"),  # the geese must not go with them
    ("我家养了两只猫", "我家养了三条狗"),
    ("My project is called Heron", "My project is called Plover"),  # projects, languages, pets: there may be several
    ("My cat is called Tom", "My cat is called Rex"),
    ("My physio is Hamish", "My physio is Scottish"),
    ("My physio is Hamish", "My physio is Hamish's wife"),
    ("My appointment is Monday", "My appointment is Tuesday"),
    ("我的爱好是钓鱼", "我的爱好是爬山"),
    ("我的目标是减肥", "我的目标是考研"),
    ("我的朋友叫小梅", "我的朋友叫小兰"),
    ("房租每月2800", "学费每月3100"),
    ("My car is a Fiat", "My car is Italian"),
    ("My phone is a Pixel", "My work phone is a Nokia"),
    ("My phone is a Pixel", "My sister's phone is a Nokia"),
    ("我的车是丰田", "我的车是白色的"),
    ("I drink two coffees a day", "I drink three teas a day"),
    ("I drink two coffees a day", "I drink ten coffees a week"),
    ("我每天喝三杯咖啡", "我每天喝两杯茶"),
    ("I go to the gym three times a week", "I go to the pool once a week"),
    ("备用钥匙放在鞋柜里", "车钥匙放在门口的碗里"),
    ("The Graz train leaves at 9:10", "the Graz train arrives at 11:30"),
    ("I take 500 mg metformin", "I take 20 mg of lisinopril"),
    ("I take 500 mg metformin in the morning", "I take 250 mg metformin in the evening"),
    ("I take 500 mg metformin", "My mother takes 850 mg metformin"),
]


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_another_value_of_one_named_thing_takes_its_place(older: str, newer: str) -> None:
    assert may_change(newer)
    assert compare(newer, older) is not None


@pytest.mark.parametrize(("older", "newer"), BOTH_HOLD)
def test_two_things_and_two_of_a_sort_stay_two(older: str, newer: str) -> None:
    assert compare(newer, older) is None


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_the_same_value_once_more_replaces_nothing(older: str, newer: str) -> None:
    assert compare(older, older) is None
    assert compare(newer, newer) is None


def test_what_is_counted_beside_it_stays() -> None:
    verdict = compare("we have 4 hens left", "We keep 6 hens in the garden and 2 hives of bees")
    assert verdict is not None
    assert verdict.remainder == "We keep 2 hives of bees"


def test_only_what_changed_falls_and_the_rest_of_the_sentence_stays() -> None:
    verdict = compare(
        "the loft conversion starts on 18 May", "The loft conversion starts on 4 May, the roof gets redone in August"
    )
    assert verdict is not None
    assert verdict.remainder == "the roof gets redone in August"
