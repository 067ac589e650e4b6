"""The first chat that a process gets is answered like the ones after it: nothing is read or compiled while it waits."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import pytest
from product import Product, running_product
from upstream import RecordingUpstream

USERS = 6
BEYOND_LATER_MS_MAX = 60.0  # it was 100 to 150 while it read the languages' files and compiled what finds secrets


def asked_milliseconds(product: Product, user: int) -> float:
    began = time.perf_counter()
    answer = product.ask(f"When do I water fern number {user}?", f"gardener-{user}")
    took = (time.perf_counter() - began) * 1_000
    assert answer.headers["x-memory-status"] == "used"
    return took


@pytest.mark.soak("judges some hundredths of a second")
def test_the_first_chat_after_a_start_takes_as_long_as_the_next_ones(
    upstream: RecordingUpstream, tmp_path: Path
) -> None:
    with running_product(tmp_path / "data", upstream=upstream.url) as product:
        for user in range(USERS):
            product.chat(f"I water fern number {user} on Mondays.", f"gardener-{user}")
            assert product.flush(f"gardener-{user}")["pending"] == 0
            assert asked_milliseconds(product, user)  # also saves a snapshot
    with running_product(tmp_path / "data", upstream=upstream.url) as product:
        first, *later = [asked_milliseconds(product, user) for user in range(USERS)]
    assert first - median(later) < BEYOND_LATER_MS_MAX, (first, later)
