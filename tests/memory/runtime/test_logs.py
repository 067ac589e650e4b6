"""Log lines: where they go, and what never gets into one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import logging, sys, structlog
from memory.runtime.logs import log_to_stderr
log = structlog.get_logger("early")
log_to_stderr(sys.argv[1])
def fail(said):
    raise ValueError("broken")
log.info("started", part="worker")
logging.getLogger("a.library").info("chatter")
logging.getLogger("a.library").warning("slow disk")
try:
    fail("my locker code is 4711")
except ValueError:
    log.exception("a job broke")
    logging.getLogger("a.library").exception("it broke there")
"""


def lines_of(log_format: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, log_format], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_json_lines_are_json_each_and_all() -> None:
    events = [json.loads(line) for line in lines_of("json")]
    assert [event["event"] for event in events] == ["started", "slow disk", "a job broke", "it broke there"]
    assert (events[0]["level"], events[0]["part"]) == ("info", "worker")
    assert "ValueError: broken" in events[2]["exception"]
    assert "ValueError: broken" in events[3]["exception"]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_traceback_shows_what_a_variable_held(log_format: str) -> None:
    text = "\n".join(lines_of(log_format))
    assert "ValueError: broken" in text
    assert "4711" not in text
    assert "chatter" not in text
