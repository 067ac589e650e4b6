"""The words that the rules of learning go by: pronouns, questions, requests, courtesies, lasting wishes.

English and Chinese first, German and Spanish reasonably, a little of the first person elsewhere. Only patterns, no
decisions: those stand in `salience`, `gate` and `supersession`. Every pattern runs in time linear in its text.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh", "de", "es", "other"]


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'’])(?:{'|'.join(alternatives)})(?![\w'’])", re.IGNORECASE)


def _start(*alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"\s*(?:{'|'.join(alternatives)})", re.IGNORECASE)


_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_IDEOGRAPHS = re.compile(r"[\u3400-\u9fff]")
_STOP_WORDS = {
    "en": _words(
        *"the a an is are was of in to and my i i'm it you for on with at that this have we our she he they not no "
        "but so me your be from by or what how please im ive".split()
    ),
    "de": _words(
        *"der die das ist und ich mein meine mir mich wir nicht ein eine einen im am zu mit für auf von den dem bei "
        "sind habe hat aber auch wie was bitte uns unser unsere".split()
    ),
    "es": _words(
        *"el la los las es y mi mis yo de que en un una por para con no se me nos lo al del soy tengo está son pero "
        "como muy su qué".split()
    ),
    "other": _words(
        *"je j'ai j'habite suis mon ma mes nous notre et dans avec pas une io ho sono mio mia abbiamo il gli che non è "
        "eu meu minha tenho moro sou não em um ik mijn woon een het".split()
    ),
}


_ONLY_GERMAN = re.compile(r"\b(?:ich|wir|mein\w*|unser\w*)\b", re.IGNORECASE)  # "in" is English as well


def language_of(text: str) -> Language:
    """The language of a sentence, by script and small words; "en" where nothing speaks for another."""
    if _KANA_OR_HANGUL.search(text):
        return "other"
    letters = sum(c.isalpha() for c in text)
    if letters and len(_IDEOGRAPHS.findall(text)) * 5 >= letters:
        return "zh"
    if any(c.isalpha() and ord(c) > 0x36F for c in text):
        return "other"
    hits = {language: len(pattern.findall(text)) for language, pattern in _STOP_WORDS.items()}
    if hits["other"] > max(hits["en"], hits["de"], hits["es"]):
        return "other"
    is_german = _ONLY_GERMAN.search(text) is not None and hits["de"] >= hits["en"]
    if (hits["de"] > hits["en"] or is_german) and hits["de"] >= hits["es"]:
        return "de"
    if hits["es"] > hits["en"]:
        return "es"
    return "en"


FIRST_PERSON: dict[Language, re.Pattern[str]] = {
    "en": _words(
        "i(?:['’](?:m|ve|d|ll))?", "im", "ive", "my", "mine", "myself", "me", "we(?:['’](?:re|ve|ll|d))?", "ours?", "us"
    ),
    "zh": re.compile("我|咱|俺|本人"),
    "de": _words("ich", "mein\\w{0,2}", "mir", "mich", "wir", "uns", "unser\\w{0,2}"),
    "es": _words(
        "yo", "mis?", "mí", "m[ií][oa]s?", "me", "conmigo", "nos", "nosotr[oa]s", "nuestr[oa]s?", "soy", "somos",
        "estoy", "tengo",
        "vivo", "trabajo", "voy", "prefiero", "necesito", "quiero", "puedo", "he", "hago", "uso", "suelo", "como",
        "llevo", "estudio", "juego", "odio", "sé", "bebo", "conduzco", "tomo", "viajo", "corro", "aprendo", "duermo",
        "\\w{2,}(?:amos|emos|imos)", "compré", "vendí", "dejé", "empecé", "cambié", "tuve", "fui", "estaba", "tenía",
    ),
    "other": _words(
        "je", "j['’]\\w+", "mon", "ma", "mes", "moi", "nous", "notre", "nos", "io", "mi[oae]", "miei", "ho", "sono",
        "noi", "nostr[oaie]", "eu", "meus?", "minhas?", "nós", "nossos?", "nossas?", "ik", "mijn", "wij", "onze", "я",
        "мой", "моя", "моё", "мои", "мне", "меня", "мы", "наш\\w{0,2}", "i(?:['’]m)?", "my", "mi", "ich", "mein",
        "jag", "min", "mitt", "mina", "jeg", "mit", "mine",
    ),
}  # fmt: skip
FIRST_PERSON_UNSPACED = re.compile("私|僕|俺|わたし|ぼく|나는|내가|저는|제가|우리|저의|제 ")

RELATIONS = _words(
    "wife", "husband", "partner", "girlfriend", "boyfriend", "fianc[ée]e?", "spouse", "ex", "sons?", "daughters?",
    "kids?", "child(?:ren)?", "twins?", "baby", "mother", "mom", "mum", "father", "dad", "parents?", "brothers?",
    "sisters?", "siblings?", "cousins?", "uncle", "aunt", "niece", "nephew", "grand(?:ma|pa|mother|father|parents)",
    "friends?", "colleagues?", "boss", "manager", "landlord", "landlady", "neighbou?rs?", "roommate", "flatmate",
    "dogs?", "cats?", "kitten", "puppy", "horse", "rabbit", "parrot",
    "frau", "mann", "sohn", "tochter", "kinder", "kind", "mutter", "vater", "eltern", "bruder", "schwester", "chefin",
    "chef", "freundin", "freund", "kolleg(?:e|in)", "hund", "katze", "vermieter(?:in)?",
    "mujer", "marido", "esposa", "esposo", "novi[oa]", "hij[oa]s?", "madre", "padre", "padres", "herman[oa]s?",
        "jef[ea]",
    "amig[oa]s?", "prim[oa]", "perr[oa]", "gat[oa]", "abuel[oa]",
)  # fmt: skip
RELATIONS_ZH = re.compile(
    "老婆|老公|妻子|丈夫|太太|爱人|对象|女朋友|男朋友|女儿|儿子|闺女|孩子|宝宝|爸妈|爸|妈|父亲|母亲|父母|哥哥|姐姐|弟弟|"
    "妹妹|妹|爷爷|奶奶|外公|外婆|岳父|岳母|公公|婆婆|媳妇|女婿|孙子|孙女|外孙|侄子|侄女|外甥|[表堂][哥姐弟妹]|"
    "老板|组长|经理|领导|同事|朋友|室友|房东|老师|狗|猫"
)
# "My wife is French", "my boss is German": what somebody is, and no name.
NATIONALITY = re.compile(
    r"(?:english|irish|scottish|welsh|british|spanish|swedish|finnish|danish|polish|turkish|jewish|flemish|kurdish|"
    r"french|"
    r"german|dutch|greek|swiss|czech|thai|chinese|japanese|portuguese|vietnamese|american|canadian|mexican|brazilian|"
    r"italian|russian|ukrainian|norwegian|austrian|australian|belgian|hungarian|romanian|bulgarian|indian|iranian|"
    r"korean|"
    r"african|asian|european|catholic|muslim|christian|israeli|pakistani|deutsch\w*|spanier\w*|español\w*|alemán|"
    r"alemana)\b",
    re.IGNORECASE,
)
CITIES_ZH = re.compile(
    "北京|上海|天津|重庆|广州|深圳|杭州|南京|苏州|成都|武汉|西安|长沙|郑州|青岛|济南|大连|沈阳|哈尔滨|长春|宁波|厦门|福州|泉州|"
    "合肥|南昌|昆明|贵阳|南宁|海口|三亚|兰州|西宁|银川|太原|石家庄|呼和浩特|乌鲁木齐|拉萨|无锡|常州|徐州|扬州|南通|嘉兴|绍兴|"
    "温州|金华|台州|东莞|佛山|珠海|中山|惠州|汕头|烟台|威海|潍坊|洛阳|开封|宜昌|襄阳|绵阳|桂林|柳州|大理|丽江|保定|唐山|廊坊|"
    "香港|澳门|台北|高雄|新加坡|东京|大阪|首尔|伦敦|巴黎|柏林|慕尼黑|纽约|洛杉矶|旧金山|西雅图|波士顿|多伦多|温哥华|悉尼|墨尔本"
)
HOUSEHOLD_ZH = re.compile("公司|家里|老家|家人|单位|学校|机房|车牌|预产期")
THIRD_PERSON_ZH = re.compile("[她他]")

# A question without its mark. English "when I …", "what I like is …" tell something, hence the look-ahead.
QUESTION_START: dict[Language, re.Pattern[str]] = {
    "en": _start(
        r"(?:what|how|why|who|where|when|which|whose)(?:['’]s|['’]re|['’]d)?\b(?!\s+(?:i|we|my|our|it comes)\b)",
        r"(?:what|how|why|where|when|which)\s+(?:\w+\s+)?(?:do|does|did|is|are|can|could|should|would|will)\b",
        r"(?:is|are|does|did|could|would|should|shall)(?:n['’]?t)?\s",
        r"(?:was|were|do|can|may|am)(?:n?['’]?t)?\s+"
        r"(?:i|you|we|he|she|it|they|there|this|that|these|those|the|a|an|any|my|our|your|one|anyone)\b",
        r"(?:has|have|had)(?:n['’]?t)?\s+(?:i|you|we|he|she|it|they|there|this|that|these|those|your|anyone)\b",
        r"will\s+(?:i|you|we|he|she|it|they|there|this|that|the|my)\b",
        r"(?:any|some)\s+(?:idea|ideas|tips?|suggestions?|advice|thoughts|recommendations?)\b",
        r"(?:i\s+)?(?:wonder(?:ing)?|was wondering|am wondering|'m wondering)\s+(?:if|whether|what|how|why|who|"
        r"where)\b",
        r"remember\s+(?:when|how|what|who|my\s+\w+\s*\?)",
        r"(?:and|or|but)\s+(?:on|in|at|for|the|what|how|which|if)\b[^,.]{0,30}\?",
    ),
    "de": _start(
        r"(?:was|wie|warum|wieso|wer|wen|wem|wo|wohin|woher|wann|welche[rsnm]?|wie ?viele?)\b(?!\s+(?:ich|wir|mir)\b)",
        r"(?:kannst|könntest|können|würdest|hast|bist|ist|sind|gibt|soll|darf|weißt|kennst|magst)\s+"
        r"(?:du|sie|ich|wir|es|das|der|die|ein)\b",
    ),
    "es": _start(r"¿", r"(?:qué|cómo|cuál|cuáles|cuándo|dónde|quién|cuánt[oa]s?|por qué)\b"),
    "zh": re.compile(r"(?!)"),
    "other": re.compile(r"\s*[¿]"),
}
QUESTION_ZH = re.compile(
    r"(?<![没不])(?:什么(?!都|也)|怎么(?!都|也)|为什么|为啥|咋|如何|哪(?!怕|儿都|里都|天都)|多少|"
    r"几(?=[点个时号岁天位次件条月]|$)|是不是|能不能|"
    r"可不可以|要不要|有没有|好不好|行不行|会不会|该不该|谁(?!都|也))|(?:吗|呢|么|嘛)[？?。！!~～\s]*$|"
    r"还是.{1,12}好[？?]?$"
)
QUESTION_ZH_DENIED = re.compile("不知道|不清楚|没想好|无论|不管|不记得|不论|忘了")

_VERBS_EN = (
    "write|rewrite|fix|make|give|tell|show|explain|summari[sz]e|translate|suggest|recommend|find|book|plan|help|draft|"
    "create|list|calculate|compute|convert|proofread|tidy|decode|search|check|compare|describe|define|generate|build|"
    "design|implement|add|remove|delete|change|update|edit|correct|improve|shorten|expand|continue|repeat|reply|answer|"
    "respond|send|order|buy|pay|play|open|turn|set|start|run|test|debug|refactor|review|rate|sort|format|print|count|"
    "look|use|try|pick|choose|name|guess|imagine|pretend|act|prepare|organi[sz]e|schedule|remind|cancel|read|solve|"
    "prove|analy[sz]e|outline|brainstorm|paraphrase|classify|extract|complete|finish|go|keep|put|take|let|ask|do|"
    "don['’]?t|stop|avoid|include|call|address|speak|talk|think|consider|ignore|forget|discuss|teach|quiz|wish|invent"
)
REQUEST_START: dict[Language, re.Pattern[str]] = {
    "en": _start(
        r"(?:please|pls|plz|kindly)\b(?!\s+(?:remember|note|keep in mind))",
        r"(?:can|could|would|will)\s+you\b",
        rf"(?:now\s+|then\s+|just\s+|also\s+|quickly\s+)?(?:{_VERBS_EN})\s+(?!(?:is|are|was|were|has|went|"
        rf"to\s+me\b)\b)\S",
        r"(?:i|we)(?:['’]d| would)?\s+(?:want|need|like)\s+(?:you\s+to|your\s+(?:help|advice|opinion)|help\b)",
        r"(?:i|we)(?:['’]d| would)?\s+(?:want|need|like)\s+(?:an?|some|the|another|more)\s+(?:\w+\s+)?"
        r"(?:recipe|summary|list|example|explanation|answer|translation|poem|story|script|function|table|draft|idea|"
        r"ideas|"
        r"suggestions?|advice|tips?|help|information|info|recommendations?|plan|checklist|outline|email|letter)\b",
        r"(?:i\s+)?need\s+(?:an?|some|the|more)\s", r"(?:now\s+)?in\s+[A-Z]\w+\s*$",
        r"i(?:['’]m| am)\s+looking\s+for\s+(?:an?|some|the)\s",
        r"let['’]s\b", r"let me\b", r"more\b", r"another\b", r"(?:now\s+)?(?:the\s+)?same\s+(?:again|for|in|with|"
        r"but)\b", r"how about\b", r"what about\b",
        r"(?:in\s+)?(?:one|two|three|four|five|\d+)\s+(?:sentences?|words?|lines?|bullets?|paragraphs?)\b",
    ),
    "de": _start(
        r"bitte\b(?!\s+merk)",
        r"(?:vergiss|lösch\w*)\b(?!\s+nicht)",
        r"(?:schreib|erklär|gib|zeig|mach|such|find|nenn|hilf|übersetz|fass|erstell|sag|plan|empfiehl|rechne|prüf|"
        r"vergleich)"
        r"e?\b(?!\s+ich\b)",
        r"ich\s+(?:brauche|hätte gern|möchte)\s+(?:bitte\s+)?(?:eine?n?|deine)\s+(?:hilfe|rat|zusammenfassung|liste|"
        r"rezept|idee)",
    ),
    "es": _start(
        r"(?:por favor|porfa)\b",
        r"(?:olvida|borra)\w{0,4}\b",
        r"(?:escr[ií]be|prep[aá]ra|haz|pon|cu[eé]nta|expl[ií]ca|mu[eé]stra|trad[uú]ce|res[uú]me|d[aá]|d[ií]|"
        r"b[uú]sca)(?:me|nos)(?:l[aeo]s?)?\b",
        r"(?:escribe|explica|dame|dime|muestra|haz|busca|encuentra|traduce|resume|recomienda|ayúdame|ayuda|corrige|"
        r"crea|calcula|"
        r"compara|sugiere|redacta|organiza|revisa|puedes|podrías)\w{0,4}\b",
    ),
    "zh": re.compile(
        r"\s*(?:请(?!记|永远记|问我)|麻烦|帮(?:我|忙|一下)?|给我(?!的)|替我|告诉|提醒我|推荐(?!.{0,12}(?:时|"
        r"的时候))|翻译|总结|概括|解释|"
        r"介绍|查(?:一下|下|查|询)|搜|找(?:一下|个|找)|写(?:一|个|篇|封|段)|生成|列(?:出|一)|做(?:个|一)|画|改(?:成|"
        r"一下|得)|润色|"
        r"把.{1,30}(?:改|换|转|翻译|润色|写|做|删|列|发|整理)|用(?:表格|中文|英文|一句|列表|代码)|再(?:来|给|写|短|"
        r"长|正式|简)|"
        r"换(?:个|一)|别(?!人|名|墅|的)|不用(?!.*我)|继续|重(?:写|新|来)|讲(?:个|一|讲)|说说|设计|规划|制定|"
        r"安排(?:一下|个)|"
        r"忘(?:了|掉)(?:我|刚才|之前|那)|"
        r"(?:语气|标题|字数|格式|措辞|结尾|开头|语言|风格|颜色|字体|段落|内容)[^，。我]{0,6}(?:一点|一些|点儿?|换成|改成|改为)|"
        r"对比|比较|分析|计算|算(?:一下|算)|看看|试试|来(?:个|一|点)|扮演|假装|模拟|订(?!婚|了|好|的)|买(?!了|的|"
        r"过)|充当)"
    ),
    "other": re.compile(r"(?!)"),
}  # fmt: skip

# The whole sentence is a courtesy, an acknowledgement, or talk about the talk.
COURTESY = re.compile(
    r"\s*(?:(?:hi|hello|hey|yo|good (?:morning|afternoon|evening|night)|bye|goodbye|see you(?: later)?|cheers|"
    r"thanks?|thank you|"
    r"thx|ty|ta|ok(?:ay)?|k|great|nice|cool|perfect|awesome|excellent|good|fine|sure|yes|yep|yeah|yup|no|nope|nah|"
    r"right|"
    r"exactly|correct|agreed|got it|i see|i get it|i understand|understood|makes sense|of course|ah|oh|hmm+|ugh|wow|"
    r"lol|haha|"
    r"interesting|good (?:idea|point|to know)|never ?mind|no (?:worries|problem)|nothing(?: really)?|sorry|my bad|oops|"
    r"(?:i|we)(?:['’]ll| will| might|['’]m going to)? (?:try|do|check|use|go with|take|think about) (?:that|it|this|"
    r"them)(?: out| later| then)?|"
    r"(?:i|we) (?:agree|guess(?: so)?|think so|hope so|know|like (?:it|that)|love (?:it|that)|hate that|"
    r"see what you mean)|"
    r"works? (?:now|for me|great|fine|well)|that (?:works?|helps?|helped)(?: a lot)?|you(?:['’]re| are) (?:right|"
    r"welcome|the best)|"
    r"(?:a lot|so much|very much|again|then|now|please|mate|man|all|everyone|there|really|too|indeed)|"
    r"danke(?: schön| dir)?|bitte|ja|nein|gut|super|klar|genau|verstanden|hallo|guten (?:tag|morgen|abend)|tschüss|"
    r"alles klar|"
    r"gracias|hola|vale|perfecto|claro|sí|bien|genial|de acuerdo|adiós|buenos días|buenas(?: tardes| noches)?|"
    r"entendido|otra cosa|"
    r"merci|bonjour|d'accord|oui|non|ciao|grazie|obrigad[oa])[\s,.!…~:)-]*)+$",
    re.IGNORECASE,
)
COURTESY_ZH = re.compile(
    r"\s*(?:(?:你好|您好|嗨|哈喽|在吗|早上好|晚上好|早|晚安|再见|拜拜|谢谢(?:你|您|啦|了)?|多谢|感谢|好的?|好吧|"
    r"好啊|好嘞|行(?:吧|啊)?|可以(?:的|了)?|"
    r"嗯+|哦+|噢|啊|哈+|对(?:的|啊)?|是的?|没错|没事(?:了|儿)?|没关系|不用了|算了|那算了|知道了|懂了|明白(?:了)?|"
    r"了解|收到|原来如此|"
    r"辛苦了|厉害|不错|有道理|就是测试一下|测试一下|测试|随便(?:问问|聊聊|看看)|就是(?:想)?(?:聊聊|试试|看看)|无聊|"
    r"打发时间|没什么|要|不要|有|没有|哎|唉)[\s，。！!,.~～…]*)+$"
)
# A leading word that only links the sentence to the talk; it is left out of the statement.
LEADING_FILLER = re.compile(
    r"\s*(?:(?:(?:nice|great|cool|ok(?:ay)?|well|oh|ah|hmm+|ugh|thanks?|thank you|cheers|yes|yeah|yep|sure|right|so|"
    r"also|and|but|"
    r"anyway|honestly|actually|by the way|btw|fyi|hi|hello|hey|good news|perfect|interesting|of course|lol|haha|"
    r"good|fine|"
    r"danke|ja|gut|also|übrigens|ach|hallo|gracias|vale|sí|bueno|pues|por cierto|hola|perfecto)(?: there)?[,!:]\s+)|"
    r"(?:and|but|so|also|well|y|und|aber)\s+(?=(?:i|i['’]m|my|we|our|mi|mein|meine|ich|wir)\s)|"
    r"(?:好的?|嗯+|哦|对了?|行|要|是的?|哎|唉|那个|另外|还有|顺便说一下|对了|没事|谢谢|可以|不错|哈哈)[，,！!]\s*)+",
    re.IGNORECASE,
)

# "Remember that …": the user asks for it. What follows is the statement.
EXPLICIT_LEAD = re.compile(
    r"\s*(?:please\s+|pls\s+|can you\s+|could you\s+|ok(?:ay)?,?\s+|also,?\s+|and\s+)?"
    r"(?:(?:always\s+|permanently\s+)?remember(?:\s+(?:this|forever))?(?:\s*[:,]\s*|\s+that\s+|\s+(?=(?:i|i['’]m|my|"
    r"we|our|to)\b))|"
    r"(?:don['’]?t|do not|never)\s+forget(?:\s+that\s+|\s*[:,]\s*|\s+(?=(?:i|i['’]m|my|we|our)\b))|"
    r"(?:note|keep in mind|bear in mind|for the record|take note|make a note|note down|save|memori[sz]e)"
    r"(?:\s+this)?(?:\s+that\s+|\s*[:,]\s*)|"
    r"(?:bitte\s+)?(?:merk(?:e)? dir|vergiss nicht|denk daran)(?:\s*[:,]\s*(?:dass\s+)?|\s+dass\s+|\s+)|"
    r"(?:por favor,?\s+)?(?:recuerda|apunta|anota|no olvides|ten en cuenta)(?:\s+que\s+|\s*[:,]\s*)|"
    r"(?:请|麻烦|帮我|你要?|给我)?(?:永远|一定要?|务必|帮我|好好)?(?:记住|记得|记一下|记下来?|记着|别忘了|不要忘记|"
    r"牢记)(?:一下|一点)?[，,：:]?\s*(?!.{0,6}提醒))",
    re.IGNORECASE,
)

# A wish about how to be served that is meant to last, given as a command.
LASTING = re.compile(
    r"\b(?:from (?:now|here|today|this point) on(?:wards)?|going forward|in (?:the )?future|always|never|every time|"
    r"whenever|"
    r"by default|next time|any ?more|no longer|"
    r"ab (?:jetzt|sofort|heute)|künftig|in zukunft|immer|nie(?:mals)?|grundsätzlich|"
    r"a partir de (?:ahora|hoy)|de ahora en adelante|siempre|nunca)\b|以后|今后|从现在起|从今以后|往后|一律|永远|"
    r"每次|总是|一直|优先",
    re.IGNORECASE,
)
# The same, told for one kind of service: "When you write code for me, use type hints."
STANDING = re.compile(
    r"\s*when(?:ever)? (?:you (?:write|answer|reply|respond|give|explain|suggest|recommend|translate|show|generate|"
    r"list|"
    r"cite|code|format|summari[sz]e|draft|plan|quote)|(?:writing|answering|explaining|suggesting|recommending|"
    r"translating|coding|formatting|summari[sz]ing) )[^.?!]{0,60}?[, ]\s*(?:please )?(?:use|add|give|keep|make|include|"
    r"avoid|don['’]?t|do not|put|say|start|end|show|call|skip|be|leave|stick to|prefer|write|mention|assume)\s|"
    r"\s*(?:给我|帮我|为我|你)?(?:写|推荐|回答|回复|解释|翻译|总结|生成|讲|介绍|列).{0,8}?(?:的时候|时候?)[，,]?"
    r"(?:请|要|别|不要|不用|尽量|务必|都|用|记得|最好).{2,}",
    re.IGNORECASE,
)
FORM_OF_ADDRESS = re.compile(
    r"\s*(?:please\s+)?(?:(?:just\s+)?call me\b(?! (?:back|later|again|an?|tomorrow|tonight|today|at|on|when|if|in)\b)|"
    r"address me\b|refer to me\b|nenn mich\b|llámame\b)|(?:就?叫我|称呼我)",
    re.IGNORECASE,
)

# The user puts on a part, or has one put on: what is said in it is not about them.
ROLE_PLAY = re.compile(
    r"\b(?:role-?play|pretend (?:to be|you are|you['’]re|that you)|act as|play the (?:role|part)|you are now|"
    r"in character|"
    r"let['’]s (?:play|pretend|act)|you(?:['’]re| are) (?:an?|the|my) [^,.;]{2,40}[,;] (?:and )?i(?:['’]m| am)|"
    r"rollenspiel|spiel(?:e)? die rolle|tu so, als|haz de|juego de rol|finge (?:ser|que))\b|扮演|"
    r"角色扮演|假装你|你现在是|充当|模拟一个|你来(?:演|当|扮)|你演|我来演|咱们演|你当.{1,8}我当",
    re.IGNORECASE,
)
# Said of the talk itself, not of the user.
ABOUT_THE_TALK = re.compile(
    r"\s*(?:i(?:['’]m| am) (?:just )?(?:testing|kidding|joking|curious|wondering|confused|done|back|"
    r"asking(?! (?:for (?:an?|my|more)|because|since|on my)\b))\b|"
    r"i (?:was )?(?:just )?ask(?:ed|ing)\b|"
    r"i (?:don['’]t|do not|didn['’]t) (?:understand|get|follow|see) (?:it|that|this|what|why|how|your)\b|"
    r"i have (?:a|another|one more|some) questions?\b|"
    r"i (?:don['’]t |do not |really |would )?(?:like|love|prefer|want|hate) (?:that|this|it|these|those|your|"
    r"the (?:first|second|third|last|other|new|previous|shorter|longer) (?:one|option|version|idea|"
    r"draft))\b[^,;]{0,30}$|"
    r"i (?:don['’]t|do not) want (?:that|this|it) (?:stored|saved|remembered|kept|in your memory)\b|"
    r"(?:just|only|simply) (?:bored|waiting|passing|testing|checking|saying|browsing|chatting)\b|"
    r"that (?:helps?|works?|looks?|sounds?|makes?)\b|"
    r"i meant (?:the|that|this|it|to)\b|i appreciate (?:it|that|your|the)\b|just killing time|"
    r"i(?:['’]ve)? tried that\b|my question\b|"
    r"that(?:['’]s| is| was) (?:all|it|what i|not what|very|really|so|great|good|helpful|right|enough|fine|nice|too|"
    r"wrong(?!\s*[,;:–—-]+\s*(?:she|he|they|we|my|our|his|her|i['’]m|i (?:am|live|work|have|was|moved))\b))\b|"
    r"your (?:answer|reply|response|code|suggestion)\b[^,;]{0,40}$|what i (?:mean|meant)\b|here(?:['’]s| is|"
    r" are) (?:my|the|a|an|some)\b[^,;:]{0,40}:?$|"
    r"ich (?:verstehe|meine) (?:das|es) nicht|no entiendo|我(?:只是|就是)?(?:测试|问问|随便|想问|想知道|的意思是|"
    r"没看懂|不明白|不懂)|再.{1,6}[点些]儿?\s*[。！]?$|我试试|我知道了|我明白|我看看|我先(?=[试看问想去]))",
    re.IGNORECASE,
)

MONTH_NAMES = re.compile(
    r"(?:jan(?:uar[y]?)?|feb(?:ruar[y]?)?|mar(?:ch)?|märz|apr(?:il)?|ma[yi]|june?|juni|july?|juli|aug(?:ust)?|"
    r"sept?(?:ember)?|o[ck]t(?:ober)?|"
    r"nov(?:ember)?|de[cz](?:ember)?|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|"
    r"diciembre)\b",
    re.IGNORECASE,
)
WEEKDAYS = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|montags?|dienstags?|mittwochs?|donnerstags?|freitags?|"
    r"samstags?|sonntags?|"
    r"lunes|martes|miércoles|jueves|viernes|sábados?|domingos?)\b|(?:周|星期|礼拜)[一二三四五六日天末]",
    re.IGNORECASE,
)
TIMES_ZH = re.compile(
    r"[一二三四五六七八九十\d]+(?:月|号|日|点|岁|年|万|千|百|块|元|个|次|公斤|斤|分|升|米|小时|天|周)|今天|明天|"
    r"后天|昨天|早上|晚上|下午|上午|端午|中秋|国庆|五一|春节|元旦|清明"
)
STATES_ZH = re.compile("在.{2,}|姓|叫做?.|停在|放在|挂在|藏在|住|养了?|喜欢|讨厌|害怕|对.{1,8}过敏|属于|每[天周月年]")
CHANGE_WORDS = re.compile(
    r"\b(?:now|from now|from today|since|no longer|any ?more|instead|moved|changed|switched|swapped|sold|cancel\w*|"
    r"quit|left|gone|stopped|"
    r"retired|replaced|pushed|postponed|cutting|gave up|down to|up to|"
    r"jetzt|seit|nicht mehr|statt|umgezogen|gewechselt|abgesagt|verkauft|ahora|desde|ya no|en vez|cambiad\w+|"
    r"dej[éóa]\w*|jubil\w+|mud\w+)\b|"
    r"现在|改成|改为|改到|挪到|换成|换了|搬到|搬家|不再|取消|不去了|调走|卖了|辞职|离职|迁到|加到|减到|涨到|降到|以后|最近改|"
    r"推迟|提前到|离婚|毕业了",
    re.IGNORECASE,
)
# The subject left out, in Chinese: who lately eats less, or prepares for an examination, is the one who says so.
SUBJECTLESS_ZH = re.compile(
    r"\s*(?:最近|平时|一直|每天|每周|每晚|晚上|早上|周末|从小|目前|已经|刚刚?|准备|打算|正在)(?:都|也|又|还|一直|刚|正)*"
    r"(?:在(?!线)|要|想|不?(?:吃|喝|用|住|学|练|带|睡|跑|做|考|搬|换|买|上班|熬夜|加班)|减肥|备考|备孕|怀孕|戒|失眠|健身)"
)
# What has one value at a time and belongs to somebody's plans and things: "the Heron report is due on 22 March".
VALUE_TOLD = re.compile(
    r"(?:[^,;:]{2,40}[,:]\s+)?(?:so |and |but )?(?!(?:the )?(?:following|code|function|example|text|sentence|"
    r"question|answer|file)\b)(?:(?:the|our|der|die|das|el|la)\s+)?[\w'’-]+(?:\s[\w'’-]+){0,3}\s"
    r"(?:is|are|starts?|ends?|runs?|opens?|closes?|costs?|moves?|moved|got|has(?: been)? moved|ist|sind|beginnt|"
    r"läuft|es|"
    r"empieza|se aplaza|se mueve|cuesta)\s",
    re.IGNORECASE,
)
VALUE_TOLD_ZH = re.compile(
    r"[^，,。？?我你您]{2,10}(?:是|在|定在|改[到成为]|延期?到?|推迟到?|提前到?|用的是|换成了?|升到了?)(?=[^，,。？?]*(?:\d|[一二三四五六七八九十]))"
)
# A clause that can only be about who writes it, wherever it stands.
SUBJECTLESS_SURE = re.compile(
    r"(?:^|[,;:.]\s+)(?:born|raised|allergic|intolerant|married|divorced|widowed|retired|vegetarian|vegan|"
    r"left-handed)\b"
    r"(?! (?:people|person|food|recipes?|dishes|couples?)\b)",
    re.IGNORECASE,
)
# The subject left out, in English: "training for …", "sold the …", "born in …".
SUBJECTLESS = re.compile(
    r"\s*(?:born|raised|living|working|studying|training|moved|moving|sold|bought|started|starting|stopped|quit|"
    r"cutting|learning|married|divorced|"
    r"engaged|allergic|vegetarian|vegan|planning|saving|hosting|going|visiting|travel(?:l)?ing|cycling|switched|got|"
    r"getting|just (?:moved|bought|"
    r"got|started|finished|sold)|prefer|hate|love|can['’]?t (?:eat|stand|do|have)|used to|currently|"
    r"current \w+ is)\b\s+\S",
    re.IGNORECASE,
)
