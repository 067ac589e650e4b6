"""Schemathesis' own run over an OpenAPI document: what the document allows and what it does not, and calls that follow
upon each other, as it derives them from what answers name.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ENDS_SECONDS = 120.0  # for what has begun when the time is up, and for shrinking what failed
# Off: `ignored_auth`, as in mode `development` anybody is believed; `positive_data_acceptance`, as no schema says which
# cursors are ours, which time is meant by a text, or that one parameter needs another.
SETTINGS = """
warnings = false
hooks = "hooks"
[generation]
with-security-parameters = false
[checks]
ignored_auth.enabled = false
positive_data_acceptance.enabled = false
negative_data_rejection.expected-statuses = [
  "400", "401", "403", "404", "405", "406", "409", "412", "413", "415", "422",
]
"""
HOOKS = """
import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(_, value):
    return value if isinstance(value, bytes) else str(value).encode()
"""


def explore(document: Mapping[str, Any], url: str, folder: Path, *, user: str, seconds: int) -> str:
    """What it found to be wrong, as it shows it; "" if nothing is. `folder` takes its files.

    Without the call by which the user opts out: nearly all others are refused then.
    """
    (folder / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "schemathesis.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "hooks.py").write_text(HOOKS, encoding="utf-8")
    program = Path(sys.executable).with_name("st")
    target = ["openapi.json", "--url", url, "--header", f"x-authz-user-id: {user}", "--exclude-operation-id", "optOut"]
    depth = ["--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "100", "--max-time", str(seconds)]
    shown = ["--continue-on-failure", "--no-color"]
    command = [str(program), "--config-file", "schemathesis.toml", "run", *target, *depth, *shown]
    run = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=seconds + ENDS_SECONDS, check=False
    )
    return "" if run.returncode == 0 else run.stdout + run.stderr
