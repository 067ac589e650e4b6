"""Whose something is that a text names: the user's, or somebody else's – "my birthday", and "my mom's birthday".

The nearest person before it owns it, or the one right behind it ("the birthday of my mom"). Where nobody stands there
it is the user's, unless some name does: then it is nobody's that could be told. It must never take another's for the
user's, because what is forgotten by it is gone. Patterns only, each linear in its text. Pure.
"""

from __future__ import annotations

import re

from memory.learn.words.attributes import ATTRIBUTES
from memory.learn.words.lexicon import RELATIONS, RELATIONS_ZH
from memory.learn.words.terms import terms
from memory.learn.words.values import names_of

USER = frozenset(("user",))
NOBODY: frozenset[str] = frozenset()
LOOK_BACK_CHARACTERS_MAX = 200  # a sentence; the owner stands near

_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_SENTENCE_END = re.compile(r"[.!?;]\s|[。！？；\n]")
_USER = r"i|me|we|us|my|mine|our|ours|myself|you|your|yours|ich|wir|mich|mir|uns|du|dein\w*|yo|nosotr[oa]s|mis?|tus?"
_USER_OWNS = r"mein\w*|unser\w*|nuestr[oa]s?"
_PRONOUN = r"he|she|they|his|her|hers|their|theirs|him|them|er|sie|ihre?[rnms]?|seine?[rnms]?|él|ella|sus?"
_REFERENCE = re.compile(
    rf"(?P<possessor>\b[\w-]+)(?:(?<!\bit)(?<!\bthat)(?<!\bthere)(?<!\bhere)(?<!\bwhat)(?<!\bwho)(?<!\blet)['’]s\b"
    r"|(?<=s)['’](?=\s))|"
    r"\b(?:the )?(?P<user_word>user)(?:['’]s)?\b|"
    rf"(?P<relation>{RELATIONS.pattern})|"
    rf"\b(?P<user>{_USER}|{_USER_OWNS})\b|\b(?P<pronoun>{_PRONOUN})\b",
    re.IGNORECASE,
)
_REFERENCE_ZH = re.compile(rf"(?P<relation>{RELATIONS_ZH.pattern})|(?P<user>[我咱你您])|(?P<pronoun>[他她它])")
_OF = re.compile(
    r"\s+(?:(?:of|for|von|für|de|del|para)\s+)(?:(?:my|our|the|mein\w*|unser\w*|mis?|nuestr[oa]s?|la|el|der|dem)\s+)?"
    r"(?P<owner>[\w-]+)|\s+(?:meine[rs]|unsere[rs]|der|des)\s+(?P<genitive>[\w-]+)",
    re.IGNORECASE,
)
_OWNED_ZH = re.compile("(?P<owner>[\u3400-\u9fff]{1,6})的$")
_NO_OWNER_ZH = re.compile("(?:自己|家里?|现在|目前|以前|之前|从前|原来|最近|新|旧|老|前)$")
_FIRST_PERSON = re.compile(
    r"(?:i|we|ich|wir|my|our|mein|mi|meine?)\b|"
    r"(?:wohne|lebe|arbeite|heiße|heisse|verdiene|vivo|vivimos|trabajo|gano|nací|llamo|mudé)\b|call me\b|我",
    re.IGNORECASE,
)
# The user as who does or has something, not as whose relation does: "I live", but not "my sister lives".
_USER_DOES = re.compile(
    r"\s*(?:(?:and|but|so|now|und|aber|jetzt|y|pero|ahora)\s+)?(?:i|we|mine|ich|wir|yo|nosotr[oa]s|vivo|vivimos|trabajo|gano)\b|"
    rf"\s*(?:现在|而|但)?我(?!们?(?:的|家)?(?:{RELATIONS_ZH.pattern}))",
    re.IGNORECASE,
)
# A word of doing or being: what stands between "my" and it is who does it, no description of it.
_DONE = re.compile(
    r"(?:live[sd]?|living|based|moved|reside[sd]?|relocated|born|works?|worked|working|employed|hired|earns?|called|"
    r"call|named|heißt|wohnt|lebt|arbeitet|gezogen|geboren|vive|trabaja|llama|\S+@\S+|"
    r"\w*years? old|\d+ jahre alt|\d+ años)$",
    re.IGNORECASE,
)


def owners_of(text: str, start: int, end: int) -> frozenset[str]:
    """Who owns what stands at `start` to `end`: `USER`, another person's words, folded, or `NOBODY` that is known."""
    named = text[start:end]
    if _FIRST_PERSON.match(named):
        return USER
    behind = _OF.match(text, end)
    if behind:
        word = behind["owner"] or behind["genitive"]
        if RELATIONS.search(word) or word[:1].isupper():
            return _folded(word)
    before = _sentence_before(text, start)
    return _owners_zh(before) if _IDEOGRAPH.search(named) else _owners_before(before, named)


def _sentence_before(text: str, start: int) -> str:
    before = text[max(0, start - LOOK_BACK_CHARACTERS_MAX) : start]
    ends = list(_SENTENCE_END.finditer(before))
    return before[ends[-1].end() :] if ends else before


def _owners_before(before: str, named: str) -> frozenset[str]:
    references = list(_REFERENCE.finditer(before))
    if references and before[references[-1].end() :] == "-":
        references.pop()  # "ex" of "my ex-wife" is no person besides
    while references and references[-1]["pronoun"]:
        references.pop()  # "my mom has her birthday": whoever was named before
        if not references:
            return NOBODY
    if not references:
        return NOBODY if names_of(before) else USER
    last = references[-1]
    between = before[last.end() :]
    if last["user_word"] or last["user"]:
        return _owners_behind_mine(last.group(), between, named)
    return _folded(last["possessor"] or last["relation"]) | _named_beside(before[: last.start()], between)


def _owners_behind_mine(mine: str, between: str, named: str) -> frozenset[str]:
    """ "My dentist lives there": what stands between does it; "my home address": it only says which."""
    is_owning = mine.casefold() in ("my", "our", "your") or re.fullmatch(_USER_OWNS, mine, re.IGNORECASE)
    subject = terms(between)
    if is_owning and subject and _DONE.match(named):
        return subject
    last_word = between.split()[-1:] if not is_owning else []
    if last_word and last_word[0][:1].isupper() and _DONE.match(named):
        return _folded(last_word[0])  # "I know that Leo lives there"
    return USER


def _named_beside(before: str, between: str) -> frozenset[str]:
    """ "My sister Anna's birthday", "my brother Leo lives": the name belongs to the same person."""
    name_behind = re.match(r"\s+([A-ZÀ-Þ][\w-]+)", between)
    relation_before = re.search(rf"({RELATIONS.pattern})\s+$", before, re.IGNORECASE)
    found = _folded(name_behind.group(1)) if name_behind else NOBODY
    return found | (_folded(relation_before.group(1)) if relation_before else NOBODY)


def _owners_zh(before: str) -> frozenset[str]:
    references = list(_REFERENCE_ZH.finditer(before))
    while references and references[-1]["pronoun"]:
        references.pop()
        if not references:
            return NOBODY
    if references:
        return USER if references[-1]["user"] else _folded(references[-1]["relation"])
    owned = _OWNED_ZH.search(before)
    return NOBODY if owned and not _NO_OWNER_ZH.search(owned["owner"]) else USER


def opens_with_user(clause: str) -> bool:
    """Whether it is the user who does or has something in it."""
    return bool(_USER_DOES.match(clause))


def _folded(person: str) -> frozenset[str]:
    """One word for one relation, whatever the language and the wording: "mom", "mother" and 妈妈 are one."""
    person = person.removesuffix("'s").removesuffix("’s")
    for number, (asked, _) in enumerate(ATTRIBUTES):
        if asked.search(person) and (RELATIONS.search(person) or RELATIONS_ZH.search(person)):
            return frozenset((f"relation {number}",))
    return terms(person) or frozenset((person.casefold(),))


__all__ = ["NOBODY", "USER", "opens_with_user", "owners_of"]
