"""`memproxy eval holdout`, on the record of a real turn log."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from library_parts import library_parts
from typer.testing import CliRunner, Result

from memory.cli import main
from memory.errors import BadInput
from memory.model import RecallStatus, Receipt, Scope, Turn, TurnStatus
from memory.model.chats import Message
from memory.processes.composition import SYSTEM_CLOCK


async def recorded(folder: Path) -> None:
    """Ten conversations of each arm; in those that are held out, the user has to ask again."""
    async with library_parts(folder) as parts:
        parts.now = SYSTEM_CLOCK()
        for number in range(20):
            arm = "held_out" if number % 2 else "noted"
            signals = {"arm": arm, "note_tokens": 30}
            parts.receipts.keep(Receipt(f"r{number}", "ann", parts.now, RecallStatus.USED, "found", signals))
            for place in range(1 + number % 2):
                receipt_id = "" if place else f"r{number}"
                turn = Turn(
                    id=f"t{number}-{place}",
                    scope=Scope("ann", session_id=f"s{number}"),
                    at=parts.now + place,
                    messages=(Message("user", "Where is my secret kayak?"),),
                    status=TurnStatus.CLOSED,
                    answer="In Dorset.",
                    receipt_id=receipt_id or f"q{number}",
                )
                if place:
                    parts.receipts.keep(Receipt(f"q{number}", "ann", parts.now, RecallStatus.SKIPPED, "settled"))
                await parts.turn_log.append(turn)
        while await parts.receipts.get("ann", "q19") is None:
            await asyncio.sleep(0.01)


def run(folder: Path, *words: str, code: int = 0) -> Result:
    config = folder / "c.yaml"
    config.write_text(json.dumps({"data_dir": str(folder)}))
    words = ("eval", "holdout", "--config", str(config), *words)
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main.commands, words, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_both_arms_are_counted_and_compared(tmp_path: Path) -> None:
    asyncio.run(recorded(tmp_path))
    report = json.loads(run(tmp_path, "--json").stdout)
    assert (report["noted"]["conversations"], report["held_out"]["conversations"]) == (10, 10)
    assert (report["noted"]["follow_ups"]["value"], report["held_out"]["follow_ups"]["value"]) == (0.0, 1.0)
    assert report["difference"]["follow_ups"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert report["noted"]["corrected"]["high"] == 0.2775
    shown = run(tmp_path).stdout
    assert "follow-ups per conversation" in shown
    assert "1.00 [1.00, 1.00]" in shown
    for private in ("ann", "kayak", "Dorset"):
        assert private not in shown + json.dumps(report).replace("answer_tokens", "")


def test_older_turns_are_left_out(tmp_path: Path) -> None:
    asyncio.run(recorded(tmp_path))
    report = json.loads(run(tmp_path, "--json", "--days", "0").stdout)
    assert report["noted"]["questions"] == 0


def test_where_nothing_was_recorded_nothing_is_created(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="data_dir"):
        run(tmp_path)
    assert not (tmp_path / "turns.sqlite").exists()
