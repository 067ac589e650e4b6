"""Part of stage 6: three word lists that separate questions about general knowledge from personal ones.

"capital", "dynasty" and "formula" belong to general knowledge; "landlord", "deposit" and "kickoff" to somebody's life;
"nearby" and "latest" to the present moment. The classifier learns a weight for each list, so that words count that
occur in no training phrase. Written from general knowledge, in English, Chinese, Spanish and German, in the files of
`topic_words`; the Chinese ones hold patterns. A list never decides on its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files

KINDS = ("now", "life", "world")  # of a word in two lists, the later one counts


def _listed(name: str) -> list[str]:
    return (files("memory.recall.signals") / "topic_words" / f"{name}.txt").read_text(encoding="utf-8").split()


_NAME_ALONE = re.compile(r"\b([A-Z][a-z]{1,11})(?:['’]s)?\b(?! (?:[A-Z]|I{1,3}\b|the Great))")
_NAMED = re.compile(r"(?:[A-Z][a-z]+|[Nn]ame|[Kk]ing|[Qq]ueen|[Pp]rince(?:ss)?|[Ss]aint|[Pp]ope) $")
_WORD = re.compile(r"[^\W_]+")
_DEFINITE = frozenset("the that this those der das den dem beim zum zur el la los las del al".split())
# Alone, they mean a person whom only the user knows ("can Jonas have nuts?").
_NAMES = frozenset(_listed("given_names"))
_KINDS = {word: f"#{kind}" for kind in KINDS for word in _listed(kind)}
_CHINESE = {f"#{kind}": re.compile("|".join(_listed(f"{kind}_zh"))) for kind in reversed(KINDS)}


def topics(text: str, folded: str) -> Iterator[str]:
    """The lists whose words occur in a text, which is also given in the form of `lexical.fold`.

    The tags are `#world`, `#life`, `#now` (`#the-life` etc. after an article), and `#somebody` for a lone given name.
    """
    for name in _NAME_ALONE.finditer(text):
        if name[1].casefold() in _NAMES and not _NAMED.search(text, 0, name.start()):
            yield "#somebody"
    yield from _spaced_topics(_WORD.findall(folded))
    if not folded.isascii():
        yield from (kind for kind, pattern in _CHINESE.items() if pattern.search(folded))


def _spaced_topics(words: Sequence[str]) -> Iterator[str]:
    for position, word in enumerate(words):
        kind = _KINDS.get(word)
        if kind is None:
            continue
        yield kind
        if not _DEFINITE.isdisjoint(words[max(0, position - 2) : position]):
            yield f"#the-{kind[1:]}"
