"""A message cut into the user's own sentences.

What is foreign (code, quotations, pasted blocks, markup, mails) is blanked out first, character for character, so that
every sentence keeps its place in the message and is an exact substring of it. Never rewrites a character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory.learn.lexicon import EXPLICIT_LEAD, MONTH_NAMES

MESSAGE_CHARACTERS_MAX = 20_000  # past it a message is a document, whatever it says
PARAGRAPH_CHARACTERS_MAX = 1_500  # a longer paragraph was pasted: nobody tells that much in one breath
QUOTED_WORDS_MAX = 4  # a quotation of up to so many words is a title or a name, and stays in its sentence
QUOTED_IDEOGRAPHS_MAX = 7

_BLOCKS = (
    re.compile(r"(?s)(```|~~~).*?(?:\1|\Z)"),
    re.compile(r"(?ms)^[ \t]*(-{3,}|={3,}|_{3,}|\*{3,})[ \t]*$.*?(?:^[ \t]*\1[ \t]*$|\Z)"),
    re.compile(r"(?s)<!--.*?(?:-->|\Z)"),
    re.compile(r"(?s)<([A-Za-z][\w:-]{0,40})\b[^<>]{0,400}>.*?</\1\s*>"),
    re.compile(r"</?[A-Za-z][^<>\n]{0,400}>"),
    re.compile(r"(?m)(?:<\||\[/?INST\]|<<SYS>>|<</SYS>>).*$"),
    re.compile(r"(?m)^[ \t]*>.*$"),
    re.compile(r"(?m)^[ \t]*\[//\]:.*$"),
    re.compile(r"!?\[\]\([^)\n]*\)|!\[[^\]\n]*\]\([^)\n]*\)"),
    re.compile(r"(?im)^[ \t]*[【\[](?:系统|管理员|开发者|system|admin|developer|assistant)[^】\]\n]{0,40}[】\]].*$"),
    re.compile(
        r"(?im)^[ \t]*(?:system|assistant|developer|human|user|ai|bot|系统|助手|用户|机器人)(?: prompt|"
        r" message|提示|消息)?[ \t]*[:：].*$"
    ),
    re.compile(r"(?s)^[ \t]*[{\[]\s*\"[^\"\n]{1,80}\"\s*:.*[}\]][ \t]*$"),
    # Lines that are code, settings, commands or logs
    re.compile(r"(?m)^[ \t]*(?:export )?[A-Z][A-Z0-9_]{2,}=\S.*$"),
    re.compile(
        r"(?m)^[ \t]*(?:\$ |>>> |#!|def \w+\(|class \w+[(:]|import \w|from \w+ import |#include|Traceback |at \w+\.).*$"
    ),
    re.compile(r"(?m)^(?=.*[()=<>\[\]])[^\n]*[;{}][ \t]*$|^[ \t]*[{}\[\]()]+[ \t;,]*$"),
    re.compile(r"(?m)^[ \t]*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*$"),
    re.compile(r"(?m)^[ \t]*\|.*\|[ \t]*$"),
)
_MAIL_HEADER = re.compile(
    r"(?im)^(?:from|to|cc|subject|date|sent|von|an|betreff|datum|de|para|asunto|发件人|收件人|主题|日期)[ \t]*[:：].*$"
)
_QUOTES = (
    re.compile(r"“([^”]{1,4000})(?:”|\Z)"),
    re.compile(r"«([^»]{1,4000})»"),
    re.compile(r"„([^“”]{1,4000})[“”]"),
    re.compile(r"[「『]([^」』]{1,4000})[」』]"),
    re.compile(r"(?<![\w\"])\"([^\"]{1,4000})\"(?!\w)"),
    re.compile(r"(?<![^\s(:,;])['‘]((?:[^'‘’\n]|(?<=\w)['’](?=\w)){1,2000})['’](?!\w)"),
)
# "Summarise this: …": a request about a text, or its announcement; what follows is that text, not the user.
_TEXT_REQUEST = re.compile(
    r"(?im)^[ \t]*(?:(?:please|pls|hey|hi|ok|now|bitte|por favor)[, ]+)*"
    r"(?:(?:can|could|would|will) you (?:please )?|help me (?:to )?|i(?:['’]d like| want| need) you to |kannst du )?"
    r"(?:summari[sz]e|sum up|translate|proof-?read|rewrite|rephrase|paraphrase|correct|polish|decode|tidy|reformat|"
    r"improve|edit|shorten|fix|review|check|explain|convert|extract|classify|analy[sz]e|reply to|answer|"
    r"resume|traduce|corrige|revisa|mejora|fasse?|übersetze?|korrigiere?|verbessere?)\b[^\n:：.!?]{0,60}(?:[:：]|\n)"
    r"|^.{0,12}(?:润色|翻译|翻成|译成|写成|扩写|缩写|续写|总结|概括|改写|校对|转成|转换|修改|检查|纠错|解释|分析|"
    r"改成)[^\n:：。！？]{0,24}(?:[:：]|\n)"
    r"|^.{0,6}(?:这个|这段|这篇|这封|下面|以下|如下|原文|网页|文章)[^\n:：。！？]{0,16}[:：]"
    r"|^[^\n:：]{0,60}\b(?:page|text|article|mail|e-?mail|message|letter|paragraph|passage|snippet|code|log|error)\b"
    r"[^\n:：]{0,60}\?[ \t]*\n"
    r"|^[^\n:：]{0,40}\b(?:this|following|below|attached|pasted|diese[rsn]?|folgende[rsn]?|est[ea]|"
    r"siguiente)\b[^\n:：]{0,20}"
    r"\b(?:page|text|article|e-?mail|mail|message|letter|paragraph|review|readme|document|post|seite|artikel|nachricht|"
    r"página|texto|correo|artículo|mensaje)\b[^\n:：]{0,30}[:：](?!//)"
)
_ENDS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*(?=\s|$)|(?<=[。！？])[”’」』）)]*|(?<=[.!?])(?=[\u4e00-\u9fff])|\n+")
_NOT_AN_END = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|no|nr|vs|approx|ca|bzw|usw|sra?|dra?|ud|uds|etc|inc|ltd|e\.g|i\.e|z\. ?b|d\. ?h|"
    r"p\. ?ej|a\.m|p\.m|[A-Za-zÀ-ÿ])\.)$",
    re.IGNORECASE,
)
_CLOCK_TIME = re.compile(r"\b[ap]\.m\.$", re.IGNORECASE)
_ORDINAL_DAY = re.compile(r"\b\d{1,2}\.$")
_BULLET = re.compile(r"[ \t]*(?:[-*•·–—]|\d{1,2}[.)、]|\(\d{1,2}\))[ \t]+|[ \t]+")
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Sentence:
    """`message[start:end] == text`; `follows_foreign`: a block that is not the user's stands right before it."""

    text: str
    start: int
    end: int
    precedes_foreign: bool = False

    @property
    def is_marked_question(self) -> bool:
        return self.text.rstrip("\"'”’)]） ").endswith(("?", "？"))


def own_sentences(message: str) -> list[Sentence]:
    """The sentences that the user said themselves, in order; [] for a document."""
    if len(message) > MESSAGE_CHARACTERS_MAX:
        return []
    blanked = own_text(message)
    return [sentence for sentence in _sentences(message, blanked) if any(c.isalnum() for c in sentence.text)]


def own_text(message: str) -> str:
    """The message, as long as it was, all that is foreign turned into line ends, so that it also ends a sentence."""
    for pattern in _BLOCKS:
        message = pattern.sub(_line_ends, message)
    request = _TEXT_REQUEST.search(message)
    if request:
        message = message[: request.end()] + "\n" * (len(message) - request.end())
    headers = list(_MAIL_HEADER.finditer(message))
    if len(headers) >= 2:
        message = message[: headers[0].start()] + "\n" * (len(message) - headers[0].start())
    for pattern in _QUOTES:
        message = pattern.sub(_line_ends_for_long_quotes, message)
    return "\n".join("\n" * len(line) if len(line) > PARAGRAPH_CHARACTERS_MAX else line for line in message.split("\n"))


def _line_ends(match: re.Match[str]) -> str:
    return "\n" * len(match.group())


def _line_ends_for_long_quotes(match: re.Match[str]) -> str:
    quoted = match.group(1)
    if EXPLICIT_LEAD.search(match.string[max(0, match.start() - 60) : match.start()]):
        return match.group()  # "remember this: '…'" quotes what the user wants kept
    ideographs = len(_IDEOGRAPH.findall(quoted))
    is_long = ideographs > QUOTED_IDEOGRAPHS_MAX or (not ideographs and len(quoted.split()) > QUOTED_WORDS_MAX)
    return "\n" * len(match.group()) if is_long else match.group()


def _sentences(message: str, blanked: str) -> Iterator[Sentence]:
    start = 0
    for end in [*_boundaries(blanked), len(blanked)]:
        bullet = _BULLET.match(blanked, start, end)
        first = bullet.end() if bullet else start
        piece = blanked[first:end]
        text = piece.strip()
        if text:
            begin = first + len(piece) - len(piece.lstrip())
            stop = begin + len(text)
            yield Sentence(message[begin:stop], begin, stop, _stands_before_foreign(message, blanked, stop))
        start = end


def _stands_before_foreign(message: str, blanked: str, stop: int) -> bool:
    rest = message[stop : stop + 3]
    return bool(rest.strip()) and not blanked[stop : stop + 3].strip()


def _boundaries(text: str) -> Iterator[int]:
    for match in _ENDS.finditer(text):
        end = match.end()
        if match.group().startswith("\n") or not _is_abbreviated(text, end):
            yield end


def _is_abbreviated(text: str, end: int) -> bool:
    """Whether the full stop before `end` belongs to a word ("Dr.", "14. Juni") rather than ending the sentence."""
    if text[end - 1] != ".":
        return False
    before, after = text[max(0, end - 12) : end], text[end:].lstrip()
    if _CLOCK_TIME.search(before):
        return after[:1].islower()
    if _ORDINAL_DAY.search(before):
        return bool(MONTH_NAMES.match(after)) or after[:1].islower()
    return bool(_NOT_AN_END.search(before)) and not before.endswith("..")
