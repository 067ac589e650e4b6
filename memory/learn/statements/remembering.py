"""Requests to memory in the form of a question: "Could you please remember that I'm vegan?", "Can you call me Jo?".

Only a question whose matter is a statement counts: "can you remember my name?" asks, and "do you remember that I'm
vegan?" does, too. What is returned is an exact part of the text. Pure, and linear in the text.
"""

from __future__ import annotations

import re

from memory.learn.words.lexicon import EXPLICIT_LEAD, MONTH_NAMES, QUESTION_ZH, WEEKDAYS

IGNORE_CASE = re.IGNORECASE

_ASKED = re.compile(
    r"\s*(?:(?:hi|hey|hello|ok(?:ay)?|also|and|so|now|please)[,!]?\s+){0,3}(?:can|could|would|will) you\s+"
    r"(?:(?:please|kindly|just|also|always)\s+){0,3}"
    r"(?:remember|note(?: down)?|keep in mind|bear in mind|memori[sz]e|make a note|save|store)\b"
    r"(?: this| for me| for (?:later|the future))?(?:\s*[:,]\s*|\s+that\s+|\s+)"
    r"(?P<matter>(?:(?:i|we)\s+(?!(?:said|told|asked|mentioned|wrote)\b)\w|(?:i['’]m|i['’]ve|im|ive|we['’]re|we['’]ve)\s"
    r"|(?:my|our)\s[^,;?]{1,60}?\s(?:is|are|was|were|has|have|lives?|works?|likes?|loves?|hates?|needs?|starts?|ends?|"
    r"can|can['’]t|cannot|does|doesn['’]t|goes|eats?|takes?|turns?|will)\s|"
    r"(?-i:[A-ZÀ-Þ])[\w'’-]*\s(?:is|are|has|lives|works|likes|hates|needs)\s).+)",
    IGNORE_CASE,
)
_ASKED_ZH = re.compile(
    "\\s*(?:你|您)?(?:可不可以|能不能|能否|可否|可以|能)(?:请|帮我|替我|麻烦)?(?:你)?(?:记住|记下来?|记一下|记着)[，,：:]?"
    "(?P<matter>(?:我|咱)[^？?]{2,60}?)(?:，|,)?(?:好吗|好不好|可以吗|行吗|吗|么|嘛)?[？?\\s]*$"
)
_SAYS_ZH = re.compile("[是在有叫住姓对]|喜欢|讨厌|不[^，]|过敏|每[天周月年]|[吃用要会养爱]")
_SAID_ZH = re.compile("(?:说过?|讲过?|提过?|告诉你?)的?|的(?:名字|生日|地址|电话|话|事情?|要求|喜好|[歌人书])$")
_TAIL = re.compile(
    r"(?:\s*,?\s*(?:please|ok(?:ay)?|thanks?|for me|for (?:later|the future|next time)))*\s*[?？!.\s]*$", IGNORE_CASE
)
_CALLED = re.compile(
    r"\s*(?:(?:hi|hey|ok(?:ay)?|also|and|so|please)[,!]?\s+){0,2}"
    r"(?:can|could|would|will) you\s+(?:(?:please|just|always)\s+){0,2}"
    r"(?P<wish>call me (?P<name>[\w'’-]+(?: (?-i:[A-ZÀ-Þ])[\w'’-]+)?)(?: (?:from now on|instead|please))*)"
    r"\s*[?.!]*\s*$",
    IGNORE_CASE,
)
_CALLED_ZH = re.compile(
    "\\s*(?:你|您|以后)*(?:可不可以|能不能|能否|可以|能)(?:以后|就|请)?(?P<wish>(?:叫|称呼)我(?!们|起|一|来|去|的|做|吃|回|早)"
    "(?P<name>[^，。？?\\s]{1,6}?))(?:好吗|吗|么|嘛|就好|就行|吧)?[？?。！\\s]*$"
)
NO_NAMES = frozenset(
    "back later again today tomorrow tonight now when at on in if a an the my up out that this it by names something "
    "anything what whatever soon please maybe".split()
)


def told_to_remember(text: str, *, is_marked_question: bool) -> str:
    """What the sentence asks to remember, as it stands in it, or "" where it asks for no such thing."""
    asked = _ASKED.match(text)
    if asked:
        return _TAIL.sub("", asked["matter"])
    asked = _ASKED_ZH.match(text)
    if asked:
        matter = asked["matter"]
        is_told = _SAYS_ZH.search(matter) and not QUESTION_ZH.search(matter) and not _SAID_ZH.search(matter)
        return matter if is_told else ""
    lead = EXPLICIT_LEAD.match(text)
    rest = text[lead.end() :].strip() if lead and not is_marked_question else ""
    return rest if any(c.isalnum() for c in rest) else ""


def asks_to_remember(text: str) -> bool:
    """Whether the sentence opens with such a request, whatever follows."""
    return bool(EXPLICIT_LEAD.match(text) or told_to_remember(text, is_marked_question=True))


def form_of_address_asked(text: str) -> str:
    """ "call me Jo" of "Can you call me Jo?", or "": "can you call me back?" wants a call."""
    asked = _CALLED.match(text)
    if asked:
        name = asked["name"]
        is_name = name[:1].isupper() and name.casefold() not in NO_NAMES
        return asked["wish"] if is_name and not WEEKDAYS.match(name) and not MONTH_NAMES.fullmatch(name) else ""
    asked = _CALLED_ZH.match(text)
    return asked["wish"] if asked else ""


__all__ = ["asks_to_remember", "form_of_address_asked", "told_to_remember"]
