"""By which words a sentence tells of another person than the user, and which one of a relation it means.

"My wife" and "my ex-wife" are two, and so are "my sister", "my other sister" and "my sister-in-law". It must never
decide what follows from that. Patterns, each linear in its text. Pure.
"""

from __future__ import annotations

import re

from memory.learn.words.lexicon import RELATIONS, RELATIONS_ZH

# Whoever may stand behind 我 or 我的, also those who are not close; 教师证 and 教师节 are no persons.
PERSONS_ZH = re.compile(
    rf"(?:{RELATIONS_ZH.pattern}|邻居|同学|同桌|客户|舍友|闺蜜|哥们|兄弟|姐妹|战友|校友|网友|队友|球友|好友|学生|医生|护士|保姆|阿姨|"
    "司机|师傅|师[兄姐弟妹]|导师|教练|上司|下属|徒弟|搭档|伙伴|前任|舅舅?|舅妈|叔叔?|婶婶?|姑姑?|姑[妈父]|姨妈?|姨父|伯[父母]|大伯|"
    "哥|姐|弟|嫂子?|姐夫|妹夫|亲戚|介绍人|合伙人|继承人|猫|狗)(?![费证节])"
)
_SURNAMES_ZH = (
    "王李张刘陈杨赵吴徐孙朱胡郭何罗林梁宋郑谢韩唐冯董萧程曹袁邓许傅沈曾彭吕"
    "苏卢蒋蔡丁魏薛叶余潘戴夏汪姜范谭廖邹陆郝孔崔康邱秦顾侯邵孟段钱汤黎"
)
NAME_ZH = f"(?:[小老阿][\u3400-\u9fff]|[{_SURNAMES_ZH}][\u3400-\u9fff]{{1,2}}?)"
LOOK_BACK_CHARACTERS_MAX = 20  # the longest word for a kind, and what joins it

_KIND_BEFORE = re.compile(
    r"(?:\b(?P<kind>ex|former|previous|old|late|step|stief|half|halb|foster|god|future|first|second|third|other|another|"
    r"older|elder|younger|eldest|oldest|youngest|middle|big|little|ander\w{1,2}|erste\w?|zweite\w?|älter\w{1,2}|"
    r"jünger\w{1,2}|ältest\w{1,2}|jüngst\w{1,2}|groß\w{1,2}|klein\w{1,2}|otr[oa]s?|primer[oa]?|segund[oa])[\s-]{0,3}|"
    r"(?P<kind_zh>另外?一?[个位只条]|第?[二三][个位]?|[前后继亡准干大小]))$",
    re.IGNORECASE,
)
_KIND_BEHIND = re.compile(r"-in-law|-to-be| (?:mayor|menor)\b", re.IGNORECASE)
_FORMER = frozenset(("ex", "former", "previous", "old", "late", "前", "亡"))
_EX = re.compile(r"ex[\s-]", re.IGNORECASE)
# "My old cat" is the cat, and its age.
_ANIMAL = re.compile(
    r"(?:dog|cat|kitten|puppy|horse|rabbit|parrot|hund|katze|perr[oa]|gat[oa])s?$|[猫狗]$", re.IGNORECASE
)
_LOOKS = frozenset(("old", "late", "big", "little", "大", "小"))
_POSSESSIVE = re.compile("['’]s\\b")


def kind_of(text: str, start: int, end: int) -> str:
    """Which of a relation stands at `start` to `end`: "ex" of "my ex-wife", "-in-law" of "my sister-in-law", or ""."""
    named = text[start:end]
    if not (RELATIONS.search(named) or RELATIONS_ZH.search(named)):
        return ""
    behind = _KIND_BEHIND.match(text, end)
    before = _KIND_BEFORE.search(text[max(0, start - LOOK_BACK_CHARACTERS_MAX) : start])
    kind = (before["kind"] or before["kind_zh"]).casefold() if before else ""
    if kind in _LOOKS and _ANIMAL.search(named):
        kind = ""
    return ("ex" if kind in _FORMER else kind) + (behind.group().casefold() if behind else "")


def without_relations(names: frozenset[str]) -> frozenset[str]:
    """The names that are no relation: German writes both with a capital."""
    return frozenset(name for name in names if not RELATIONS.fullmatch(name))


def relations_of(clause: str) -> frozenset[str]:
    """The relations that are named, folded, each with its kind: "brother" of "my brother's test", "ex wife"."""
    bare = _POSSESSIVE.sub("", clause)
    found = [*RELATIONS.finditer(bare), *RELATIONS_ZH.finditer(bare)]
    return frozenset(
        f"{kind_of(bare, match.start(), match.end())} {match.group().casefold()}".lstrip()
        for match in found
        if not (_EX.match(bare, match.start()) and RELATIONS.match(bare, match.end() + 1))
    )


__all__ = ["NAME_ZH", "PERSONS_ZH", "kind_of", "relations_of", "without_relations"]
