"""What a question or a request tells beside what it asks: "a gift for my son Ben, who loves trains".

Only what is grammatically sure: a relative clause or an age of somebody of the user's own, their name, and what the
user is themselves ("as a vegetarian, what can I order?"). Every `Aside.quote` is an exact substring. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory.learn.words import lexicon

WORDS_OF_RELATIVE_MAX = 16
IGNORE_CASE = re.IGNORECASE


@dataclass(frozen=True, slots=True)
class Aside:
    """`text` says what `quote` does, so that it stands alone; mostly it is the same."""

    text: str
    quote: str


_VERB = (
    r"(?:is|are|was|has|have|had|loves?|likes?|hates?|lives?|works?|wants?|needs?|can(?:['’]t|not)?|does(?:n['’]t|"
    r" not)|"
    r"do(?:n['’]t| not)|plays?|studies|study|speaks?|eats?|drinks?|turns?|turned|collects?|suffers?|just|only|never|"
    r"always|will|"
    r"moved|started|teaches|owns?|enjoys?|prefers?|struggles?)"
)
_OWNED = rf"(?:my|our)\s+(?:[\w-]+\s+){{0,3}}?(?:{lexicon.RELATIONS.pattern})(?:,?\s+(?-i:[A-ZÀ-Þ])[\wÀ-ÿ-]+)?"
_RELATIVE = re.compile(
    rf"{_OWNED},?\s+(?:who|that|which)(?:['’]s\b|\s+{_VERB}\b)(?:\s+[^\s,;.?!]+){{1,{WORDS_OF_RELATIVE_MAX}}}",
    IGNORE_CASE,
)
_AGED = re.compile(
    rf"(?:my|our)\s+(?:\d{{1,2}}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)[- ](?:years?|months?|"
    rf"weeks?)[- ]old\s+"
    rf"(?:[\w-]+\s+){{0,2}}?(?:{lexicon.RELATIONS.pattern})(?:,?\s+(?-i:[A-ZÀ-Þ])[\wÀ-ÿ-]+)?",
    IGNORE_CASE,
)
_TO_CONSIDER = re.compile(
    r"\b(?:add|mention|include|consider(?:ing)?|given|knowing|seeing|keep(?:ing)? in mind|bear(?:ing)? in mind|"
    r"assuming you know) "
    r"that (?P<told>(?:i|we|my|our)(?:['’](?:m|ve|re))?\s[^,;.?!]{6,160})",
    IGNORE_CASE,
)
_TO_CONSIDER_DE = re.compile(
    r"\b(?:rein|hinzu|dazu|mit)?(?:schreib\w*|erwähn\w*|füg\w*|ergänz\w*|bedenk\w*|berücksichtig\w*)\b[^,.]{0,20}, "
    r"(?P<told>dass (?:ich|wir|mein\w*)\s[^,;.?!]{6,160})",
    IGNORE_CASE,
)
_TO_CONSIDER_ES = re.compile(
    r"\b(?:añade|menciona|pon|incluye|ten en cuenta|"
    r"agrega)\s+(?:también\s+)?que\s+(?P<told>[^,;.?!]{6,160})",
    IGNORE_CASE,
)
_TO_CONSIDER_ZH = re.compile(
    r"(?:加上|写上|补充|提到|说明|注明|考虑到)(?:一下|一句)?[:：，,]?(?P<told>我[^，。；？！我]{4,60})"
)
_NAMED = re.compile(
    rf"(?:my|our)\s+(?:[\w-]+\s+){{0,2}}?(?:{lexicon.RELATIONS.pattern}),?\s+(?!(?:Mr|Mrs|Ms|Dr|And|Or|But|"
    rf"I)\b)(?-i:[A-ZÀ-Þ])[a-zà-ÿ-]+(?![\w'’])",
    IGNORE_CASE,
)
_AS_ONE = re.compile(
    r"\s*(?:so,?\s+|and\s+)?(?:as|being)\s+(?P<what>(?:an?\s+)(?:[\w-]+\s+){0,4}?[\w-]+),\s+(?:(?:what|how|which|"
    r"where|when|why|can|"
    r"could|should|do|am|may)\b[^.!]{0,80}?\b(?:i|me|my|we|us)\b|(?:i|we)\b)",
    IGNORE_CASE,
)
_AS_ONE_ZH = re.compile(r"\s*(?:我)?作为(?P<what>[^，,。？?我你]{2,14}(?:者|人|师|员|生|手|家|妈|爸))[，,](?=[^。]*我)")
_NO_KIND_OF_PERSON = re.compile(
    r"\b(?:an?\s+)(?:[\w-]+\s+){0,4}?(?:rule|result|joke|gift|present|test|reminder|start|bonus|note|example|"
    r"follow-?up|consequence|"
    r"matter|whole|first step|last resort|side|treat|snack|starter|dessert|hobby|career|job|language model|ai|"
    r"assistant|chatbot|"
    r"surprise|thank[- ]you|summary|list|table|percentage|function|one-off|favou?r|team|group|family|couple|company|"
    r"backup|precaution|general \w+|next step)$",
    IGNORE_CASE,
)


_CONSIDERED = (_TO_CONSIDER, _TO_CONSIDER_DE, _TO_CONSIDER_ES, _TO_CONSIDER_ZH)

# "Forget my extension, it's 4417 now": the value alone would not say of what.
_PUT_ANEW = re.compile(
    r"\W*(?:please\s+)?forget\s+(?:my|our)\s+(?:(?:old|previous|former)\s+)?(?P<what>[^,;.?!:]{2,60})[,;]\s+"
    r"(?:because\s+)?(?P<quote>(?:it['’]s|it is)\s+(?:now\s+)?"
    r"(?P<value>(?=[^,;?!]{0,40}(?:\d|(?-i:[A-ZÀ-Þ])))[^,;?!]{1,80}?)"
    r"(?:\s+now)?)\W*$",
    IGNORE_CASE,
)


def asides(sentence: str) -> Iterator[Aside]:
    """In the order said, none overlapping another."""
    if lexicon.ROLE_PLAY.search(sentence):
        return
    yield from _own_kind(sentence)
    anew = _PUT_ANEW.match(sentence)
    if anew and re.search(r"\bnow\b", anew["quote"], IGNORE_CASE):
        yield Aside(f"My {anew['what']} is {anew['value']} now", anew["quote"])
    taken: list[tuple[int, int]] = []
    for pattern in (*_CONSIDERED, _RELATIVE, _AGED, _NAMED):
        for found in pattern.finditer(sentence):
            span = found.span("told" if pattern in _CONSIDERED else 0)
            if not any(start < span[1] and span[0] < end for start, end in taken):
                taken.append(span)
    for start, end in sorted(taken):
        yield Aside(sentence[start:end], sentence[start:end])


def _own_kind(sentence: str) -> Iterator[Aside]:
    for pattern, words in ((_AS_ONE, "I am {}"), (_AS_ONE_ZH, "我是{}")):
        found = pattern.match(sentence)
        if found and not _NO_KIND_OF_PERSON.match(found.group("what")):
            yield Aside(words.format(found.group("what")), sentence[found.start() : found.end("what")].strip())


__all__ = ["Aside", "asides"]
