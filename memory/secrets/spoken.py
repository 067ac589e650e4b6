"""Finds secrets announced by a label: "the wifi password for guests is blue-otter-42", "PIN: 4471", "密码是…".

A small grammar: a label, optionally its purpose, a link, the value; or the value, a link and "my" label. The words are
data (`labels/*.toml`), the value parsers are in `value_readers`. Talk about secrets must not match, and a match never
extends beyond a sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from memory.secrets.plain_text import SENTENCE_END, PlainText
from memory.secrets.secret_classes import Span
from memory.secrets.value_readers import CHOSEN_KINDS, Certainty, Values, ends_sentence
from memory.secrets.values import value_shape
from memory.secrets.vocabulary import LabelMatch, LabelMatches, ValueKind, Vocabulary

REACH_CHARACTERS = 160  # from a label to its value
LINK_CHARACTERS = 16  # of the longest link between a value and the label after it
BEFORE_CHARACTERS = 120  # in which a value may precede its label
LABELS_CROSSED_MAX = 4  # labels between a label and its value: "the PIN of my card is …"
LIST_MAX = 24  # values after one label
_WITHOUT_VALUE = (ValueKind.CONTEXT, ValueKind.NOTHING)
IDENTIFIER_CHARACTERS = 24  # of the rest of an identifier after its label: "_TOKEN_2", "KeyId"


class _Matches:
    """The matches of a pattern in a text, computed once, since neighbouring labels share the text after them.

    `windows`: start and end of each range in which matches may begin; in order, and not overlapping.
    Equivalent to `finditer` from any position, except that it does not look past the end.
    """

    __slots__ = ("_found", "_starts")

    def __init__(self, pattern: re.Pattern[str], text: str, windows: Iterable[tuple[int, int]]) -> None:
        self._found: list[re.Match[str]] = []
        self._starts: list[int] = []
        search, match, end = pattern.search, pattern.match, len(text)
        for begin, stop in windows:
            while begin < stop and (found := search(text, begin, stop)):
                place = found.start()
                begin = place + 1
                if stop == end or (found := match(text, place)):  # not forbidden by what stands behind the window
                    self._found.append(found)
                    self._starts.append(place)

    def first_from(self, place: int, otherwise: int) -> int:
        """The start of the first match at or after `place`, or `otherwise`."""
        index = bisect_left(self._starts, place)
        return min(self._starts[index], otherwise) if index < len(self._starts) else otherwise

    def last_before(self, place: int) -> re.Match[str] | None:
        """The last match that ends at or before `place`."""
        for index in range(bisect_left(self._starts, place) - 1, -1, -1):
            if self._found[index].end() <= place:
                return self._found[index]
        return None

    def between(self, begin: int, stop: int) -> Iterator[re.Match[str]]:
        for index in range(bisect_left(self._starts, begin), len(self._found)):
            found = self._found[index]
            if found.start() >= begin and found.end() <= stop:
                yield found
                begin = found.end()
            elif found.start() >= stop:
                return


def spoken_spans(plain: PlainText, labels: LabelMatches, vocabulary: Vocabulary) -> Iterator[Span]:
    """Unordered; may overlap."""
    found = labels.all
    if not found:
        return
    values_of, whole = Values(plain, vocabulary), [(0, len(plain.text))]
    ends = _Matches(SENTENCE_END, plain.text, whole)
    announcing = [index for index, label in enumerate(found) if label.words.kind not in _WITHOUT_VALUE]
    reaches = [_reach(plain, found, index, ends) for index in announcing]
    windows = _merged([(found[index].end, stop) for index, stop in zip(announcing, reaches, strict=True)])
    links = _Matches(vocabulary.link, plain.lower, windows)
    owners = cache(lambda: _Matches(vocabulary.owner, plain.lower, whole))
    for index, stop in zip(announcing, reaches, strict=True):
        label, begin = found[index], found[index - LABELS_CROSSED_MAX].start if index >= LABELS_CROSSED_MAX else 0
        values = list(_behind(values_of, label, stop, links)) or list(_before(values_of, label, begin, owners, ends))
        for start, end in values:
            yield start, end, label.words.secret_class


def _reach(plain: PlainText, found: Sequence[LabelMatch], index: int, ends: _Matches) -> int:
    """Up to where the value of a label is searched: within its sentence."""
    end, crossed = found[index].end, index + LABELS_CROSSED_MAX
    stop = found[crossed].start if crossed < len(found) else len(plain.text)
    return ends.first_from(end + 2, min(stop, end + REACH_CHARACTERS))


def _merged(windows: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for begin, stop in sorted(windows):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        elif begin < stop:
            merged.append((begin, stop))
    return merged


def _behind(values: Values, label: LabelMatch, stop: int, links: _Matches) -> Iterator[tuple[int, int]]:
    plain, vocabulary = values.plain, values.vocabulary
    found = values.read_value(label.end, label.words, Certainty.BARE)
    if found:
        yield from _listed(values, found, label)
    for link in links.between(label.end, stop):
        if found and link.lastgroup != "late_links":
            continue
        certainty = _certainty(plain, label, link.start(), str(link.lastgroup), vocabulary)
        if certainty is None:
            continue
        value = values.read_value(link.end(), label.words, certainty)
        if value:
            found = value
            yield from _listed(values, value, label)


def _certainty(plain: PlainText, label: LabelMatch, link: int, name: str, vocabulary: Vocabulary) -> Certainty | None:
    """How certain the link makes a value; None if it is about something else."""
    if name == "late_links":
        return Certainty.LATE
    gap = plain.lower[label.end : link].strip(" \n*_`\"')]")
    is_linked = gap[:1].isalpha() and vocabulary.link.fullmatch(gap)  # "is:"
    is_direct = not gap or gap in vocabulary.fillers or bool(is_linked)
    is_identifier = not is_direct and _is_identifier_rest(plain.text[label.end : link])
    if name == "sign":
        in_prose = Certainty.LATE if ":" in plain.text[link : link + 2] else None
        return Certainty.SIGN if is_direct else Certainty.NAMED if is_identifier else in_prose
    if name == "dash":
        return Certainty.LATE if is_direct or vocabulary.preposition.match(gap) else None
    if not is_direct and not vocabulary.preposition.match(gap):
        return None
    return Certainty.LINK if name == "links" else Certainty.CHANGE


def _is_identifier_rest(gap: str) -> bool:
    rest = gap.strip("\"' \t")
    is_one = len(rest) <= IDENTIFIER_CHARACTERS and rest.replace("_", "").replace("-", "").replace(".", "").isalnum()
    return is_one and (gap[0] in "_-." or gap[0].isupper() or gap[0].isdigit())


def _listed(values: Values, value: tuple[int, int], label: LabelMatch) -> Iterator[tuple[int, int]]:
    """The value, and others of the same form in a list after it: "4821-9921, 1123-8842 and 7741-0032"."""
    plain, vocabulary = values.plain, values.vocabulary
    yield value
    for _ in range(LIST_MAX):
        join = vocabulary.join.match(plain.lower, value[1])
        found = values.read_value(join.end(), label.words, Certainty.LISTED) if join else None
        if not found or value_shape(plain.text[slice(*found)]) != value_shape(plain.text[slice(*value)]):
            return
        value = found
        yield value


def _before(
    values: Values, label: LabelMatch, begin: int, owners: Callable[[], _Matches], ends: _Matches
) -> Iterator[tuple[int, int]]:
    """A value before its label: "hunter2 is my password", "that's Kuckuck77, our wifi password"."""
    plain, vocabulary = values.plain, values.vocabulary
    made = values.first_made(max(0, label.start - BEFORE_CHARACTERS)) if label.words.kind in CHOSEN_KINDS else None
    if made is None or (made >= label.start and plain.text.find(" ", label.start, made) >= 0):
        return  # none that certain is without digits
    owner = owners().last_before(label.start)
    sentence_end = ends.last_before(label.start)
    begin = max(begin, sentence_end.end() if sentence_end else 0, label.start - BEFORE_CHARACTERS)
    if owner is None or owner.start() < begin or plain.lower.count(" ", owner.end(), label.start) > 4:
        return
    if _goes_on(plain, label.end, vocabulary):
        return
    lead = plain.lower[begin : owner.start()].rstrip()
    last = max(0, len(lead) - LINK_CHARACTERS)
    links = [link for link in vocabulary.link.finditer(lead, last) if link.end() == len(lead)]
    end = begin + (links[-1].start() if links else len(lead) if lead.endswith(",") else 0)
    text = plain.text[begin:end].rstrip(" ,\"'`")
    start = begin + max(text.rfind(blank) for blank in " \n\t\"'`") + 1
    value = values.read_value(start, label.words, Certainty.BEFORE) if end > begin else None
    if value and value[1] >= begin + len(text):
        yield value


def _goes_on(plain: PlainText, end: int, vocabulary: Vocabulary) -> bool:
    """Whether a noun or a verb follows: "my password manager", "my password was"."""
    following = plain.lower[end : end + BEFORE_CHARACTERS].lstrip(" ")
    return not (
        ends_sentence(plain, end) or vocabulary.preposition.match(following) or vocabulary.join.match(following)
    )
