"""Runs work on long texts off the event loop, and keeps it from holding the loop up.

Secrets are looked for text by text, in usual texts in a thread, and in long ones in a process: however many arrive, the
loop shares the interpreter with one of them. Must not be used for work that holds a lock or touches shared state.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import TypeVar

import structlog

from memory.runtime.process_apart import ProcessApart, ProcessLost

HEAVY_CHARACTERS = 1_024  # finding secrets in so many takes up to 10 ms
# For how long a thread may keep the interpreter while the loop wants it. A chat wants it some 20 times: Python's own
# 5 ms would delay it by 100.
SWITCH_SECONDS = 0.0005
PAUSE_SECONDS = 0.0002  # between two slices of a long text
LONG_CHARACTERS = 8_192  # such texts wait for one another; what people type does not wait for them

T = TypeVar("T")
log = structlog.get_logger(__name__)


def switch_often() -> None:
    """For processes that serve chats."""
    sys.setswitchinterval(SWITCH_SECONDS)


def pause() -> None:
    """Between two slices of long work in a thread: the loop goes first then, if it has something to do."""
    time.sleep(PAUSE_SECONDS)


async def run_offloaded(rewrite: Callable[[str], str], text: str) -> str:
    """`rewrite(text)`; for a long text computed in a thread."""
    [rewritten] = await run_each_offloaded(rewrite, [text])
    return rewritten


async def run_each_offloaded(rewrite: Callable[[str], str], texts: Sequence[str]) -> list[str]:
    """`rewrite` of each text, in order; of many or long texts computed elsewhere, in pieces that others' texts may come
    between.
    """
    characters = sum(map(len, texts))
    if characters <= HEAVY_CHARACTERS:
        return _each(rewrite, texts)
    loop, found = asyncio.get_running_loop(), list[str]()
    are_long = characters > LONG_CHARACTERS
    for piece in _pieces(texts):
        found += await loop.run_in_executor(_scanner(are_long), _each_apart if are_long else _each, rewrite, piece)
    return found


async def run_by_weight(work: Callable[[], T], *, is_heavy: bool) -> T:
    """`work()`; for a heavy request computed in a thread."""
    return await asyncio.to_thread(work) if is_heavy else work()


@cache
def _scanner(are_long: bool) -> ThreadPoolExecutor:  # noqa: FBT001 - a key of the cache
    return ThreadPoolExecutor(1, "scanner of long texts" if are_long else "scanner")


@cache
def _process() -> ProcessApart:
    """Used by the scanner of long texts only."""
    process = ProcessApart()
    atexit.register(process.close)
    return process


def _each_apart(rewrite: Callable[[str], str], texts: Sequence[str]) -> list[str]:
    try:
        return _process().run(partial(_each, rewrite, texts))
    except ProcessLost as error:
        log.warning("long_text_scanned_here", error=str(error))
        return _each(rewrite, texts)


def _each(rewrite: Callable[[str], str], texts: Iterable[str]) -> list[str]:
    return [rewrite(text) for text in texts]


def _pieces(texts: Sequence[str]) -> list[list[str]]:
    """In order; short texts together."""
    pieces: list[list[str]] = []
    room = 0
    for text in texts:
        if room < len(text) or not pieces:
            pieces.append([])
            room = HEAVY_CHARACTERS
        pieces[-1].append(text)
        room -= len(text)
    return pieces
