"""What stands in a user's message and is not theirs, or not meant, teaches nothing about them, whoever extracts.

Each message is put before the rules, before what a small model is asked, and before a drafting model that quotes the
very words: all three go by `own_words`. The look-alikes of each kind must still be learnt.
"""

from __future__ import annotations

import pytest
from turn_logs import a_turn

from memory.learn import drafting, verbatim
from memory.learn.candidates import proposals

# (the message, words in it that must not be learnt)
REFUSED = [
    # Examples and suppositions
    ("For example, I earn 3000 a month", "I earn 3000 a month"),
    ("How is child benefit worked out? For instance, I have four children.", "I have four children"),
    ("Say I own two flats in Porto and want to rent one out", "I own two flats in Porto"),
    ("Let's say my salary is 52,000. I pay into a pension. How much tax is that?", "I pay into a pension"),
    ("Suppose I am a Swiss citizen. I work in Austria three days a week.", "I work in Austria three days a week"),
    ("Which visa fits, assuming I live in Hanoi?", "I live in Hanoi"),
    ("What would a broker charge if, say, I own 400 shares of Nestle?", "I own 400 shares of Nestle"),
    ("As an example: my dog weighs 12 kg, how much does he get?", "my dog weighs 12 kg"),
    ("Hypothetically, I crashed my car in Denmark.", "I crashed my car in Denmark"),
    ("Let us assume that I'm 67 and I draw a pension in Malta.", "I draw a pension in Malta"),
    ("Take this case: I rent a shop in Bern and the owner sells it.", "I rent a shop in Bern"),
    ("比如说我月薪一万二，要交多少税", "我月薪一万二"),
    ("假设我住在厦门，有两个孩子", "我住在厦门"),
    ("举个例子，我在工厂上班，每天十小时。", "我在工厂上班"),
    ("假如我有三套房。我在银行工作。能贷多少？", "我在银行工作"),
    ("社保怎么交，比如我在杭州开了一家店", "我在杭州开了一家店"),
    ("Angenommen, ich verdiene 4000 Euro. Ich habe drei Kinder. Welche Steuerklasse?", "Ich habe drei Kinder"),
    ("Zum Beispiel wohne ich in Graz und arbeite in Linz.", "wohne ich in Graz"),
    ("Por ejemplo, gano 2000 euros al mes", "gano 2000 euros al mes"),
    ("Supongamos que vivo en Quito y tengo dos hijos", "vivo en Quito"),
    # On behalf of somebody
    ("asking for a friend, I'm pregnant and can't sleep", "I'm pregnant"),
    ("Asking for a colleague: I have gout, may I eat lentils?", "I have gout"),
    ("I drank wine in week six of my pregnancy. Is that bad? Asking for a friend.", "I drank wine in week six"),
    ("This is for my neighbour, who wants to know: I have a metal hip, can I get an MRI?", "I have a metal hip"),
    ("My cousin asks: I failed my driving test twice, what now?", "I failed my driving test twice"),
    ("帮朋友问的，我怀孕了，能坐飞机吗", "我怀孕了"),
    ("替同事问一下：我有高血压，能献血吗", "我有高血压"),
    ("Ich frage für eine Freundin: ich bin im dritten Monat schwanger", "ich bin im dritten Monat schwanger"),
    ("Pregunto por un amigo: tengo hepatitis desde enero", "tengo hepatitis desde enero"),
    # Text that is presented
    ("Here is my friend's bio:\nI am a glassblower in Murano. I have two sons.", "I have two sons"),
    ("Here's a review I found: I bought this tent in May and I love it.", "I bought this tent in May"),
    ("Check this text. I have lived in Turin since 2010.", "I have lived in Turin since 2010"),
    ("John wrote me this: I moved to Cork and my mother is ill.", "I moved to Cork"),
    ("My landlord texted:\nI am selling the house in June.\n\nI live in Spain now.", "I live in Spain now"),
    ("Translate this: I am a diver and my boat is called Ula.", "my boat is called Ula"),
    ("Can you translate this sentence. I keep bees on my roof.", "I keep bees on my roof"),
    (
        "Summarise the following email:\n\nHi all,\n\nI am on leave from 3 June.\n\nI moved to flat 12.",
        "I moved to flat 12",
    ),
    ("File: notes.txt\nI live in Rome and I have a boat.", "I live in Rome"),
    ("minutes_2024.md\nI will chair the board from May on.", "I will chair the board"),
    ("What is wrong with my sister's letter?\n\nI am a nurse and I hate my shifts.", "I hate my shifts"),
    ("She writes: I gave up my flat in Lyon.", "I gave up my flat in Lyon"),
    ("Is this sentence right: I have been to Lima last year.", "I have been to Lima last year"),
    ("Correct my German sentence: Ich habe zwei Schwester in Bonn.", "Ich habe zwei Schwester in Bonn"),
    ("The customer's complaint:\nI ordered three lamps and my order is late.", "I ordered three lamps"),
    ("Begin forwarded message:\n\nI bought a farm in Wales.", "I bought a farm in Wales"),
    ("请翻译：我在大理开客栈，养了一条狗", "我在大理开客栈"),
    ("帮我润色下面这段：\n我是一名护士，在青岛工作", "在青岛工作"),
    ("这是我朋友写的：我辞职了，搬到了昆明", "我辞职了"),
    ("他给我发消息说：我把车卖了，下个月去新疆", "我把车卖了"),
    ("文件：日记.txt\n我今天搬到了珠海", "我今天搬到了珠海"),
    ("Übersetze bitte: Ich wohne seit Mai in Basel.", "Ich wohne seit Mai in Basel"),
    ("Mein Chef schreibt: Ich bin bis Juni in Elternzeit.", "Ich bin bis Juni in Elternzeit"),
    ("Traduce esta frase: Tengo una casa en Cuenca.", "Tengo una casa en Cuenca"),
    # Code, logs and tables
    ("return 'I live in Rome'", "I live in Rome"),
    ('greeting = "My name is Ivo"\nwhy is it undefined?', "My name is Ivo"),
    ("console.log('I own a kiosk')", "I own a kiosk"),
    ("What does it print?\n\n    say(\n    I work in Gdansk\n    )\n", "I work in Gdansk"),
    ("~~~\nI keep 3 goats\n~~~", "I keep 3 goats"),
    ("[INFO] user said I live in Bergen", "I live in Bergen"),
    ("12:04:11 worker: my disk is full at 93 percent", "my disk is full at 93 percent"),
    ('Parse it: {"who": "Kim", "note": "I live in Busan"}', "I live in Busan"),
    ("name,city,remark\nKim,Busan,I like tea\nLeo,Graz,I have a dog", "I have a dog"),
    ("On 3 May 2024, Ann Lee wrote:\n> I live in Rome\n> and my rent is 900", "my rent is 900"),
    ("A: I live in Tartu. Where do you live?\nB: I live in Riga.\nA: Nice.", "I live in Riga"),
    # Jokes that are taken back
    ("I'm the king of Spain, haha just kidding", "I'm the king of Spain"),
    ("I have forty cats. lol jk", "I have forty cats"),
    ("My father is the pope. Only joking!", "My father is the pope"),
    ("我是外星人，开玩笑的", "我是外星人"),
    ("我中了五百万。逗你玩的。", "我中了五百万"),
    ("Ich bin der Kaiser von China. War nur ein Scherz.", "Ich bin der Kaiser von China"),
    ("Tengo diez mansiones, es broma", "Tengo diez mansiones"),
    # Fiction, play, exercises, and what others are heard to say
    ("In my novel the hero says: I grew up in Kyiv and I hate snow.", "I grew up in Kyiv"),
    ("Pretend I am a pilot with a fear of heights.", "I am a pilot"),
    ("Pretend that I own a bank. I have 40 clerks. Greet me.", "I have 40 clerks"),
    ("My friend says 'I am broke'", "I am broke"),
    ('My flatmate Jo said "I sold my car" and left.', "I sold my car"),
    ("How do I say 'I am pregnant' in Polish?", "I am pregnant"),
    ("How do you say I am allergic to eggs in Thai?", "I am allergic to eggs"),
    ("Write a diary entry that begins: I am a sailor from Bergen.", "I am a sailor from Bergen"),
    ("The song goes: I was born in a crossfire hurricane.", "I was born in a crossfire hurricane"),
    ("我小说的主角说：我出生在敦煌，从小没有父母", "我出生在敦煌"),
    ("想象一下我是国王，我有三座城堡", "我有三座城堡"),
    ("“我失业了”用英语怎么说", "我失业了"),
    ("Stell dir vor, ich wäre Pilot und hätte Angst.", "ich wäre Pilot"),
]

# (the message, words in it that must be learnt)
KEPT = [
    # Beside examples and suppositions
    ("I'm allergic to a lot. For example, I can't eat peanuts.", "I can't eat peanuts"),
    ("I collect old things, for example I own six gramophones.", "I own six gramophones"),
    ("I like sour fruit, for example lemons.", "I like sour fruit"),
    ("They say I am stubborn, and my wife agrees.", "my wife agrees"),
    ("I'd say my budget is 900 euros", "my budget is 900 euros"),
    ("I suppose I am more of a cat person; I have three.", "I have three"),
    ("I assume my lease in Cork ends in May.", "my lease in Cork ends in May"),
    ("Suppose I win the lottery, what would I owe? In reality I earn 2,100 a month.", "I earn 2,100 a month"),
    ("Say I had a yacht, what would it cost me?\n\nI live in Kiel, by the way.", "I live in Kiel"),
    ("Needless to say, I hate Mondays.", "I hate Mondays"),
    ("If I drink milk I get a rash.", "If I drink milk I get a rash"),
    ("I set an example for my two sons at home.", "my two sons"),
    ("I said I live in Derby", "I live in Derby"),
    ("我有很多爱好，比如我会弹吉他", "我会弹吉他"),
    ("我喜欢运动，比如跑步和游泳", "我喜欢运动"),
    ("如果吃海鲜，我就会起疹子", "我就会起疹子"),
    ("Ich esse vieles nicht, zum Beispiel vertrage ich keine Milch.", "vertrage ich keine Milch"),
    ("Tengo muchas alergias, por ejemplo, a los gatos", "Tengo muchas alergias"),
    # Beside what is asked for others
    ("I'm asking for a raise next week, I work at Lidl.", "I work at Lidl"),
    ("I bought a bike for a friend, my budget was 300 euros.", "my budget was 300 euros"),
    ("My friend Lena is pregnant and she lives with me.", "My friend Lena is pregnant"),
    ("Asking for my mother, she is 71 and has gout.", "she is 71 and has gout"),
    ("Not asking for a friend this time: I have gout.", "I have gout"),
    ("我帮朋友搬家，腰扭伤了", "腰扭伤了"),
    ("我朋友问我住哪儿，我住在莆田", "我住在莆田"),
    ("Ich frage für mich selbst: ich bin seit Mai schwanger.", "ich bin seit Mai schwanger"),
    ("I cook for a friend who is blind, and I live next door to him.", "I live next door"),
    ("My colleague asked me where I live: I live in Hull.", "I live in Hull"),
    # The user's own, though it is announced
    ("Here is something about me: I live in Rome", "I live in Rome"),
    ("Some facts about myself:\n- I am vegan\n- I have a twin", "I have a twin"),
    ("Here are a few things you should know:\n1. I work nights\n2. I hate phone calls", "I hate phone calls"),
    ("Improve my CV: I am a baker in Metz and I speak four languages.", "I am a baker in Metz"),
    ("Please polish my bio:\nI teach maths in Porto and I have two sons.", "I have two sons"),
    ("Here is my profile: I am 34, I live in Oulu, I run trails.", "I live in Oulu"),
    ("Check my cover letter. I have worked as a welder since 2009.", "I have worked as a welder since 2009"),
    ("My situation is this: I rent a room in Gent.", "I rent a room in Gent"),
    ("The following is true of me: I can't swim.", "I can't swim"),
    ("To sum up: I have two jobs and no car.", "I have two jobs"),
    ("Translate this: the train is late\n\nMy own trains are always late, I live in Essen.", "I live in Essen"),
    ("Summarise this review:\nI own two.\n\nWhat do you think? I live in a tiny flat.", "I live in a tiny flat"),
    ("Translate 'good night' into Thai. I'm flying to Phuket in May.", "I'm flying to Phuket in May"),
    ('Translate this: "the shop is shut". By the way, I live in Vigo.', "I live in Vigo"),
    ("Explain this to me, I'm a beginner in Rust.", "I'm a beginner in Rust"),
    ("I wrote him this: I moved to Cork.", "I moved to Cork"),
    ("My doctor says I should eat less salt.", "I should eat less salt"),
    ("My wife told me that I snore.", "I snore"),
    ("I keep my diary in a file called notes.txt", "I keep my diary in a file called notes.txt"),
    ("Reminder for you: my flight is on 3 June", "my flight is on 3 June"),
    ("One more thing: I quit my job in Malmö.", "I quit my job in Malmö"),
    ("Good to know: I never eat pork.", "I never eat pork"),
    ("Home address: 12 Mill Lane, I moved in last week.", "I moved in last week"),
    ("关于我：我在大理开客栈", "我在大理开客栈"),
    ("我的情况是这样的：我在青岛上班，老婆在烟台", "我在青岛上班"),
    ("下面是我的基本情况：\n我今年三十四岁\n我吃素", "我吃素"),
    ("帮我润色我的自我介绍：我是一名护士，在青岛工作", "我是一名护士"),
    ("以下是一些关于我自己的事：我不会游泳", "我不会游泳"),
    ("我做翻译，住在重庆", "我做翻译"),
    ("补充一下：我对青霉素过敏", "我对青霉素过敏"),
    ("Zu meiner Person: ich wohne in Ulm und habe Asthma.", "ich wohne in Ulm"),
    ("Verbessere meinen Lebenslauf: Ich arbeite als Koch in Trier.", "Ich arbeite als Koch in Trier"),
    ("Sobre mí: vivo en Cuenca y tengo dos hijos", "vivo en Cuenca"),
    # Beside code and tables
    ("I return to Rome in May", "I return to Rome in May"),
    ("return flight. I land in Faro on 9 May.", "I land in Faro on 9 May"),
    ("INFO: I moved to Leeds", "I moved to Leeds"),
    ("    I live in Rome.\n\n    My wife works in Ostia.", "My wife works in Ostia"),
    ("Return flight: I land in Faro on 9 May.", "I land in Faro on 9 May"),
    ("I print my photos at home and my printer is a Canon.", "my printer is a Canon"),
    ("I'm learning Python.\n```python\nx = 1\n```\nI use it at my lab in Delft.", "I use it at my lab in Delft"),
    ("    I live in Rome", "I live in Rome"),
    ("About my family:\n    - my wife is called Ines\n    - we have a parrot", "my wife is called Ines"),
    ("At 12:04 I take the bus to my office in Bergen.", "I take the bus"),
    ("I drink tea,coffee,and mate", "I drink tea,coffee,and mate"),
    ("I speak English, Thai, Lao\nI eat rice, fish, eggs", "I speak English, Thai, Lao"),
    ("Diet: I am vegan\nHome: I live in Leeds", "I live in Leeds"),
    ("My e-mail is on my own server, I run Debian.", "I run Debian"),
    # Beside jokes
    ("I'm not kidding, I live in a lighthouse.", "I live in a lighthouse"),
    ("No joke, I have seven brothers.", "I have seven brothers"),
    ("Joking aside, I have two left feet and a bad knee.", "I have two left feet"),
    ("My boss is always joking, and I love it.", "I love it"),
    ("I'm the king of Spain. Just kidding, I'm a plumber in Leeds.", "I'm a plumber in Leeds"),
    ("haha yes, I live with five cats", "I live with five cats"),
    ("我老公爱开玩笑，我们住在大连", "我们住在大连"),
    ("不是开玩笑，我有七个兄弟", "我有七个兄弟"),
    ("Kein Scherz, ich habe sieben Brüder.", "ich habe sieben Brüder"),
    ("No es broma, tengo siete hermanos", "tengo siete hermanos"),
    # Beside fiction and play
    ("I'm writing a novel about whales and I live in Nantucket.", "I live in Nantucket"),
    ("My son loves to pretend he is a dragon.", "My son loves to pretend"),
    ("I play the hero in our school's musical.", "I play the hero in our school's musical"),
    ("I told her 'I am vegan' and she laughed.", "I told her"),
    ("My talk 'Slow Rivers' is on 5 June.", "My talk 'Slow Rivers' is on 5 June"),
    ("I can't imagine living without my dog Bo.", "my dog Bo"),
    ("My novel is set in Kyiv, I grew up there.", "I grew up there"),
    ("我写小说，住在海口", "住在海口"),
    ("我妈说我太瘦了", "我太瘦了"),
    ("Ich spiele gern Theater und wohne in Weimar.", "wohne in Weimar"),
]  # fmt: skip


def learnt_by_rules(message: str) -> list[str]:
    return [fact.evidence.quote for fact in verbatim.extract([a_turn("t", text=message)])]


def asked_of_a_small_model(message: str) -> list[str]:
    return [one.fact.evidence.quote for one in proposals([a_turn("t", text=message)], context=())]


def taken_from_a_draft(message: str, quote: str) -> list[str]:
    part = drafting.Part((a_turn("t", text=message),), ())
    return [fact.evidence.quote for fact in drafting.facts_of([drafting.Drafted(quote, quote)], part, made_by="m")]


@pytest.mark.parametrize(("message", "words"), REFUSED)
def test_what_is_not_the_users_own_or_not_meant_is_learnt_by_nobody(message: str, words: str) -> None:
    assert words in message
    for quotes in (learnt_by_rules(message), asked_of_a_small_model(message), taken_from_a_draft(message, words)):
        assert [quote for quote in quotes if words in quote or quote.rstrip(".!?。") in words] == []


@pytest.mark.parametrize(("message", "words"), KEPT)
def test_what_only_looks_like_it_is_learnt(message: str, words: str) -> None:
    assert words in message
    for quotes in (learnt_by_rules(message), asked_of_a_small_model(message), taken_from_a_draft(message, words)):
        assert any(words in quote for quote in quotes), quotes
