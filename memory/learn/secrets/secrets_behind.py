"""Secrets that stand further behind the word that announces them: after talk, as a phrase, or as a second one.

"My password is long and it is Larkspur58", "my password is on the door: finch31", "hers is Robin77 and mine is Wren88".
It looks only at the rest of a sentence in which a secret was announced, and must never take a word that is mere talk.
Pure, and looks at no more than REACH_CHARACTERS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

REACH_CHARACTERS = 120  # of the rest of a sentence

_IGNORE_CASE = re.IGNORECASE
_DIGIT = re.compile(r"\d")
_SENTENCE_END = re.compile(r"\n|[。！？]|[.!?](?=\s|$)")
_VALUE = r"[^\s\"'“”’,;:，。；]{4,64}"
_HAS_NUMBER = r"(?=[^\s\"'“”’,;:，。；]{0,60}\d)"
_TOLD_BEHIND = re.compile(  # "long and it is Larkspur58", "on the door: finch31"
    rf"(?::\s+|：\s*|\b(?:(?:it|that|this)(?:['’]s| is)|namely|i\.e\.|er lautet|es lautet|und zwar|a saber)\s+|"
    r"就是|即)[\"'“‘]?"
    rf"(?P<value>(?!/|\d{{1,3}}-?[A-Za-z]+(?![\w!])){_HAS_NUMBER}{_VALUE}|\d(?:[ -]?\d){{3,11}}(?!\d))",
    _IGNORE_CASE,
)
_MADE = r"(?=[^\s,;]{0,60}[A-Za-z])(?=[^\s,;]{0,60}\d[^\s,;]{0,20}\d)[^\s\"'“”’,;:]{5,64}"
_IN_APPOSITION = re.compile(  # "my cat's name, Tom2011"
    rf",\s*(?P<value>(?![^\s@]{{1,60}}@[\w-]{{1,60}}\.){_MADE}|\d{{6,12}})(?=\s*(?:[,;.!?]|$))"
)
_DENIED_OR_KEPT = re.compile(  # "not Wren8845 but Robin7712", "still Wren8845"
    rf"(?:\b(?:not|but|still|always|now|just|nicht|sondern|immer noch|sino))\s+(?P<value>{_MADE})(?=[\s,;.!?]|$)",
    _IGNORE_CASE,
)
_ANOTHER = re.compile(  # "and mine is Wren88", "the other one is Wren88"
    r"(?:\b(?:mine|hers|his|ours|theirs|yours|"
    r"(?:the|my) (?:other|second|old|new|first|third)(?: (?:one|password|pin))?|"
    r"(?:my|his|her|our) [\w’-]{2,20}['’]s(?: (?:one|password|pin))?|"
    r"mein(?:e?s|er)|ihre?s|seine?s|das andere|la mía|el mío|la otra)\s+(?:is|was|ist|lautet|es)|"
    r"(?:我|他|她|我们|另一个|他们)的?(?:密码)?是)\s*[\"'“‘]?(?P<value>[^\s\"'“”’,;，。；]{3,64})|"
    r"(?:\b(?:and|or|then|und|oder|dann|y|o)|,)\s+(?P<joined>"
    rf"{_MADE})\s+(?:for|on|at|für|bei|para|en)\b",
    _IGNORE_CASE,
)
_BARE_WORDS = re.compile(r"(?:[ -][a-z]{3,12}){1,7}(?=\s*(?:[.!?,;\n]|$)|\s(?:and|but|for|on|at|in|und|y)\b)")
# Words that prose cannot do without; a phrase of chance words has none of them.
_OF_PROSE = frozenset(
    "about according after again all and any anyway apparently are because been before but buy can could day does "
    "ever every everywhere everyone for from had has have her here him his how into its let like made make many "
    "maybe month more most much must need needs never not now often once our out over please plus probably said "
    "say says she should since site some somehow still such sure tell than thank thanks that the their them then "
    "there they this though time times today tomorrow too twice use used using want was week when where which who "
    "why will with word words work works would year years yesterday yet you your account accounts app website "
    "browser sagt meine mein dein sein enough think believe guess help remember type "
    "aber als auch auf aus bei bin bitte das dass dem den denn der die doch ein eine er es für genug glaube hat ich "
    "ihn immer ist jetzt man mehr mein mir mit nach nicht noch nur oder schon seit sich sie sind und von vor war "
    "weil wenn wie wir zum zur como con cuando del desde donde ella ellos hace las los más mis muy nada para pero "
    "por porque que según ser siempre sin sobre son soy tan tiene todo una uno ya".split()
)


def told_behind(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the rest of the sentence tells a secret, though talk about it stands from `start` to `end`."""
    stop = _sentence_end(text, end)
    if not _DIGIT.search(text, start, stop):  # each of them holds one
        return
    for pattern, begin in ((_TOLD_BEHIND, end), (_IN_APPOSITION, end), (_DENIED_OR_KEPT, start)):
        for match in pattern.finditer(text, begin, stop):
            yield _span(match, "value")


def others_behind(text: str, end: int) -> Iterator[tuple[int, int]]:
    """Where further ones may stand behind one that ends at `end`; whether they are talk, the caller judges."""
    for match in _ANOTHER.finditer(text, end, _sentence_end(text, end)):
        yield _span(match, "joined" if match["joined"] else "value")


def phrase_end(text: str, start: int, end: int, words_min: int) -> int:
    """Where a phrase of `words_min` bare words or more ends that begins with the word from `start` to `end`.

    `end` if it is no phrase.
    """
    match = _BARE_WORDS.match(text, end)
    if not match or not text[start:end].isalpha():
        return end
    words = re.split("[ -]", match.group())[1:]
    is_phrase = len(words) + 1 >= words_min and _OF_PROSE.isdisjoint(words)
    return match.end() if is_phrase else end


def _sentence_end(text: str, end: int) -> int:
    limit = min(len(text), end + REACH_CHARACTERS)
    found = _SENTENCE_END.search(text, end, limit)
    return found.start() if found else limit


def _span(match: re.Match[str], group: str) -> tuple[int, int]:
    start = match.start(group)
    return start, start + len(match[group].rstrip(".?)"))


__all__ = ["others_behind", "phrase_end", "told_behind"]
