"""The words of a statement that carry its matter: names, numbers, nouns; not pronouns, articles and auxiliaries.

Latin script: words, roughly stemmed. Chinese: pairs of neighbouring characters, and single ones where they stand alone.
Pure, and the same for the same text.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# "Plan A", "room B", "A方案": what is called by a letter, which is no article then.
_LETTERED = re.compile(
    r"(?<=[a-zà-ÿ] )[A-HJ-Z](?![\w'’]|\.\s?\w)|"
    r"(?<![A-Za-z])[A-Z](?=[\u3400-\u9fff])|(?<=[\u3400-\u9fff])[A-Z](?![A-Za-z])"
)
_TOKEN = re.compile(
    r"[$€£¥]?\d+(?:[.,:/-]\d+)*(?:[A-Za-z]{1,2}(?![A-Za-z]))?|[A-Za-zÀ-ɏ]+(?:['’][A-Za-z]+)?|[\u3400-\u9fff]+"
)
_EMPTY = frozenset(
    "a an the and or but so of in on at to for with from by as is are am was were be been being do does did have has "
    "had "
    "i me my mine myself we us our you your yours he him his she her it its they them their this that these those "
    "there "
    "here not no yes ok will would can could should may might just also too very really s t m re ve ll d "
    "now today still then than about into over who which what when where how finally final "
    "new neu neue neuer neuen nuevo nueva "
    "der die das ein eine einen einem einer und oder aber von zu im am mit für auf bei ist sind bin war ich mein meine "
    "meinem meinen mir mich wir uns unser du dein deine sie er es jetzt auch noch seit "
    "el la los las un una unos unas y o pero de del en al a con por para es son soy estoy está mi mis me yo nos se lo "
    "su "
    "tu te le ahora que".split()
)
_CONTRACTED = re.compile("(?:i|you|we|they|he|she|it)'(?:m|ve|re|ll|d)")
_EMPTY_ZH = frozenset("的了吗呢吧啊是在有和与也都就还很我你他她它们这那您咱")
_SUFFIXES = ("ations", "ation", "ingly", "ings", "ing", "edly", "ers", "ies", "ied", "es", "ed", "er", "ly", "s", "e")


@lru_cache(maxsize=4_096)  # the memories of a user are compared with each new statement
def terms(text: str) -> frozenset[str]:
    found: set[str] = set()
    bare = unicodedata.normalize("NFKC", text)
    found |= {match.group().casefold() for match in _LETTERED.finditer(bare)}
    for token in _TOKEN.findall(bare):
        if "\u3400" <= token[0] <= "\u9fff":
            found |= _pairs(token)
            continue
        word = token.casefold().replace("’", "'").removesuffix("'s")
        if word not in _EMPTY and not _CONTRACTED.fullmatch(word) and not word.endswith("n't"):
            found.add(word if word[0].isdigit() or not word[0].isalpha() else _stem(word))
    return frozenset(found)


def _pairs(run: str) -> set[str]:
    kept = "".join(" " if c in _EMPTY_ZH else c for c in run)
    pieces = kept.split()
    return {piece[i : i + 2] for piece in pieces for i in range(max(len(piece) - 1, 1))}


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word
