"""The prompts of learning: files beside this module, with examples that an operator may add to.

A prompt's version is a hash of all that it is made of, so that every memory can say what it was made by. What comes
first never varies between two calls, so that a model server's prefix cache holds it. Nothing here judges an answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from memory.errors import BadSetting
from memory.model import Message, Role

VERSION_CHARACTERS = 8
TOPICS_LEAD = "Look for these above all:"


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of an operator's own: what was said, what the assistant said before, and whether it is to be kept."""

    said: str
    keep: bool
    before: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What stands before each question: the same messages at every call."""

    version: str
    head: tuple[Message, ...]

    def asked(self, question: str) -> list[Message]:
        return [*self.head, Message(Role.USER, question)]


def prompt_of(name: str, pairs: Sequence[tuple[str, Any]], *, topics: Sequence[str] = ()) -> Prompt:
    """The instruction in `NAME.txt`, then `pairs` of a question and the answer that it should get, as JSON."""
    instruction = _text(f"{name}.txt").strip()
    if topics:
        instruction += f"\n{TOPICS_LEAD} {'; '.join(topics)}."
    head = [Message(Role.SYSTEM, instruction)]
    for question, answer in pairs:
        head += [Message(Role.USER, question), Message(Role.ASSISTANT, compact(answer))]
    seed = "\x1f".join(message.content for message in head)
    return Prompt(hashlib.sha256(seed.encode()).hexdigest()[:VERSION_CHARACTERS], tuple(head))


def compact(answer: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """As short as JSON gets: a model that sees it so writes it so, and each token takes time."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


@cache
def shipped_examples(name: str) -> list[dict[str, Any]]:
    """Those of the file `NAME_examples.json`."""
    read: list[dict[str, Any]] = json.loads(_text(f"{name}_examples.json"))
    return read


def own_examples(path: str) -> tuple[Example, ...]:
    """The examples in the operator's file, a JSON list; none without a path. Raises `BadSetting`."""
    if not path:
        return ()
    try:
        return tuple(msgspec.json.decode(Path(path).read_bytes(), type=list[Example]))
    except OSError as error:
        raise BadSetting(f"memory.extraction.examples: {path!r} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadSetting(
            f'memory.extraction.examples: expected a JSON list of {{"said", "keep", "before"?}}, got {error}'
        ) from error


def _text(name: str) -> str:
    return files("memory.learn.llm").joinpath("prompts", name).read_text(encoding="utf-8")


__all__ = ["Example", "Prompt", "compact", "own_examples", "prompt_of", "shipped_examples"]
