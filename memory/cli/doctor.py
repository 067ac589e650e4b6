"""`memproxy doctor`: one line per part that a start depends on, with advice if something is wrong.

Prints the findings of `memory.processes.doctor_checks`. Exit code 1 for failures, not for warnings.
"""

from __future__ import annotations

import asyncio

import msgspec
from typer import echo

from memory.cli.options import ConfigOption, JsonOption
from memory.cli.output import print_json
from memory.errors import BadSetting
from memory.settings.loader import from_process

FAILED_CODE = 1
MARKS = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}


def doctor(*, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Check settings, identity, models, data directory, turn log, queue, Milvus, upstream, and the reader of messages.

    The exit code is 1 when something fails.
    """
    # Imported here, as in all commands, so that `--help` does not wait for adapters.
    from memory.processes.doctor_checks import look
    from memory.processes.findings import Finding, Level
    from memory.runtime.logs import log_to_stderr

    try:
        settings = from_process(config, {})
    except BadSetting as error:
        found = [Finding("settings", Level.FAIL, str(error), "correct the setting that it names")]
    else:
        log_to_stderr(settings.log_format)
        named = f"{config}, environment and defaults" if config else "environment and defaults"
        found = [Finding("settings", Level.OK, named), *asyncio.run(look(settings))]
    is_well = all(one.level is not Level.FAIL for one in found)
    if as_json:
        print_json({"is_well": is_well, "checks": msgspec.to_builtins(found)})
    else:
        for one in found:
            advice = f" — {one.advice}" if one.advice else ""
            echo(f"{MARKS[one.level]}  {one.check}: {one.says}{advice}")
    if not is_well:
        raise SystemExit(FAILED_CODE)


__all__ = ["doctor"]
