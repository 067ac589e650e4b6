"""Sanitises stored text for a line of a prompt.

Stored text may have been shaped by users, tools and web pages: it must not be able to end our frame, start a chat role,
or hide characters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

LINE_CHARACTERS_MAX = 2_000  # of one memory: no single statement is that long, and a pasted page must not fill the note
LINES_REMEMBERED = 2_048  # cached lines: some MB at most, with ordinary lines half of one

# Angle brackets end our frame and begin the roles of most chat templates ("<|im_start|>"); full-width ones do not.
_ESCAPES = str.maketrans(
    {"<": "&lt;", ">": "&gt;", "\uff1c": "&lt;", "\uff1e": "&gt;", "\ufe64": "&lt;", "\ufe65": "&gt;"}
)
_TEMPLATE_MARK = re.compile(
    r"\[(/?[A-Z_]{3,24})\]"
)  # "[INST]", "[/INST]", "[TOOL_CALLS]": the roles of other templates


@lru_cache(LINES_REMEMBERED)  # the same memory is counted, selected and rendered again soon
def on_one_line(content: str) -> str:
    """Sanitised text: one line, no invisible characters, no brackets that have a meaning in a chat template."""
    shown = content if content.isprintable() else "".join(map(_shown, content))
    shown = " ".join(shown.split())
    if len(shown) > LINE_CHARACTERS_MAX:
        shown = shown[:LINE_CHARACTERS_MAX].rstrip() + " …"
    return _TEMPLATE_MARK.sub(r"(\1)", shown).translate(_ESCAPES)


def _shown(character: str) -> str:
    """Nothing for invisible characters (zero-width, directional, lone surrogates), a space for control characters."""
    match unicodedata.category(character):
        case "Cf" | "Cs":
            return ""
        case "Cc" | "Zl" | "Zp":
            return " "
        case _:
            return character
