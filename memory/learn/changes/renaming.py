"""A name put right: "her name is Mira, not Mia" changes how she is called, and nothing else that is known of Mia.

Only what says both names, the right one and the wrong one, and that they are names. It must never touch what merely
speaks of the one who bears the name. Patterns, each linear in its text. Pure.
"""

from __future__ import annotations

import re

IGNORE_CASE = re.IGNORECASE

_CALLED = (
    r"(?:\bname(?:['’]s| is| was|:)|\b(?:is|are|was|['’]s) (?:called|named|spelled|spelt)|"
    r"\bheiß(?:t|e)|\bname (?:ist|war)|\b(?:se|me) llama(?:ba)?|\bllamo|\bnombre es)"
)
_NAME = r"(?-i:[A-ZÀ-Þ])[\w'’-]*(?: (?-i:[A-ZÀ-Þ])[\w'’-]*)?"
_RENAMED = re.compile(
    rf"{_CALLED} (?P<right>{_NAME})[,;]? (?:and |und |y )?(?:not|nicht|no) (?P<wrong>{_NAME})|"
    rf"{_CALLED} (?:not|nicht|no) (?P<wrong_first>{_NAME})[,;]? (?:but |it['’]s |sondern |sino )?{_NAME}|"
    "(?:叫|名字是|姓)(?P<right_zh>[^，,。；不]{1,6})[，,]?(?:而?不[叫是姓]|不是叫)(?P<wrong_zh>[^，,。；]{1,6})|"
    "不叫(?P<wrong_zh_first>[^，,。；]{1,6}?)[，,]?(?:而?是)?叫[^，,。；]{1,6}",
    IGNORE_CASE,
)


def wrong_name(text: str) -> str:
    """The name that `text` says is none: "Mia" of "her name is Mira, not Mia", or ""."""
    match = _RENAMED.search(text)
    if match is None:
        return ""
    named = (match[group] for group in ("wrong", "wrong_first", "wrong_zh", "wrong_zh_first"))
    return next((name for name in named if name), "").rstrip("的了")


def without_renaming(text: str) -> str:
    """What `text` says besides."""
    return _RENAMED.sub(" ", text)


def tells_name(clause: str, name: str) -> bool:
    """Whether the clause tells that somebody or something is called so: "my niece is called Mia", "my niece is Mia"."""
    known = re.escape(name)
    pattern = rf"(?:{_CALLED}|\b(?:is|ist|es)) {known}(?!['’\w])|(?:叫|名字是|姓|是){known}(?=[，,。；了]|$)"
    return re.search(pattern, clause, IGNORE_CASE) is not None


__all__ = ["tells_name", "without_renaming", "wrong_name"]
