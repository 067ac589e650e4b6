"""Types that several threads meet for the first time."""

from __future__ import annotations

import subprocess
import sys

import pytest

MEET = """
import dataclasses, msgspec, sys, threading
from memory.typed import converted, from_json, from_toml

sys.setswitchinterval(1e-6)
for _ in range(300):
    inner = dataclasses.make_dataclass("Inner", [("a", int), ("b", str)])
    outer = dataclasses.make_dataclass("Outer", [("x", inner), ("y", list[inner])])
    barrier = threading.Barrier(4)

    def meet():
        barrier.wait()
        {decode}

    threads = [threading.Thread(target=meet) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""
ONE = '{"x": {"a": 1, "b": "c"}, "y": []}'


@pytest.mark.parametrize(
    "decode",
    [
        f"from_json({ONE!r}, outer)",
        f"converted({ONE}, outer)",
        f"converted([{ONE}], list[outer])",
        "from_toml('y = []\\n[x]\\na = 1\\nb = \"c\"', outer)",
    ],
)
def test_threads_may_meet_a_type_at_once(decode: str) -> None:
    ended = subprocess.run([sys.executable, "-c", MEET.replace("{decode}", decode)], capture_output=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, b"")
