"""`memproxy eval holdout`: what notes changed, from the record of a deployment in which conversations are held out.

Parses arguments and prints; `memory.evaluation.holdout` compares.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from typer import Option, echo

from memory.cli.options import ConfigOption, JsonOption
from memory.cli.output import print_json, print_table
from memory.settings import Settings
from memory.settings.loader import from_process

DAY = 86_400.0
LABELS = {
    "corrected": "conversations with a correction",
    "repeated_facts": "conversations that repeat a known fact",
    "follow_ups": "follow-ups per conversation",
    "turns": "turns per conversation",
    "answer_tokens": "tokens per answer (estimated)",
    "note_tokens": "tokens per note",
}


def holdout(
    *,
    days: Annotated[float, Option(help="Only turns of the last days.")] = 30.0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Compare conversations that got notes with those that memory.holdout.share kept without.

    Reads stored turns and receipts, and changes nothing. Intervals are of 95 %; a difference is held out minus noted.
    """
    report = asyncio.run(_report(from_process(config, {}), days=days))
    if as_json:
        print_json(report)
        return
    arms = ("noted", "held_out", "difference")
    counts = [(name, *(report[arm][name] for arm in arms[:2]), "") for name in ("conversations", "questions")]
    figures = [(label, *(_shown(report[arm][name]) for arm in arms)) for name, label in LABELS.items()]
    print_table(("", "noted", "held out", "difference"), [*counts, *figures], is_right=True)
    if report["mixed"]:
        echo(f"{report['mixed']} conversations with both arms are left out.", err=True)


async def _report(settings: Settings, *, days: float) -> dict[str, Any]:
    from memory.evaluation.holdout import holdout_report  # imported here, as in all commands: `--help` must not wait
    from memory.processes.composition import SYSTEM_CLOCK
    from memory.processes.state_parts import open_holdouts

    async with open_holdouts(settings) as record:
        return holdout_report([turn async for turn in record.turns(since=SYSTEM_CLOCK() - days * DAY)])


def _shown(estimate: dict[str, float | None]) -> str:
    if estimate["value"] is None:
        return "-"
    if estimate["low"] is None:
        return f"{estimate['value']:.2f}"
    return f"{estimate['value']:.2f} [{estimate['low']:.2f}, {estimate['high']:.2f}]"
