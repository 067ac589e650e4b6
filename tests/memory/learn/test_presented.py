"""Text that a user presents is not what they say; what announces themselves, and their own portrait, is."""

from __future__ import annotations

import pytest
from taken_words import assert_learnt_by_all, assert_learnt_by_nobody

# (the message, words in it that must not be learnt)
REFUSED = [
    # Text of others, or to be worked on
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
    ("Here's what my ex sent me:\n\nI met someone in Oslo and I'm moving there.", "I met someone in Oslo"),
    ("See the message below.\n\nI can't come on Friday, I broke my leg.", "I broke my leg"),
    ("What do you think of this poem?\nI live among the reeds\nI drink the rain", "I live among the reeds"),
    (
        "Please analyse this cover letter from a candidate:\nI have managed teams of 20 in Zurich.",
        "I have managed teams",
    ),
    ("Reply to this mail: I would like to cancel my subscription, my number is 5531.", "my number is 5531"),
    ("Paraphrase: I have been a nurse since 1999.", "I have been a nurse"),
    ("Make this sound formal: I moved to Ghent and I need a parking permit.", "I moved to Ghent"),
    ("Turn this into a haiku: my cat sleeps on my keyboard", "my cat sleeps on my keyboard"),
    ('Is the grammar ok? "I have went to Paris and I liked it."', "I have went to Paris"),
    ("Grammar check please: I has two brother.", "I has two brother"),
    ("Translate to Chinese\nI am allergic to shellfish and I live in Macau", "I am allergic to shellfish"),
    ("into Spanish please: I work at the harbour", "I work at the harbour"),
    ("How to write in French: I love my dog Rex", "I love my dog Rex"),
    ("Message from Petra: I am in hospital in Linz until Monday", "I am in hospital in Linz"),
    ("Email from my boss:\nI am leaving the company in June", "I am leaving the company"),
    ("Anna: I moved to Riga\nBen: great, I live there too\nAnna: my flat is tiny", "I moved to Riga"),
    ('He told me "I never loved my job" yesterday', "I never loved my job"),
    ("Quote: 'I have a dream that one day my four children will live free.'", "I have a dream"),
    ("下面是客户发来的邮件：\n我六月离职，请联系小王", "我六月离职"),
    ("把下面的话改得正式一点：我搬到苏州了，想办停车证", "我搬到苏州了"),
    ("英文怎么说：我对花生过敏", "我对花生过敏"),
    ("改错：我昨天去了北京大学学习", "我昨天去了北京大学学习"),
    ("他说：“我离婚了，现在一个人住。”", "我离婚了"),
    ("写一篇日记，开头是：我今天第一次当爸爸", "我今天第一次当爸爸"),
    ("Bitte korrigiere: Ich habe gestern nach Berlin gefahren.", "Ich habe gestern nach Berlin gefahren"),
    ("Hier ist die Mail meiner Schwester: Ich ziehe im Mai nach Bonn.", "Ich ziehe im Mai nach Bonn"),
    ("Corrige este texto: Yo tengo dos hermano en Lima.", "Yo tengo dos hermano"),
    ("Mi amigo dice: tengo una casa en Cuenca", "tengo una casa en Cuenca"),
]

# (the message, words in it that must be learnt)
KEPT = [
    # What only looks announced, and what is said after it
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
    ("This is about me: I have asthma.", "I have asthma"),
    ("Here's my schedule: I swim on Mondays, I row on Fridays.", "I swim on Mondays"),
    ("Here is my address: 12 Mill Lane, Bath. I moved in May.", "I moved in May"),
    ("Here are my allergies: nuts, and I can't stand dust.", "I can't stand dust"),
    ("This is my first message, I'm Leo and I work at a zoo.", "I work at a zoo"),
    ("Review my budget, I earn 2,400 and pay 900 rent.", "I earn 2,400"),
    ("Answer briefly. I have a meeting with Ana at 3.", "I have a meeting with Ana at 3"),
    ("Correct: I live in Hull.", "I live in Hull"),
    ("Correction: my flight is on the 9th.", "my flight is on the 9th"),
    ("Note: I don't eat meat.", "I don't eat meat"),
    ("Context: I'm a dentist in Lyon.", "I'm a dentist in Lyon"),
    ("Background: I run a small farm near Cork.", "I run a small farm"),
    ("Update: I sold the boat.", "I sold the boat"),
    ("Question: I have two cats, can I keep a hamster?", "I have two cats"),
    ("Q: I have two cats, can they eat tuna?", "I have two cats"),
    ("My story: I left home at 16 and I never went back.", "I left home at 16"),
    ("My plan says: I run on Tuesdays.", "I run on Tuesdays"),
    ("My girlfriend sent me this photo, I love her dog Bo.", "I love her dog Bo"),
    ("My sister wrote a book, I have three copies.", "I have three copies"),
    ("My brother asked for my recipe: I use rye flour.", "I use rye flour"),
    ("Ana said yes! I am getting married in June.", "I am getting married in June"),
    ("说明一下：我不吃辣", "我不吃辣"),
    ("更正：我的航班是九号", "我的航班是九号"),
    ("我翻译过三本小说，现在住在青岛", "现在住在青岛"),
    ("我负责文章审核，公司在苏州", "公司在苏州"),
    ("给房东发条消息：我下周三搬走", "我下周三搬走"),
    ("跟我妈说：我周日回家吃饭", "我周日回家吃饭"),
]


@pytest.mark.parametrize(("message", "words"), REFUSED)
def test_a_text_that_is_presented_is_learnt_by_nobody(message: str, words: str) -> None:
    assert_learnt_by_nobody(message, words)


@pytest.mark.parametrize(("message", "words"), KEPT)
def test_what_users_announce_of_themselves_or_say_beside_a_text_is_learnt(message: str, words: str) -> None:
    assert_learnt_by_all(message, words)
