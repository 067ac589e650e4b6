"""What in a user's message is not the user's talk: code, logs, tables, markup, mails, quotations, presented text.

It is blanked out, character for character, so that whatever is left keeps its place in the message. Never rewrites a
character, and never judges whether what is left is meant. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from memory.learn.statements.presented import QUOTATIONS, dialogue_lines, presented, says_i
from memory.learn.statements.presented_words import SPEECH_BEFORE_A_QUOTE, SPEECH_BEHIND_A_QUOTE
from memory.learn.words.lexicon import EXPLICIT_LEAD

PARAGRAPH_CHARACTERS_MAX = 1_500  # a longer paragraph was pasted: nobody tells that much in one breath
QUOTED_WORDS_MAX = 4  # a quotation of up to so many words is a title or a name, and stays in its sentence
QUOTED_IDEOGRAPHS_MAX = 7
LEAD_CHARACTERS = 80  # before a quotation, in which it stands whose it is

_BLOCKS = (
    re.compile(r"(?s)(```|~~~).*?(?:\1|\Z)"),
    re.compile(r"(?ms)^[ \t]*(-{3,}|={3,}|_{3,}|\*{3,})[ \t]*$.*?(?:^[ \t]*\1[ \t]*$|\Z)"),
    re.compile(r"(?s)<!--.*?(?:-->|\Z)"),
    re.compile(r"(?s)<([A-Za-z][\w:-]{0,40})\b[^<>]{0,400}>.*?</\1\s*>"),
    re.compile(r"</?[A-Za-z][^<>\n]{0,400}>"),
    re.compile(r"(?m)(?:<\||\[/?INST\]|<<SYS>>|<</SYS>>).*$"),
    re.compile(r"(?m)^[ \t]*>(?! ?\d).*$"),
    re.compile(r"(?m)^[ \t]*\[//\]:.*$"),
    re.compile(r"!?\[\]\([^)\n]*\)|!\[[^\]\n]*\]\([^)\n]*\)"),
    re.compile(r"(?im)^[ \t]*[【\[](?:系统|管理员|开发者|system|admin|developer|assistant)[^】\]\n]{0,40}[】\]].*$"),
    re.compile(
        r"(?im)^[ \t]*(?:system|assistant|developer|human|user|ai|bot|系统|助手|用户|机器人)(?: prompt|"
        r" message|提示|消息)?[ \t]*[:：].*$"
    ),
    re.compile(r"(?s)^[ \t]*[{\[]\s*\"[^\"\n]{1,80}\"\s*:.*[}\]][ \t]*$"),
    re.compile(r"\{[^{}\"'\n]{0,40}[\"'][^\"'\n]{1,80}[\"']\s*:[^{}]{0,4000}\}"),
    re.compile(
        r"(?m)^[ \t]*(?:(?:async )?def \w+\(|class \w+[(:]|function \w*\(|(?:if|for|while) [^\n]*[()=\[\]<>][^\n]*:|"
        r"(?:public|private|static|func|fn) [^\n]*\(|(?:try|else|finally):)[^\n]*\n(?:[ \t]+\S[^\n]*(?:\n|\Z))+"
    ),
    # Lines that are code, settings, commands or logs
    re.compile(
        r"(?m)^[ \t]*(?:return[ \t]+(?:['\"(\[{\d]|\w+\.\w|\w+[(;]|(?:True|False|None|null|true|false)\b|\w+ ?[-+*/])|"
        r"(?:console\.\w+|System\.out\.\w+|fmt\.\w+|log(?:ger|ging)?\.\w+|printf?|alert|assert\w*)[ \t]*\(|"
        r"(?:echo|puts|print) ['\"$]|(?:var|let|const|int|float|String|auto|val) \w+ ?(?::[^=\n]{1,40})?=|"
        r"[A-Za-z_][\w.\[\]]*[ \t]*(?::|\+|=)?=[ \t]*f?['\"\[{(]|[A-Za-z_][\w.]*\(['\"][^\n]*\)[ \t]*;?[ \t]*$|"
        r"(?:SELECT [^\n]* FROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE|ALTER TABLE) \w).*$"
    ),
    re.compile(
        r"(?m)^[ \t]*(?:\[(?:[A-Z]{4,9})\]|(?:WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|CRITICAL)(?=[ \t:|-])|"
        r"\[?\d\d:\d\d:\d\d\b|\[\d{1,2}:\d\d\]|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d ).*$"
    ),
    re.compile(r"(?m)^[ \t]*(?:export )?[A-Z][A-Z0-9_]{2,}=\S.*$"),
    re.compile(
        r"(?m)^[ \t]*(?:\$ |>>> |#!|def \w+\(|class \w+[(:]|import \w|from \w+ import |#include|Traceback |"
        r"at \w+\.).*$"
    ),
    re.compile(r"(?m)^(?=.*[()=<>\[\]])[^\n]*[;{}][ \t]*$|^[ \t]*[{}\[\]()]+[ \t;,]*$"),
    re.compile(r"(?m)^[ \t]*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*$"),
    re.compile(r"(?m)^[ \t]*\|.*\|[ \t]*$"),
    re.compile(r"(?m)^(?=.*(?<!\S)_{2,}(?![\w(])).*$"),  # a form to fill in
)
# Text that is set in by a blank line and four spaces, unless it is a list or Chinese, whose paragraphs are
_SET_IN = re.compile(
    r"(?<=\S)[ \t]*\n[ \t]*\n(?:(?:[ ]{4}|\t)[ \t]*(?![-*•·–]|\d{1,2}[.)]|[\u3400-\u9fff])\S[^\n]*(?:\n|\Z))+"
)
_MAIL_HEADER = re.compile(
    r"(?im)^(?:from|to|cc|subject|date|sent|von|an|betreff|datum|de|para|asunto|发件人|收件人|主题|"
    r"日期)[ \t]*[:：].*$"
)
_SEPARATORS = (re.compile(r"(?<=[^\s\d]),(?=\S)|(?<=\d),(?=[^\s\d])"), re.compile(r"(?<=\S);(?=\S)"), re.compile(r"\t"))
_COLUMN_WORDS_MAX = 3  # of the name of a column
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff]")


def without_foreign(message: str) -> str:
    """The message, as long as it was, all that is foreign turned into line ends, so that it also ends a sentence."""
    typed = message
    for pattern in _BLOCKS:
        typed = pattern.sub(_line_ends, typed)
    if not message.startswith((" ", "\t")):  # else the user sets in all paragraphs
        typed = _SET_IN.sub(_line_ends, typed)
    for separator in _SEPARATORS:
        typed = _blanked(typed, _tables(typed, separator))
    typed = _blanked(typed, dialogue_lines(typed))
    typed = _blanked(typed, presented(message, typed))
    headers = list(_MAIL_HEADER.finditer(typed))
    if len(headers) >= 2:
        typed = _blanked(typed, [(headers[0].start(), len(typed))])
    for pattern in QUOTATIONS:
        typed = pattern.sub(_line_ends_for_speech, typed)
    return "\n".join("\n" * len(line) if len(line) > PARAGRAPH_CHARACTERS_MAX else line for line in typed.split("\n"))


def _line_ends(match: re.Match[str]) -> str:
    return "\n" * len(match.group())


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    for start, end in list(spans):
        text = text[:start] + "\n" * (end - start) + text[end:]
    return text


def _tables(text: str, separator: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Where lines under a line of column names stand, that one included."""
    lines = text.splitlines(keepends=True)
    start = 0
    for columns, group in groupby(lines, lambda line: len(separator.findall(line))):
        rows = list(group)
        end = start + sum(map(len, rows))
        if columns and len(rows) > 1 and _names_columns(rows[0], separator):
            yield start, end
        start = end


def _names_columns(line: str, separator: re.Pattern[str]) -> bool:
    is_short = all(len(cell.split()) <= _COLUMN_WORDS_MAX for cell in separator.split(line))
    return is_short and not says_i(line)


def _line_ends_for_speech(match: re.Match[str]) -> str:
    """A title stays in its sentence; whatever else is quoted goes, unless it is quoted to be remembered."""
    quoted = match.group(1)
    lead = match.string[max(0, match.start() - LEAD_CHARACTERS) : match.start()]
    if EXPLICIT_LEAD.search(lead):
        return match.group()  # "remember this: '…'" quotes what the user wants kept
    ideographs = len(_IDEOGRAPH.findall(quoted))
    is_long = ideographs > QUOTED_IDEOGRAPHS_MAX or (not ideographs and len(quoted.split()) > QUOTED_WORDS_MAX)
    return _line_ends(match) if is_long or _is_speech(match, lead) else match.group()


def _is_speech(match: re.Match[str], lead: str) -> bool:
    """Whether somebody else says it of themselves, or it is a sentence to practise on."""
    is_announced = SPEECH_BEFORE_A_QUOTE.search(lead) or SPEECH_BEHIND_A_QUOTE.match(match.string, match.end())
    return is_announced is not None and says_i(match.group(1))


__all__ = ["without_foreign"]
