"""Replies to what the assistant asked: which of its questions are about the user, and what answers them.

A reply often begins in the middle ("since 2019", 有个三十二升的) and says nothing without its question. Only questions
about the user and their own count, no offers, and nothing that the talk at hand alone needs to know. Pure.
"""

from __future__ import annotations

import re

from memory.learn.statements import salience
from memory.learn.statements.answering import AFFIRMED, asks_of_the_talk, asks_what_lasts, names_something
from memory.learn.statements.salience import Statement
from memory.learn.words.lexicon import FIRST_PERSON, RELATIONS, RELATIONS_ZH, Language, language_of
from memory.learn.words.sentences import Sentence
from memory.learn.words.terms import terms
from memory.model import Turn

QUESTION_CHARACTERS_MAX = 160  # a longer question of the assistant explains more than it asks

YES = re.compile(
    r"\s*(?:yes|yep|yeah|yup|correct|right|exactly|indeed|true|i do|i am|i did|that['’]s right|ja|genau|stimmt|sí|"
    r"correcto|exacto|"
    r"对的?|是的?|没错|嗯|正确|有|有的)(?:[\s,]+(?:i do|i am|i did|that['’]s (?:right|correct)|exactly|correct|"
    r"indeed|对的?|是的?))?[\s.!。！]*$",
    re.IGNORECASE,
)
NO = re.compile(
    r"\s*(?:no|nope|nah|not (?:really|any ?more|at all)|i don['’]t|never|nein|nicht|nunca|不是|没有|不|没|"
    r"不会)[\s.!。！]*$",
    re.IGNORECASE,
)
_ABOUT_THE_USER = re.compile(
    r"\b(?:you|your|yours|du|dein\w*|dir|dich|sie|ihr\w*|ihnen|euch|euer|eure|tú|tu|tus|te|usted|su|tienes|eres|"
    r"vives|haces)\b|[你您]|"
    r"(?:right|correct)\?\s*$",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"\b(?:want|would you (?:like|prefer|mind)|shall|should (?:i|we)|need (?:me|help|any)|can i|could i|may i|"
    r"interested in|like me to|care for|would it help|"
    r"make sense|ready to|any (?:other|more)|anything else|does that|soll(?:en|te)? (?:ich|wir)|möchte\w*|willst|"
    r"brauchst|"
    r"quieres|quiere|gustaría|lo paso|necesitas)\b|需要|要不要|要我|想要|是否|可以吗|好吗|行吗|用不用",
    re.IGNORECASE,
)
_HAS_DETAIL = re.compile(
    r"\d|[一二三四五六七八九十两]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|never|always|only|mostly|"
    r"every)\b",
    re.IGNORECASE,
)
_BEGINS_IN_THE_MIDDLE = re.compile(
    r"\s*(?:(?:in|at|on|for|since|about|around|roughly|mostly|mainly|usually|only|just|both|every|twice|once|with|near|"
    r"from|until|one|two|three|four|five|six|seven|eight|nine|ten|\d[\d.,]*|seit|bei|etwa|nur|desde|unos|unas|solo)\b"
    r"(?! of (?:my|our)\b)|[有没是叫在养用从](?!人)|还[有剩]|大概|差不多|一般|每[天周月年次])",
    re.IGNORECASE,
)
# "my youngest, he's nine", 我家的猫，十一岁了: whom the question was about, and no verb.
_ONLY_NAMES_SOMEBODY = re.compile(
    rf"\s*(?:my|our|mein\w{{0,2}}|mi)\s+(?:\w+\s+)?(?:youngest|oldest|eldest|{RELATIONS.pattern})\s*(?:[,.]|$)|"
    rf"\s*(?:我们?|咱们?)?家?的?(?:{RELATIONS_ZH.pattern})[，,。]",
    re.IGNORECASE,
)
_WHO_IT_IS = re.compile(
    r"\s*(?:(?:[Ss]o|[Aa]nd|[Oo]k(?:ay)?|[Gg]ot it)[, ]+)*(?:[Ii]s|[Ww]as|[Ii]st|[Ee]s)\s+(?P<who>[A-ZÀ-Þ][\wÀ-ÿ-]+)\b|"
    r"\s*(?:那么?)?(?P<zh>[^，。是？]{1,6})是[您你]",
)
_ASKS_WHICH = re.compile(
    r"\b(?:what|which|where|how|who|when|was|wie|wo|welche\w*|qué|cuál\w*|cuánt\w+|dónde|cómo)\b|"
    r"什么|几|哪|多少|多[大久高]|怎|谁|还是",
    re.IGNORECASE,
)
_OF_THEIR_OWN = re.compile(
    r"\byour (?!answer|reply|message)\w|\bdo you (?:have|own|play|work|live|study|speak|eat|drink|drive|cook|wear|"
    r"keep|grow|train|"
    r"practi[sz]e|ride|collect|teach)\b|[您你](?:的|家|们)|[您你](?:主要|平时|一般|现在)*(?:做|在|有|用|住|吃|养|学|开|教)|"
    r"\bdein\w*\b|\bihr\w*\b|\b(?:tu|tus|su|sus)\b|\bcuántos días\b",
    re.IGNORECASE,
)

# Words of a question that only asks whether something is so; what that is stands elsewhere: "Is that still right?"
_WHETHER = terms(
    "right correct correctly true still case sure exactly precise accurate okay fine good wrong mistaken mistake "
    "understand understood remember remembered remembering recall get got getting mean meant see say said told "
    "mention mentioned know think believe agree sound confirm named "
    "habe hast bist dich sie richtig stimmt stimmts wahr korrekt verstanden sicher oder nicht noch immer weißt meinst "
    "eres tienes correcto correcta verdad cierto entendido bien seguro seguros acuerdas sabes todavía"
)
_WHETHER_ZH = re.compile("[我你您说记理解得的没有这样那就是不对错正确吗吧呢么了还仍然懂明白清楚知道,，。?？\\s]+")
_LAST_QUESTION = re.compile(r"[^.!?。！？\n]*[?？](?=[^?？]{0,4}$)")


def question_asked(turn: Turn | None) -> str:
    """The question about the user that the answer of `turn` ends with, or ""."""
    match = _LAST_QUESTION.search(turn.answer.rstrip()[-2_000:]) if turn else None
    question = match.group().strip() if match else ""
    if len(question) <= QUESTION_CHARACTERS_MAX and asks_what_lasts(question):
        return question
    is_fit = 0 < len(question) <= QUESTION_CHARACTERS_MAX and not _OFFER.search(question)
    is_about_user = _ABOUT_THE_USER.search(question) or question.endswith(("吗？", "吗?"))
    return question if is_fit and is_about_user and matter_asked(question) else ""


def matter_asked(question: str) -> frozenset[str]:
    """The terms of what a question asks about; none for one that says nothing by itself, such as "Is that right?"."""
    return frozenset() if _WHETHER_ZH.fullmatch(question) else terms(question) - _WHETHER


def lead_in(question: str, statement: Statement) -> str:
    """What has to stand before a statement that replies to `question`; "" where it stands alone.

    All of the question, where the statement begins in the middle ("since 2019, on the third floor"). Where it says who
    somebody is ("my youngest, he's nine"), only who that was: the rest of the question guessed, and may be wrong.
    """
    if not question:
        return ""
    if _ONLY_NAMES_SOMEBODY.match(statement.text):
        asked = _WHO_IT_IS.match(question)
        return f"{asked['who'] or asked['zh']}:" if asked else ""
    is_own = bool(FIRST_PERSON[statement.language].search(statement.text))
    leans = not is_own and statement.antecedent is None and _BEGINS_IN_THE_MIDDLE.match(statement.text)
    return question if leans else ""


def answers(sentence: Sentence, question: str) -> bool:
    """Whether a sentence that is no statement by itself answers with something that is worth keeping."""
    affirmed = AFFIRMED.match(sentence.text)
    rest = sentence.text[affirmed.end() :] if affirmed else sentence.text
    language = language_of(rest)
    if salience.is_courtesy(rest) or salience.is_beside_the_point(rest):
        return False
    if salience.is_question(rest, language) or salience.is_request(rest, language):
        return False
    if _HAS_DETAIL.search(rest):
        return True
    if asks_of_the_talk(question):
        return False
    is_asked_which = bool(_OF_THEIR_OWN.search(question) and _ASKS_WHICH.search(question))
    is_named = is_asked_which and names_something(rest.strip(" .!。！"))
    return is_named or (affirmed is not None and _says_more(rest, language))


def _says_more(text: str, language: Language) -> bool:
    return len(text.strip("。！.! ")) >= 2 if language == "zh" else len(text.split()) >= 2


__all__ = ["NO", "YES", "answers", "lead_in", "matter_asked", "question_asked"]
