"""What users say and do not mean of themselves is not learnt: examples, suppositions, jokes, fiction, errands."""

from __future__ import annotations

import pytest
from taken_words import assert_learnt_by_all, assert_learnt_by_nobody, kept
from turn_logs import a_turn

from memory.learn.llm import drafting
from memory.learn.statements import verbatim
from memory.learn.statements.candidates import proposals

# (the message, words in it that must not be learnt)
REFUSED = [
    # Examples and suppositions
    ("Say you earn 5k and I earn 3k, who pays more tax?", "I earn 3k"),
    ("Example: I run a shop with two employees. What insurance?", "I run a shop"),
    ("Consider the following situation: I lent my neighbour 500 euros and he moved away.", "I lent my neighbour"),
    ("What if my landlord sells the flat and I have a dog?", "I have a dog"),
    ("Scenario: I'm stuck in an elevator in Tokyo.", "I'm stuck in an elevator"),
    ("Hypothetical question. I have a twin who commits a crime. What happens?", "I have a twin"),
    ("In theory, I own 30% of the company, so how many votes?", "I own 30%"),
    ("好比我有两套房，要交多少税", "我有两套房"),
    ("Mal angenommen ich hätte zwei Häuser in Köln.", "ich hätte zwei Häuser"),
    ("Supón que tengo tres pisos en Madrid.", "tengo tres pisos"),
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
    ("e.g. I have a mortgage of 200k and two kids", "I have a mortgage"),
    ("To give an example, my monthly rent is 1,100 and I earn 2,900.", "my monthly rent is 1,100"),
    ("Let me give you an example: I own a bakery with three ovens.", "I own a bakery"),
    ("Explain inheritance tax. Say my father leaves me a house in Leeds.", "my father leaves me a house"),
    ("Imagine you are my lawyer and I was hit by a bus.", "I was hit by a bus"),
    ("Let's imagine I'm a teacher in Oslo with 20 pupils.", "I'm a teacher in Oslo"),
    ("In a hypothetical scenario, I was fired from Siemens.", "I was fired from Siemens"),
    ("Picture this: I'm alone on a boat and my phone is dead.", "I'm alone on a boat"),
    ("how would one calculate BMI, for example I weigh 80 kg and I'm 1.80 tall", "I weigh 80 kg"),
    ("Let's pretend my name is Rosa. I am a spy.", "I am a spy"),
    ("Purely hypothetical: my wife leaves me and takes the house.", "my wife leaves me"),
    ("例如我每月还贷五千，收入一万", "我每月还贷五千"),
    ("打个比方，我开了一家餐馆", "我开了一家餐馆"),
    ("如果说我有两百万，怎么投资", "我有两百万"),
    ("Nehmen wir an, ich habe eine Firma in Zug und zahle Steuern.", "ich habe eine Firma"),
    ("Stell dir vor, ich wohne auf dem Mars.", "ich wohne auf dem Mars"),
    ("Imagina que soy médico y vivo en Lugo.", "soy médico"),
    # On behalf of somebody
    ("my buddy asked me to ask: I got fired last week, am I owed money?", "I got fired"),
    ("Question from my aunt: I have cataracts, can I fly?", "I have cataracts"),
    ("My mate's question: I crashed my bike in Leeds, who pays?", "I crashed my bike"),
    ("同事让我问，我血压高能喝酒吗", "我血压高"),
    ("asking for a friend, I'm pregnant and can't sleep", "I'm pregnant"),
    ("Asking for a colleague: I have gout, may I eat lentils?", "I have gout"),
    ("I drank wine in week six of my pregnancy. Is that bad? Asking for a friend.", "I drank wine in week six"),
    ("This is for my neighbour, who wants to know: I have a metal hip, can I get an MRI?", "I have a metal hip"),
    ("My cousin asks: I failed my driving test twice, what now?", "I failed my driving test twice"),
    ("帮朋友问的，我怀孕了，能坐飞机吗", "我怀孕了"),
    ("替同事问一下：我有高血压，能献血吗", "我有高血压"),
    ("Ich frage für eine Freundin: ich bin im dritten Monat schwanger", "ich bin im dritten Monat schwanger"),
    ("Pregunto por un amigo: tengo hepatitis desde enero", "tengo hepatitis desde enero"),
    ("asking 4 a friend: I think I have herpes", "I think I have herpes"),
    ("A friend of mine wants to know: I lost my passport in Rome, where do I go?", "I lost my passport"),
    ("My sister wants me to ask you this: I'm 8 weeks pregnant, can I dye my hair?", "I'm 8 weeks pregnant"),
    ("This isn't about me, but I have a rash on my arm, what is it?", "I have a rash"),
    ("I ask for my uncle. I have diabetes and I love cake.", "I have diabetes"),
    ("我朋友想问：我对海鲜过敏能打疫苗吗", "我对海鲜过敏"),
    ("不是我，是我同事，他说我腰疼三个月了", "我腰疼三个月了"),
    ("替我表妹咨询：我怀孕八周了能不能染发", "我怀孕八周了"),
    ("Ich frage für einen Kumpel: ich habe Tripper", "ich habe Tripper"),
    ("Es para una amiga: estoy embarazada de tres meses", "estoy embarazada de tres meses"),
    # Jokes that are taken back
    ("I'm married to a dolphin. ok no, just kidding", "I'm married to a dolphin"),
    ("I speak 50 languages (lol, jk)", "I speak 50 languages"),
    ("I won the Nobel prize haha, not really", "I won the Nobel prize"),
    ("I'm 300 years old. That was a joke.", "I'm 300 years old"),
    ("我已经退休两百年了，哈哈逗你的", "我已经退休两百年了"),
    ("I'm the king of Spain, haha just kidding", "I'm the king of Spain"),
    ("I have forty cats. lol jk", "I have forty cats"),
    ("My father is the pope. Only joking!", "My father is the pope"),
    ("我是外星人，开玩笑的", "我是外星人"),
    ("我中了五百万。逗你玩的。", "我中了五百万"),
    ("Ich bin der Kaiser von China. War nur ein Scherz.", "Ich bin der Kaiser von China"),
    ("Tengo diez mansiones, es broma", "Tengo diez mansiones"),
    ("I'm a millionaire (just kidding)", "I'm a millionaire"),
    ("my husband is Brad Pitt lol just joking", "my husband is Brad Pitt"),
    ("I live on the moon. Kidding!", "I live on the moon"),
    ("I ate 40 pizzas today, nah just messing with you", "I ate 40 pizzas"),
    ("I have 12 wives 😂 jk", "I have 12 wives"),
    ("我是皇帝，哈哈开个玩笑", "我是皇帝"),
    ("我有一百套房，骗你的", "我有一百套房"),
    # Fiction, play, exercises, and what others are heard to say
    ("Sentiment of 'I love my new job at Acme'?", "I love my new job"),
    ('Which tense is "I have lived in Oslo for years"?', "I have lived in Oslo"),
    ('Her profile says "I live in Berlin and I love dogs".', "I live in Berlin"),
    ("Continue the story: I woke up in Lisbon and my arm was gone.", "I woke up in Lisbon"),
    ("Act like I'm the king and my name is Otto.", "my name is Otto"),
    ("In this game I am a thief and I have 20 gold.", "I have 20 gold"),
    ('The hero of my film says "I lost my son in Kyiv".', "I lost my son"),
    ("用日语怎么说“我住在横滨”", "我住在横滨"),
    ("小明说：“我家有三只猫。”", "我家有三只猫"),
    ("Was heißt 'ich habe Hunger' auf Thai?", "ich habe Hunger"),
    ("¿Cómo se dice 'tengo dos hijos' en alemán?", "tengo dos hijos"),
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
    ("Write a story in which I am a dragon rider from Bern.", "I am a dragon rider"),
    ("Write in first person: I am Napoleon and my army is cold.", "I am Napoleon"),
    ("In the film the girl says: I lost my brother in the war.", "I lost my brother"),
    ("My character Mira says she grew up on a farm and I hate farms.", "I hate farms"),
    ("We do a role play: I am the customer, I bought a broken toaster.", "I bought a broken toaster"),
    ("Fill in the gaps: I ___ in Rome. I have ___ sisters. My name is ___.", "I have ___ sisters"),
    ("我们来角色扮演，我是病人，我头疼三天了", "我头疼三天了"),
]

# (the message, words in it that must be learnt)
KEPT = [
    # Beside examples and suppositions
    ("I'm flexible; say, I could start on 3 May.", "I'm flexible"),
    ("As I said, I work at Volvo.", "I work at Volvo"),
    ("Like I told you, my son is called Ben.", "my son is called Ben"),
    ("I imagine my mother Rosa will visit in June.", "my mother Rosa will visit in June"),
    ("Imagine! I got into Oxford!", "I got into Oxford"),
    ("I pretend to like my aunt's cooking, I'm a vegetarian.", "I'm a vegetarian"),
    ("例子很多，我女儿就对牛奶过敏", "我女儿就对牛奶过敏"),
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
    ("Example sentences help me most when I learn Dutch.", "I learn Dutch"),
    ("I play instruments, for instance my father's old cello.", "I play instruments"),
    ("We have pets: for example my parrot Coco, who is 12.", "my parrot Coco"),
    ("I take my tea with milk, e.g. in the morning.", "I take my tea with milk"),
    ("Suppose so. I work at the post office anyway.", "I work at the post office"),
    ("Assuming nothing changes, I retire in 2031.", "I retire in 2031"),
    ("My boss assumes that I live in Bath.", "I live in Bath"),
    ("I would say I am a calm person, my kids disagree.", "my kids disagree"),
    ("假期我要去三亚", "假期我要去三亚"),
    ("我假期住在我妈家", "我假期住在我妈家"),
    ("比起咖啡我更喜欢茶", "我更喜欢茶"),
    ("我这个人比如喜欢安静，怕吵", "怕吵"),
    # Beside what is asked for others
    ("I hope you don't mind me asking, I'm 70 and new to this.", "I'm 70"),
    ("I'm asking because my daughter Mia is starting school.", "my daughter Mia is starting school"),
    ("Asking for advice: I have 20k in debt.", "I have 20k in debt"),
    ("I'm asking on my own behalf: I have gout.", "I have gout"),
    ("朋友问我要不要去，我周六要加班", "我周六要加班"),
    ("帮我看看，我腰疼三天了", "我腰疼三天了"),
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
    ("My doctor told me: no salt! I hate it.", "My doctor told me: no salt"),
    ("My mother always said I was born to teach.", "I was born to teach"),
    ("My friend Tom and I run a cafe in Bristol.", "I run a cafe in Bristol"),
    ("I have a friend who is a nurse and I trust her.", "I trust her"),
    ("我朋友说他要结婚了，我要当伴郎", "我要当伴郎"),
    ("我同事小李住院了，我替他上班", "我替他上班"),
    ("我姐说我该减肥了", "我姐说我该减肥了"),
    ("Ich wohne in Bonn, mein Bruder meint, das sei zu weit.", "Ich wohne in Bonn"),
    ("Mein Arzt sagt, ich habe Asthma.", "ich habe Asthma"),
    ("Mi jefe dice que trabajo demasiado en el hospital.", "trabajo demasiado"),
    # Beside jokes
    ("Just kidding aside, I do have three ferrets.", "I do have three ferrets"),
    ("jk Rowling is my favourite author, I have all seven books", "I have all seven books"),
    ("haha my dog Bo ate my shoes", "my dog Bo ate my shoes"),
    ("I was just kidding, but I really do live on a boat.", "I really do live on a boat"),
    ("我开玩笑说要辞职，其实我下个月升职", "我下个月升职"),
    ("I'm not kidding, I live in a lighthouse.", "I live in a lighthouse"),
    ("No joke, I have seven brothers.", "I have seven brothers"),
    ("Joking aside, I have two left feet and a bad knee.", "I have two left feet"),
    ("My boss is always joking, and I envy him.", "I envy him"),
    ("I'm the king of Spain. Just kidding, I'm a plumber in Leeds.", "I'm a plumber in Leeds"),
    ("haha yes, I live with five cats", "I live with five cats"),
    ("我老公爱开玩笑，我们住在大连", "我们住在大连"),
    ("不是开玩笑，我有七个兄弟", "我有七个兄弟"),
    ("Kein Scherz, ich habe sieben Brüder.", "ich habe sieben Brüder"),
    ("No es broma, tengo siete hermanos", "tengo siete hermanos"),
    ("I love jokes, my best friend is a comedian.", "my best friend is a comedian"),
    ("That's a joke my dad Karl always tells.", "my dad Karl"),
    ("lol I live in a town called Boring", "I live in a town called Boring"),
    # Beside fiction and play
    ("I have to translate for my grandmother Olga, she speaks only Russian.", "she speaks only Russian"),
    ("What does that mean for me? I have type 2 diabetes.", "I have type 2 diabetes"),
    ("What does 'net' mean on my payslip? I earn 2,300 net.", "I earn 2,300 net"),
    ("How do I say goodbye at my office? I leave Acme on Friday.", "I leave Acme on Friday"),
    ("My character is stubborn, my wife says.", "my wife says"),
    ("In my story about last summer I forgot: we also saw Faro.", "we also saw Faro"),
    ("我写的小说在起点连载，每天更新两章", "每天更新两章"),
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
    ("I play Hamlet in June at our theatre.", "I play Hamlet in June"),
    ("I write novels and my publisher is in Graz.", "my publisher is in Graz"),
    ("My favourite character is Frodo and I own the box set.", "I own the box set"),
    ("In my book club we read Woolf, I host it on Fridays.", "I host it on Fridays"),
    ("In my game room I have a pool table.", "I have a pool table"),
    ("I translate novels into Dutch for a living.", "I translate novels into Dutch"),
    ("I need to translate my diploma into German because I move to Ulm in May.", "I move to Ulm in May"),
    ("My French is bad, I can only say 'bonjour'.", "My French is bad"),
    ("They call me 'Mr. Rain' at my office.", "They call me 'Mr. Rain'"),
    ("我在写论文，题目是海洋污染", "我在写论文"),
    ("Vivo en Lugo y escribo novelas.", "Vivo en Lugo"),
]


@pytest.mark.parametrize(("message", "words"), REFUSED)
def test_what_is_not_meant_is_learnt_by_nobody(message: str, words: str) -> None:
    assert_learnt_by_nobody(message, words)


@pytest.mark.parametrize(("message", "words"), KEPT)
def test_what_only_looks_like_it_is_learnt(message: str, words: str) -> None:
    assert_learnt_by_all(message, words)


@pytest.mark.parametrize(
    "text",
    [
        "hm, if I were rich I'd just hire a chef",
        "If I lived in Tokyo I'd eat ramen every day lol",
        "Wenn ich reich wäre, würde ich sofort kündigen",
        "给我讲个笑话，假如我是秦始皇，你怎么称呼我",
        "再口语一点",
        "把这句翻成英文：我妈妈住在苏州，退休前是护士。",
    ],
)
def test_nothing_of_it_is_kept(text: str) -> None:
    assert kept(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "If I eat peanuts I end up in hospital.",
        "If it rains I take the bus to work.",
        "如果下雨，我就坐地铁上班",
        "我每天再忙也要跑步",
    ],
)
def test_what_holds_under_a_condition_is_kept(text: str) -> None:
    assert kept(text) != []


@pytest.mark.parametrize(
    ("said", "then", "learnt"),
    [
        ("I have a dog. I'm the king of Spain.", "haha just kidding", ["I have a dog."]),
        ("I own the moon. Can I sell it?", "jk, I own a caravan", ["I own a caravan"]),
        ("我是外星人", "哈哈，开玩笑的", []),
        ("Ich bin der Papst", "war nur ein Scherz", []),
        ("I have a dog", "my uncle was only joking", ["I have a dog", "my uncle was only joking"]),
        ("I have a dog", "I'm not kidding, he is three metres long", ["I have a dog"]),
    ],
)
def test_a_joke_may_be_taken_back_in_the_next_message(said: str, then: str, learnt: list[str]) -> None:
    turns = [a_turn("t1", text=said, at=1.0), a_turn("t2", text=then, at=2.0)]
    drafts = [drafting.Drafted(quote, quote) for quote in (said, *learnt)]
    by_rules = [fact.evidence.quote for fact in verbatim.extract(turns)]
    assert [quote for quote in by_rules if quote in learnt] == learnt
    assert [quote for quote in by_rules if quote in said and quote not in learnt] == []
    asked = [one.fact.evidence.quote for one in proposals(turns, context=())]
    assert [quote for quote in asked if quote in said and quote not in learnt] == []
    part = drafting.Part(tuple(turns), ())
    written = {fact.evidence.quote for fact in drafting.facts_of(drafts, part, made_by="a model")}
    assert written == set(learnt)


@pytest.mark.parametrize(
    "text", ["Suppose I win. Remember that I own a kiln. What then?", "Asking for a friend. Remember: I own a kiln"]
)
def test_what_is_asked_to_be_remembered_is_meant_whatever_stands_around_it(text: str) -> None:
    assert [content.rstrip(".") for content in kept(text)] == ["I own a kiln"]
