"""Whether a clause and what was said speak of one thing: by two words, by most words, or by the word they open with.

Words alone decide, so whoever asks has to know that something changed. It must never hold what merely shares a name for
one thing: "yoga class" and "salsa class" are two. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from memory.learn.words import change_words as words
from memory.learn.words.terms import terms
from memory.learn.words.values import differ_in_measure, values_of

_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
TOPIC_SHARE_MIN_ZH = 0.25  # two characters make a word, but four make three pairs
TOPIC_SHARE_MIN = 0.5  # of the older clause's topic words: below it, two shared words or a shared name are needed


def is_same_topic(clause: str, heading: str, changing: Sequence[str]) -> bool:
    """Whether both speak of one thing: by two words, by most words, or by the word that a clause opens with."""
    whole = "; ".join(changing)
    old, new = values_of(clause), values_of(whole)
    in_one_only = {_folded(name) for name in old.names ^ new.names} - (terms(clause) & terms(whole))
    topic = (old.topic | terms(heading)) - in_one_only
    shared = topic & new.topic
    if _is_replaced(clause, changing):
        return True
    if not shared or _are_of_two_sorts(clause, whole, shared):
        return False
    enough = TOPIC_SHARE_MIN_ZH if _IDEOGRAPH.search(clause) else TOPIC_SHARE_MIN
    if len(shared) >= 2 or len(shared) >= enough * len(topic):
        return True
    return any(_opening(text) & shared for text in changing) and (
        differ_in_measure(new, old) or bool(_opening(clause) & shared)
    )


def _is_replaced(clause: str, changing: Sequence[str]) -> bool:
    """ "My locker is number 41" and "they gave me another locker": the thing is named, and it is another one."""
    things = [match["thing"] for text in changing for match in words.ANOTHER.finditer(text)]
    return any(_opening(clause) & terms(thing) for thing in things)


def _folded(name: str) -> str:
    return next(iter(terms(name)), name)


def _opening(text: str) -> frozenset[str]:
    """The first word of matter."""
    for piece in re.findall(r"[\u3400-\u9fff]+|[^\s\u3400-\u9fff]+", text):
        ideographs = "\u3400" <= piece[0] <= "\u9fff"
        found = terms(piece.lstrip("我们咱的")[:2] if ideographs else piece)
        if found:
            return found
    return frozenset()


def _are_of_two_sorts(clause: str, text: str, shared: Collection[str]) -> bool:
    """ "Yoga class" and "salsa class": each shared word is told apart by the word before it."""
    for word in shared:
        before_old, before_new = _word_before(clause, word), _word_before(text, word)
        if not before_old or not before_new or before_old == before_new or {before_old, before_new} & set(shared):
            return False
    return True


def _word_before(text: str, word: str) -> str:
    """The word of matter right before `word`, or ""."""
    matter = [found for found in map(terms, re.findall(r"[A-Za-zÀ-ÿ'’-]+", text)) if found]
    for previous, current in pairwise(matter):
        if word in current:
            return next(iter(previous))
    return ""


__all__ = ["is_same_topic"]
