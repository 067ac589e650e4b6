"""Detects text that a model reads and nobody sees: invisible characters, markup that is not displayed, and words in
disguise: of letters of other alphabets that look alike, or letter by letter.

Emoji, scripts with joined letters, and direction marks around names use some of the same characters legitimately. Does
not interpret words. Pure.
"""

from __future__ import annotations

import unicodedata
from itertools import groupby, pairwise

from markdown_it import MarkdownIt

SHAPELESS_MAX = 8  # invisible characters that a text may have; bidirectional scripts need a few
RUN_MIN = 3  # invisible characters in a row; emoji have two: a selector and a joiner
LOOK_ALIKE = {"LATIN", "GREEK", "CYRILLIC"}
SPELLED_MIN = 12  # single letters in a row: more than a name has that is spelled
DISGUISED_MIN = 2  # words whose alphabet changes twice or more: "TNFα" has one change
HIDDEN_WORDS_MIN = 3  # of a comment; "<!-- nav -->" in a pasted page has no effect on a model

JOINERS = "\u200c\u200d\u00ad"  # zero-width joiners of emoji and scripts, soft hyphens
MARK = "\ufeff"  # a byte-order mark at the beginning of a file
OVERRIDES = "\u202a\u202b\u202d\u202e"  # override the direction in which text is displayed
ISOLATES, ISOLATE_END = "\u2066\u2067\u2068", "\u2069"  # isolate a name from the direction of the text around it
FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # count as letters or marks and have no shape
FLAG, TAG_END = "\U0001f3f4", "\U000e007f"  # a black flag followed by tags is the flag of a region
FLAG_TAGS_MAX = 6
PICTURES_FIRST, PICTURES_LAST = "\U0001f000", "\U0001fbff"  # the range of new emoji, which Python may not know yet
UNSEEN_STYLES = ("display:none", "visibility:hidden", "font-size:0", "opacity:0")
UNSEEN_TARGETS = ("", "#")  # link targets of Markdown comments: "[//]: # (a comment)"

_markdown = MarkdownIt("commonmark").enable("table")
_without_isolates = dict.fromkeys(map(ord, ISOLATES + ISOLATE_END))


def hides_text(message: str) -> bool:
    """Whether the message hides text. Takes time proportional to its length."""
    return _has_shapeless(message) or _has_unseen_markup(message) or _is_disguised(message)


def shown(text: str) -> str:
    """The text without direction marks around names."""
    return text if text.isascii() else text.translate(_without_isolates)


def _has_shapeless(message: str) -> bool:
    if message.isascii():
        return False
    text = _without_flags(message).removeprefix(MARK)
    if any(c in OVERRIDES or _is_tag(c) for c in text) or not _is_balanced(text):
        return True
    text = shown(text)
    runs = (len(list(run)) for is_shapeless, run in groupby(text, _is_shapeless) if is_shapeless)
    if max(runs, default=0) >= RUN_MIN:
        return True
    pairs = zip(" " + text, text, strict=False)
    return sum(_is_shapeless(c) and not _belongs(before, c) for before, c in pairs) >= SHAPELESS_MAX


def _is_disguised(message: str) -> bool:
    words = message.split()
    runs = (len(list(run)) for is_letter, run in groupby(words, _is_cased_letter) if is_letter)
    if max(runs, default=0) >= SPELLED_MIN:
        return True
    return sum(not word.isascii() and _alphabet_changes(word) >= 2 for word in words) >= DISGUISED_MIN


def _is_cased_letter(word: str) -> bool:
    return len(word) == 1 and word.upper() != word.lower()


def _alphabet_changes(word: str) -> int:
    alphabets = [unicodedata.name(c, "").partition(" ")[0] for c in word]
    return sum(one != other and {one, other} <= LOOK_ALIKE for one, other in pairwise(alphabets))


def _is_shapeless(c: str) -> bool:
    if c <= "\x7f" or PICTURES_FIRST <= c <= PICTURES_LAST:
        return False
    return c in FILLERS or _is_selector(c) or unicodedata.category(c) in ("Cf", "Co", "Cn")


def _is_selector(c: str) -> bool:
    return "\ufe00" <= c <= "\ufe0f" or "\U000e0100" <= c <= "\U000e01ef"


def _is_tag(c: str) -> bool:
    return "\U000e0000" <= c <= "\U000e007f"


def _belongs(before: str, c: str) -> bool:
    """Whether the character is needed there: a joiner between letters that join, or a variation selector."""
    if c in JOINERS:
        return before > "\x7f" or c == "\u00ad"
    if "\ufe00" <= c <= "\ufe0f":
        return before > "\x7f" or before in "0123456789#*"
    return c >= "\U000e0100" and unicodedata.category(before) == "Lo"


def _without_flags(text: str) -> str:
    """The text without flags of regions, which are written with tag characters; no other tags are removed."""
    if FLAG not in text:
        return text
    first, *others = text.split(FLAG)
    for index, part in enumerate(others):
        tags, end, rest = part[: FLAG_TAGS_MAX + 1].partition(TAG_END)
        if end and all(map(_is_tag, tags)):
            others[index] = rest + part[FLAG_TAGS_MAX + 1 :]
    return "".join((first, *others))


def _is_balanced(text: str) -> bool:
    """Whether every isolate is closed in its line, and nothing else is."""
    depth = 0
    for c in text:
        depth += (c in ISOLATES) - (c == ISOLATE_END)
        if depth < 0 or (depth and c == "\n"):
            return False
    return not depth


def _has_unseen_markup(message: str) -> bool:
    if "<" not in message and "]:" not in message:
        return False
    noted: dict[str, dict[str, dict[str, str]]] = {}
    tokens = [token for one in _markdown.parse(message, noted) for token in (one, *(one.children or ()))]
    if any(token.type in ("html_block", "html_inline") and _is_unseen(token.content) for token in tokens):
        return True
    references = noted.get("references", {}).values()
    return any(one["href"] in UNSEEN_TARGETS and _is_said(one["title"]) for one in references)


def _is_unseen(html: str) -> bool:
    """Whether it has a comment with content, or an element hidden by its style."""
    _, *comments = html.split("<!--")
    if any(_is_said(comment.partition("-->")[0]) for comment in comments):
        return True
    squashed = "".join(html.casefold().split())
    return "style=" in squashed and any(style in squashed for style in UNSEEN_STYLES)


def _is_said(text: str) -> bool:
    return len(text.split()) >= HIDDEN_WORDS_MIN or any(c.isalpha() and not c.isascii() for c in text)
