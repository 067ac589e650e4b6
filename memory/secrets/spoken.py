"""Secrets that a label announces: "the wifi password for guests is blue-otter-42", "PIN: 4471", "密码是…".

A small grammar: a label, perhaps what it is for, a link, the value; or the value, a link and "my" label. The words are
data (`labels/*.toml`), the readers of values are in `value_readers`. It must never take talk about secrets for one, nor
look further than a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator

from memory.secrets.plain_text import PlainText
from memory.secrets.secret_classes import Span
from memory.secrets.value_readers import Certainty, ends_sentence, read_value
from memory.secrets.values import value_shape
from memory.secrets.vocabulary import Kind, Label, Labels, Vocabulary

REACH_CHARACTERS = 160  # from a label to its value
LINK_CHARACTERS = 16  # of the longest link between a value and the label behind it
BEFORE_CHARACTERS = 120  # in which a value may stand before its label
LABELS_CROSSED_MAX = 4  # between a label and its value: "the PIN of my card is …"
LIST_MAX = 24  # values behind one label
IDENTIFIER_CHARACTERS = 24  # of a name's rest behind its label: "_TOKEN_2", "KeyId"


def spoken_spans(plain: PlainText, labels: Labels, vocabulary: Vocabulary) -> Iterator[Span]:
    """In no order; they may overlap."""
    found = labels.all
    for index, label in enumerate(found):
        if label.words.kind is Kind.CONTEXT:
            continue
        stop = found[index + LABELS_CROSSED_MAX].start if index + LABELS_CROSSED_MAX < len(found) else len(plain.text)
        begin = found[index - LABELS_CROSSED_MAX].start if index >= LABELS_CROSSED_MAX else 0
        values = list(_behind(plain, label, stop, vocabulary)) or list(_before(plain, label, begin, vocabulary))
        for start, end in values:
            yield start, end, label.words.secret_class


def _behind(plain: PlainText, label: Label, stop: int, vocabulary: Vocabulary) -> Iterator[tuple[int, int]]:
    found = read_value(plain, label.end, label.words, Certainty.BARE, vocabulary)
    if found:
        yield from _listed(plain, found, label, vocabulary)
    stop = min(stop, plain.sentence_end(label.end + 2, label.end + REACH_CHARACTERS))
    for link in vocabulary.link.finditer(plain.lower, label.end, stop):
        certainty = _certainty(plain, label, link.start(), str(link.lastgroup), vocabulary)
        if certainty is None or (found and link.lastgroup != "late_links"):
            continue
        value = read_value(plain, link.end(), label.words, certainty, vocabulary)
        if value:
            found = value
            yield from _listed(plain, value, label, vocabulary)


def _certainty(plain: PlainText, label: Label, link: int, name: str, vocabulary: Vocabulary) -> Certainty | None:
    """How sure a link makes that a value follows; None where it is about something else."""
    gap = plain.lower[label.end : link].strip(" \t*_`\"')]")
    is_linked = gap[:1].isalpha() and vocabulary.link.fullmatch(gap)  # "is:"
    is_direct = not gap or gap in vocabulary.fillers or bool(is_linked)
    is_identifier = not is_direct and _is_identifier_rest(plain.text[label.end : link])
    if name == "sign":
        in_prose = Certainty.LATE if ":" in plain.text[link : link + 2] else None
        return Certainty.SIGN if is_direct else Certainty.NAMED if is_identifier else in_prose
    if name == "dash":
        return Certainty.LATE if is_direct or vocabulary.preposition.match(gap) else None
    if name == "late_links":
        return Certainty.LATE
    if not is_direct and not vocabulary.preposition.match(gap):
        return None
    return Certainty.LINK if name == "links" else Certainty.CHANGE


def _is_identifier_rest(gap: str) -> bool:
    rest = gap.strip("\"' \t")
    is_one = len(rest) <= IDENTIFIER_CHARACTERS and rest.replace("_", "").replace("-", "").replace(".", "").isalnum()
    return is_one and (gap[0] in "_-." or gap[0].isupper() or gap[0].isdigit())


def _listed(
    plain: PlainText, value: tuple[int, int], label: Label, vocabulary: Vocabulary
) -> Iterator[tuple[int, int]]:
    """The value and those of the same shape that are listed behind it: "4821-9921, 1123-8842 and 7741-0032"."""
    yield value
    for _ in range(LIST_MAX):
        join = vocabulary.join.match(plain.lower, value[1])
        found = read_value(plain, join.end(), label.words, Certainty.LISTED, vocabulary) if join else None
        if not found or value_shape(plain.text[slice(*found)]) != value_shape(plain.text[slice(*value)]):
            return
        value = found
        yield value


def _before(plain: PlainText, label: Label, begin: int, vocabulary: Vocabulary) -> Iterator[tuple[int, int]]:
    """The value, where it comes first: "hunter2 is my password", "that's Kuckuck77, our wifi password"."""
    if label.words.kind not in (Kind.PASSWORD, Kind.CODE) or _goes_on(plain, label.end, vocabulary):
        return
    begin = max(begin, plain.sentence(label.start, label.end)[0], label.start - BEFORE_CHARACTERS)
    owners = list(vocabulary.owner.finditer(plain.lower, begin, label.start))
    if not owners or plain.lower.count(" ", owners[-1].end(), label.start) > 4:
        return
    lead = plain.lower[begin : owners[-1].start()].rstrip()
    last = max(0, len(lead) - LINK_CHARACTERS)
    links = [link for link in vocabulary.link.finditer(lead, last) if link.end() == len(lead)]
    end = begin + (links[-1].start() if links else len(lead) if lead.endswith(",") else 0)
    text = plain.text[begin:end].rstrip(" ,\"'`")
    start = begin + max(text.rfind(blank) for blank in " \n\t\"'`") + 1
    value = read_value(plain, start, label.words, Certainty.BEFORE, vocabulary) if end > begin else None
    if value and value[1] >= begin + len(text):
        yield value


def _goes_on(plain: PlainText, end: int, vocabulary: Vocabulary) -> bool:
    """Whether a noun or a verb follows: "my password manager", "my password was"."""
    following = plain.lower[end : end + BEFORE_CHARACTERS].lstrip(" ")
    return not (
        ends_sentence(plain, end) or vocabulary.preposition.match(following) or vocabulary.join.match(following)
    )


__all__ = ["spoken_spans"]
