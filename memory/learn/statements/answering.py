"""A short answer to a question about the user, put into words that stand alone: "Where do you live?", "Leeds".

Only for questions of well-known form whose answer lasts, and only for answers that name something: no refusals, no
counter-questions, nothing that points elsewhere. The words of the answer are the user's, unchanged. Pure.
"""

from __future__ import annotations

import re

from memory.learn.words.lexicon import RELATIONS

IGNORE_CASE = re.IGNORECASE

WORDS_MAX = 6
IDEOGRAPHS_MAX = 12
TOPIC_WORDS_MAX = 4

_LEAD = re.compile(
    r"\s*(?:(?:so|and|ok(?:ay)?|great|first|also|by the way|may i ask|if i may ask|just to check|tell me|well|"
    r"und|sag mal|y|entonces|那么?|请问|另外|顺便问一下|冒昧问一下)[,:，]?\s*)*",
    IGNORE_CASE,
)
# A question, and what an answer to it says; "{}" is the answer, "{topic}" what the question names.
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"(?:{question})\s*(?:these days|now|currently|at the moment)?\s*[?？]", IGNORE_CASE), statement)
    for question, statement in (
        ((r"(?:where|(?:in )?(?:which|what) (?:city|town|country|place)) (?:do you live|are you (?:based|living))"
         r"(?: in)?"),
         "I live in {}"),
        (r"where (?:are you|do you come) from|where were you born", "I am from {}"),
        (r"where (?:in the world )?are you(?: (?:at|located|right))?", "I am in {}"),
        (r"where do you work|who do you work for|(?:which|what) company do you work for", "I work at {}"),
        (r"what do you do(?: for (?:a living|work)| professionally)|what (?:kind|sort) of work do you do",
         "My job is {}"),
        ((r"are you allergic to (?:anything|something|any [a-z ]{1,30})|what are you allergic to|"
         r"do you have any (?:known |food |drug )*allergies(?: (?:i|we) should know(?: about| of)?)?"),
         "I'm allergic to {}"),
        (r"what should i call you|how should i address you", "Call me {}"),
        (r"what(?:['’]s| is) your (?P<topic>[a-z][\w'’ -]{1,40}?)", "My {topic} is {}"),
        (r"what are your (?P<topic>[a-z][\w'’ -]{1,40}?)", "My {topic} are {}"),
        (r"do you have (?P<topic>(?:an?|any) [a-z][\w'’ -]{1,30}?)(?: at home)?", "I have {topic}: {}"),
        (r"(?:您|你)(?:家)?(?:现在|目前|平时)?(?:住|居住)在(?:哪里?|哪儿|哪个城市|什么地方)", "我住在{}"),
        (r"(?:您|你)(?:是)?从?哪里(?:的)?人|(?:您|你)(?:来自|老家在|是)哪(?:里|儿|个城市)(?:的|人)?", "我来自{}"),
        (r"(?:您|你)(?:怎么称呼|叫什么(?:名字)?|贵姓)|怎么称呼(?:您|你)", "我叫{}"),
        (r"(?:您|你)(?:是)?做什么(?:工作|行业|职业)?的?|(?:您|你)从事什么(?:工作|职业|行业)", "我的职业是{}"),
        ((r"(?:您|你)(?:有没有)?(?:对什么(?:东西|食物|药物)?(?:会)?过敏|(?:对什么)?有(?:什么|任何|食物|药物)*过敏(?:史|的)?"
         r"(?:吗|东西吗|食物吗)?|有没有(?:什么)?过敏(?:的)?)"), "我对{}过敏"),
        (r"(?:您|你)(?:的)?(?P<topic>[^，。？?的]{1,8})是(?:什么|哪(?:个|种|天|里|一天))[^，。？?]{0,3}",
         "我的{topic}是{}"),
        (r"wo wohn(?:st du|en sie)", "Ich wohne in {}"),
        (r"wie hei(?:ß|ss)(?:t du|en sie)", "Ich heiße {}"),
        (r"was ist dein beruf|was machst du beruflich|was bist du von beruf", "Mein Beruf ist {}"),
        (r"¿?dónde vives?", "Vivo en {}"),
        (r"¿?cómo te llamas|¿?cómo se llama usted", "Me llamo {}"),
        (r"¿?(?:a qué te dedicas|cuál es tu (?:profesión|trabajo))", "Mi trabajo es {}"),
    )
)  # fmt: skip
# What is asked for in the talk at hand, and says nothing about the user later.
_OF_THE_TALK = re.compile(
    r"\b(?:questions?|requests?|quer(?:y|ies)|points?|problems?|issues?|input|code|errors?|outputs?|messages?|answers?|"
    r"guess(?:es)?|thoughts?|choices?|decisions?|preferences?|opinions?|plans?|goals?|needs?|ideas?|take|mood|version|"
    r"setup|prompts?|tasks?|next|current|experience|reason|feelings?|minutes?|moments?|time|budget|order|"
    r"number|passwords?|codes?|pin|accounts?|data)\b|问题|要求|需求|想法|意思|看法|意见|目的|计划|选择|密码|代码|原因|目标|情况|感觉",
    IGNORE_CASE,
)
_OWNED = re.compile(
    r"\b(?:pets?|cars?|bikes?|bicycles?|motorbikes?|boats?|gardens?|hobb(?:y|ies)|instruments?|intolerances?|degrees?|jobs?|"
    r"nick ?names?|diets?|dietary \w+|medical conditions?|siblings|children|house|flat|apartment)\b",
    IGNORE_CASE,
)
AFFIRMED = re.compile(r"\s*(?:yes|yep|yeah|yup|sure|ja|sí|有的?|是的?|对|嗯)[,.!，。！\s]+", IGNORE_CASE)
# Answers that name nothing, keep it back, point elsewhere, or ask in return.
_SAYS_NOTHING = re.compile(
    r"[?？\n]|https?:|\b(?:no|not|none|nope|nothing|never|nobody|nowhere|n/?a|skip|pass|private|secret|guess|don['’]?t|doesn['’]t|"
    r"can['’]?t|won['’]t|rather|depends?|dunno|idk|idea|whatever|later|maybe|perhaps|probably|unsure|sure|why|what|who|how|"
    r"where|when|which|you|your|yours|this|that|these|those|it|its|it['’]s|there|here|same|usual|see|above|below|but|if|"
    r"very|lots?|many|much|several|some(?:thing|where|times)?|few|often|always|quite|really|absolutely|definitely|good|great|"
    r"fine|ok(?:ay)?|well|please|thanks?|thank|stop|write|make|tell|give|show|help|say|forget|remember|ignore|nichts?|kein\w*|"
    r"nein|nada|ningun\w*)\b|"
    r"[不没别你您它这那谁吗呢吧啥]|^无$|什么|怎么|保密|秘密|随便|算了|谢谢|帮我|挺好|还行|还好|一般|很多|可能|好的",
    IGNORE_CASE,
)
_IN_A_PLACE = re.compile(r"(?:in|at|on|near|by|with|close|outside|next|just|north|south|east|west)\b", IGNORE_CASE)
_LINKS = re.compile(
    r"\s*(?:to|i['’]m|i am|am|it['’]s|it is|called|from|in|at|as|for|对|在|住在|是|叫|来自)(?:\s+|(?<=[对在是叫自]))",
    IGNORE_CASE,
)
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff]")


def asks_what_lasts(question: str) -> bool:
    """Whether it is one of the questions whose answers can stand alone."""
    bare = _without_lead(question)
    return any(form.fullmatch(bare) for form, _ in _FORMS)


def asks_of_the_talk(question: str) -> bool:
    """Whether it asks for what matters to the talk at hand alone: "Do you have a minute?"."""
    return bool(_OF_THE_TALK.search(question))


def as_statement(question: str, reply: str) -> str:
    """What the user says of themselves by `reply`, one sentence of theirs, to `question`; "" where that is not sure."""
    bare = _without_lead(question)
    affirmed = AFFIRMED.match(reply)
    answer = reply[affirmed.end() if affirmed else 0 :].strip(" .!。！,，;；\"'“”")
    if not names_something(answer):
        return ""
    for form, statement in _FORMS:
        asked = form.fullmatch(bare)
        if asked:
            topic = (asked.groupdict().get("topic") or "").strip()
            return _worded(statement, topic, answer, is_affirmed=affirmed is not None)
    return ""


def _without_lead(question: str) -> str:
    lead = _LEAD.match(question)
    return question[lead.end() if lead else 0 :].strip()


def names_something(answer: str) -> bool:
    """Whether it is short, and neither refuses, asks in return, nor points elsewhere."""
    is_short = len(answer) <= IDEOGRAPHS_MAX if _IDEOGRAPH.search(answer) else 0 < len(answer.split()) <= WORDS_MAX
    return is_short and any(c.isalpha() for c in answer) and not _SAYS_NOTHING.search(answer)


def _worded(statement: str, topic: str, answer: str, *, is_affirmed: bool) -> str:
    if topic and (_OF_THE_TALK.search(topic) or len(topic.split()) > TOPIC_WORDS_MAX):
        return ""
    if "I have" in statement and not (is_affirmed and (RELATIONS.search(topic) or _OWNED.search(topic))):
        return ""  # "Do you have a dog?" "a cat"
    if statement == "I live in {}" and _IN_A_PLACE.match(answer):
        return f"I live {answer}"
    link = _LINKS.match(answer)
    value = answer[link.end() :] if link else answer
    return statement.replace("{topic}", topic.removeprefix("any ")).replace("{}", value) if value else ""


__all__ = ["AFFIRMED", "as_statement", "asks_of_the_talk", "asks_what_lasts", "names_something"]
