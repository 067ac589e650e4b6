"""Who sends slowly keeps no place from others, and no text makes looking for secrets take more than its length."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Coroutine
from types import FrameType
from typing import Any

import pytest

from extproc.uploads import BYTES_PER_SECOND_MIN, MORE_SECONDS_MAX, PATIENCE_SECONDS, Uploads
from memory.secrets import secret_spans
from memory.secrets.redaction import redact

PLACES = 8
# What a body of 1 MB could be made of: runs of one class, and what almost is a secret.
PIECES = (
    *("a", " ", "4111 ", "\n", "\\", '"', "**", "密码", "\u00a0\u200b", "aB1!", "1234-", "://a:b@", "&#1;", "\\u0041"),
    *("my password is ", "my pin, and the password of ", "4111 1111 1111 1112 ", "DE54 3704 0044 0532 0172 18 "),
    *(
        "api_key=sk-proj-aB3dE5fG7h ",
        "lumber ocean pigeon tennis orbit cradle the ",
        "seed phrase: apple river ",
        "word-Word-",
    ),
    *(
        '{"key":"value12","n":1},',
        "-----BEGIN PRIVATE KEY-----",
        "[redacted password] ",
        "code for the ",
        "hunter2 is my password, ",
    ),
)
SHORT, LONG = 4_000, 32_000  # characters: eight times as many


class UntimedLoop(asyncio.SelectorEventLoop):
    """Its clock goes on to the next timer as soon as there is nothing else to do."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        selector: Any = self._selector  # type: ignore[attr-defined]  # where every loop of asyncio waits
        select = selector.select

        def selected(timeout: float | None = None) -> Any:
            self._now += timeout or 0.0
            return select(0)

        selector.select = selected

    def time(self) -> float:
        return self._now


def run_untimed(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=UntimedLoop) as runner:
        runner.run(work)


async def upload(uploads: Uploads, announced: int, sent_a_second: float) -> float:
    """Seconds for which it kept a place."""
    began = asyncio.get_running_loop().time()
    async with uploads.stream() as one:
        one.wait(announced)
        await asyncio.sleep(announced / sent_a_second)
        one.arrived()
    return asyncio.get_running_loop().time() - began


@pytest.mark.parametrize("announced", [1, 1_000, 1 << 20, 1 << 25])
def test_a_crowd_of_uploads_of_some_bytes_a_second_is_gone_after_seconds(announced: int) -> None:
    async def crowd() -> None:
        uploads = Uploads(PLACES)
        async with asyncio.TaskGroup() as tasks:
            slow = [tasks.create_task(upload(uploads, announced, 0.001)) for _ in range(PLACES)]
        assert max(one.result() for one in slow) <= PATIENCE_SECONDS + MORE_SECONDS_MAX + 1

    run_untimed(crowd())


def test_an_upload_that_comes_at_the_pace_of_its_length_keeps_its_place_in_a_crowd() -> None:
    async def crowd() -> None:
        uploads = Uploads(PLACES)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(PLACES - 1):
                tasks.create_task(upload(uploads, 1, 0.001))
            steady = tasks.create_task(upload(uploads, 3 << 20, BYTES_PER_SECOND_MIN))
        assert steady.result() == pytest.approx(3.0)

    run_untimed(crowd())


def steps(text: str) -> int:
    """Lines of our own that run while the text is looked through."""
    counted: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if "secrets" not in frame.f_code.co_filename:
            return None
        counted[event] += 1
        return trace

    sys.settrace(trace)
    try:
        redact(text)
    finally:
        sys.settrace(None)
    return counted["line"]


@pytest.mark.parametrize("piece", PIECES)
def test_eight_times_the_text_is_eight_times_the_work(piece: str) -> None:
    redact(piece)  # what is read once
    short, long = (steps((piece * length)[:length]) for length in (SHORT, LONG))
    assert long <= 12 * short + 2_000


@pytest.mark.parametrize("piece", PIECES)
def test_no_finder_hands_on_more_spans_than_the_text_has_characters(piece: str) -> None:
    text = (piece * LONG)[:LONG]
    assert len(secret_spans.secret_spans(text)) <= len(text)
