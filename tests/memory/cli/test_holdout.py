"""`memproxy eval holdout`, on the record of a real turn log on each adapter, opened by its settings."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_worlds import CommandWorld, command_world
from turn_logs import a_turn, adapters

from memory.errors import BadInput
from memory.model import RecallStatus, Receipt, TurnStatus
from memory.model.chats import Message


@pytest.fixture(params=adapters())
def world(request: pytest.FixtureRequest, tmp_path: Path) -> CommandWorld:
    return command_world(request.param, tmp_path)


async def recorded(world: CommandWorld) -> None:
    """Ten conversations of each arm, by two users; in those that are held out, the user has to ask again."""
    now = world.deployment.clock.now
    async with world.deployment.start() as process:
        for number in range(20):
            user, arm = ("ann", "bob")[number % 3 == 0], "held_out" if number % 2 else "noted"
            signals = {"arm": arm, "note_tokens": 30}
            process.receipts.keep(Receipt(f"r{number}", user, now, RecallStatus.USED, "found", signals))
            for place in range(1 + number % 2):
                if place:
                    process.receipts.keep(Receipt(f"q{number}", user, now, RecallStatus.SKIPPED, "settled"))
                turn = replace(
                    a_turn(f"t{number}-{place}", user=user, session=f"s{number}", at=now + place),
                    messages=(Message("user", "Where is my secret kayak?"),),
                    status=TurnStatus.CLOSED,
                    answer="In Dorset.",
                    receipt_id=f"{'q' if place else 'r'}{number}",
                )
                await process.log.append(turn)
        for user, last in (("ann", "q19"), ("bob", "q15")):
            while await process.receipts.get(user, last) is None:
                await asyncio.sleep(0.01)


def test_both_arms_are_counted_and_compared(world: CommandWorld) -> None:
    asyncio.run(recorded(world))
    report = json.loads(world.run("eval", "holdout", "--json").stdout)
    assert (report["noted"]["conversations"], report["held_out"]["conversations"]) == (10, 10)
    assert (report["noted"]["follow_ups"]["value"], report["held_out"]["follow_ups"]["value"]) == (0.0, 1.0)
    assert report["difference"]["follow_ups"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert report["noted"]["corrected"]["high"] == 0.2775
    shown = world.run("eval", "holdout").stdout
    assert "follow-ups per conversation" in shown
    assert "1.00 [1.00, 1.00]" in shown
    for private in ("ann", "bob", "kayak", "Dorset"):
        assert private not in shown + json.dumps(report).replace("answer_tokens", "")


def test_older_turns_are_left_out(world: CommandWorld) -> None:
    asyncio.run(recorded(world))
    report = json.loads(world.run("eval", "holdout", "--json", "--days", "0").stdout)
    assert report["noted"]["questions"] == 0


def test_where_nothing_was_recorded_the_setting_to_change_is_named_and_nothing_is_created(
    world: CommandWorld, request: pytest.FixtureRequest
) -> None:
    is_on_redis = request.node.callspec.params["world"] != "sqlite"
    with pytest.raises(BadInput, match="redis_url" if is_on_redis else "data_dir"):
        world.run("eval", "holdout")
    assert list((world.config.parent / "data").iterdir()) == []
    assert not is_on_redis or world.deployment.places_with("") == []
