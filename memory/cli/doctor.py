"""`memproxy doctor`: one line per part that a start depends on, with advice if something is wrong.

Prints the findings of `memory.processes.doctor_checks`. Exit code 1 for failures, not for warnings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from typer import Context, echo

from memory.cli.options import ConfigOption, JsonOption
from memory.cli.output import print_json
from memory.errors import BadSetting
from memory.settings import Settings
from memory.settings.loader import from_process, unread_by_us

if TYPE_CHECKING:
    from memory.processes.findings import Finding

FurtherChecks: TypeAlias = "Callable[[Settings], Awaitable[Sequence[Finding]]]"
"""Of what the command line that mounts this command starts besides; the object of the context."""

FAILED_CODE = 1
MARKS = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}


def doctor(context: Context, *, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Check settings, ports, Envoy, identity, models, data, queue, Milvus, upstream, clock, and the reader of messages.

    The exit code is 1 when something fails.
    """
    # Imported here, as in all commands, so that `--help` does not wait for adapters.
    from memory.processes.findings import Finding, Level
    from memory.runtime.logs import log_to_stderr

    try:
        settings = from_process(config, {})
    except BadSetting as error:
        found = [Finding("settings", Level.FAIL, str(error), "correct the setting that it names")]
    else:
        log_to_stderr(settings.log_format)
        named = f"{config}, environment and defaults" if config else "environment and defaults"
        unread = [
            Finding("settings", Level.WARN, f"{key} of vLLM Semantic Router is not read", instead)
            for key, instead in unread_by_us(config)
        ]
        found = [Finding("settings", Level.OK, named), *unread, *asyncio.run(_all(settings, context.obj))]
    is_well = all(one.level is not Level.FAIL for one in found)
    if as_json:
        print_json({"is_well": is_well, "checks": msgspec.to_builtins(found)})
    else:
        for one in found:
            advice = f" — {one.advice}" if one.advice else ""
            echo(f"{MARKS[one.level]}  {one.check}: {one.says}{advice}")
    if not is_well:
        raise SystemExit(FAILED_CODE)


async def _all(settings: Settings, further: FurtherChecks | None) -> list[Finding]:
    from memory.processes.doctor_checks import look

    return [*(await further(settings) if further else ()), *await look(settings)]
