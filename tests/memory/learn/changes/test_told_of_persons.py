"""What a person has one of: another value takes the first one's place, without a word of change; look-alikes stay."""

from __future__ import annotations

import pytest

from memory.learn.changes.supersession import compare, may_change

REPLACED = [  # each: what was said first, and later
    ("I live in Porto", "settled into our new flat in Braga, the neighbours sing"),
    ("I'm based in Leeds", "I live with two friends in York"),
    ("我住在南京", "我家在长沙，离江边很近"),
    ("我们住在大连", "我们住厦门一年多了"),
    ("Ich wohne in Jena", "Ich wohne in Gera, im Hinterhaus"),
    ("Vivo en Lugo", "Vivo en Vigo, cerca del puerto"),
    ("I work at Nordwind", "I started a new job at Halden Labs"),
    ("I'm a porter at the Grand Adria", "first week as night manager at Hotel Mirador"),
    ("I work for Nordwind", "I've just joined Halden as a tester"),
    ("I work as a welder", "I work as a crane operator"),
    ("I'm a barista at Kona", "I got a job at Boots"),
    ("我在一家律所做前台", "我入职出版社了"),
    ("我在华为上班", "我上个月跳槽到小米了"),
    ("Ich arbeite bei Lindt", "Ich habe im Mai bei Ritter angefangen"),
    ("Trabajo en Telvia", "Empecé a trabajar en Norteluz"),
    ("I'm seeing Odd", "my boyfriend Kester is picking me up"),
    ("My girlfriend is called Una", "My girlfriend Priya bakes on Sundays"),
    ("我女朋友叫小雯", "我女朋友阿珂爱吃辣"),
    ("Mi novio se llama Iker", "Mi novio se llama Unai"),
    ("My boss is Ulrike", "Our manager is called Tamsin, she starts early"),
    ("Mein Chef heißt Herr Kolb", "Meine Chefin ist Frau Winter"),
    ("我的牙医是钱医生", "牙医是孙医生"),
    ("I'm engaged to Theo", "Theo and I got married on Saturday"),
    ("I'm married", "We got divorced in spring"),
    ("我还单身", "我结婚了"),
    ("My daughter is 5", "my daughter turned 6 on Sunday"),
    ("Their big sister Beth is 9", "Beth is 10 as of yesterday"),
    ("Meine Tochter ist 7", "Meine Tochter ist gestern 8 geworden"),
    ("Mi hijo tiene 3 años", "Mi hijo cumplió 4 años"),
    ("我女儿今年四岁", "女儿刚过完五岁生日"),
    ("My son Eli is in year 4", "Eli is in year 5 this term"),
    ("我儿子上小学二年级，喜欢画恐龙", "我儿子上三年级了"),
    ("Meine Tochter Lea geht in die 3. Klasse", "Lea ist 9, unsere Tochter Lea geht in die 4. Klasse"),
    ("My son Eli is in year 4 at Park School", "Eli starts at Hilltop School on Monday"),
    ("Estudio enfermería en Granada", "Estudio derecho en Granada"),
    ("I teach chemistry at Fernhill Academy", "I've just started as lab manager at Corvane, still finding my way"),
    ("我在一家培训机构教英语", "我考上编制了，现在在市实验小学教英语"),
    ("My manager is Fiona", "new boss as of Monday: Rakesh"),
    ("I'm 51 years old", "I turned 53"),
    ("My e-mail is una@lind.example", "please use my e-mail una.b@haven.example"),
    ("My work e-mail is u@lind.example", "my work email: ub@haven.example"),
    ("我的邮箱是 lin@qing.example", "请用我的邮箱 lin8@song.example"),
    ("My mobile number is 07700 900118", "for the form: my mobile number is 07700 900456"),
    ("我的手机号是 13900001111", "我的手机号 13700002222"),
]
BOTH_HOLD = [  # likewise
    ("I live in Porto", "I have a flat in Braga"),
    ("I live in Porto", "My sister lives in Braga"),
    ("I live in Porto", "I used to live in Braga"),
    ("I used to live in Rome", "I moved to Oslo"),
    ("I lived in Rome as a student", "I live in Oslo"),
    ("I live in Porto", "I might settle in Braga"),
    ("I live in Porto", "We live in Braga for the summer"),
    ("我住在南京", "我在长沙出差"),
    ("我住在北京", "我住在海淀"),
    ("我住在南京", "我爸妈住在长沙"),
    ("我住在南京", "我老家在长沙"),
    ("I work at Nordwind", "I also work at the Lido"),
    ("I work at Nordwind", "I work at the Lido on weekends"),
    ("I work at Nordwind", "My wife started a new job at Halden"),
    ("I work at Nordwind", "I have an interview at Halden"),
    ("I work at Nordwind", "I'm a member at PureGym"),
    ("I work at Nordwind", "I work as an electrician"),
    ("I work as a nurse", "I work as a night nurse"),
    ("I work at Nordwind", "I'm a big fan of Halden"),
    ("I work at Nordwind", "I want to work at Halden"),
    ("我在华为上班", "我在深圳上班"),
    ("我在华为上班", "我老公跳槽到小米了"),
    ("我在华为上班", "我想跳槽到小米"),
    ("我在华为上班", "我周末在一家琴行做兼职"),
    ("Ich arbeite bei Lindt", "Mein Bruder hat bei Ritter angefangen"),
    ("My girlfriend is called Una", "My sister is called Priya"),
    ("My wife is called Una", "My ex-wife is called Priya"),
    ("My wife is Una", "My wife is Danish"),
    ("My partner Una sails", "My business partner Kim sails"),
    ("我女朋友叫小雯", "我女朋友小时候学过琴"),
    ("My boss is Ulrike", "My boss is German"),
    ("My boss is Ulrike", "My dentist is Tamsin"),
    ("My boss is Ulrike", "My sister's boss is Tamsin"),
    ("I'm engaged to Theo", "My brother got married on Saturday"),
    ("I'm married to Theo", "I'm happily married"),
    ("I'm married", "My parents got divorced"),
    ("My son Eli is in year 4", "My daughter Ada is in year 5"),
    ("我儿子上二年级", "我侄子上三年级"),
    ("My son Eli is in year 4", "Ada is in year 6"),
    ("My son Eli goes to Park School", "My daughter Ada goes to Hilltop School"),
    ("My son Eli goes to Park School", "Eli has a friend at Hilltop School"),
    ("My manager is Fiona", "new colleague as of Monday: Rakesh"),
    ("My daughter is 5", "My daughter is 14"),
    ("My daughter is 5", "My son is 6"),
    ("My daughter Lea is 5", "My daughter Mia is 6"),
    ("My older daughter is 5", "My younger daughter is 6"),
    ("My daughter is 5", "My daughter is 6 minutes late"),
    ("大女儿四岁", "小女儿五岁"),
    ("我女儿四岁", "女儿五岁的时候要上学前班"),
    ("Meine Tochter ist 7", "Mein Sohn ist 8"),
    ("My e-mail is una@lind.example", "My work e-mail is ub@haven.example"),
    ("My e-mail is una@lind.example", "My mum's e-mail is rosa@haven.example"),
    ("My e-mail is una@lind.example", "the shop's e-mail is info@haven.example"),
    ("我的邮箱是 lin@qing.example", "公司邮箱是 lin8@song.example"),
    ("My mobile number is 07700 900118", "My landline number is 0161 496 0022"),
    ("My mobile number is 07700 900118", "My order number is 07700 900456"),
    ("我的手机号是 13900001111", "公司电话是 02066668888"),
]


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_another_value_of_what_a_person_has_one_of_takes_its_place(older: str, newer: str) -> None:
    assert may_change(newer)
    assert compare(newer, older) is not None


@pytest.mark.parametrize(("older", "newer"), BOTH_HOLD)
def test_what_can_hold_beside_it_stays(older: str, newer: str) -> None:
    assert compare(newer, older) is None


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_the_same_value_once_more_replaces_nothing(older: str, newer: str) -> None:
    assert compare(older, older) is None
    assert compare(newer, newer) is None
