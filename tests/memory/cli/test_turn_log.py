"""`memproxy turns`, `dlq` and `eval holdout`, on a real turn log on each adapter, opened by its settings."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_worlds import CommandWorld, command_world, run, settings_file
from turn_logs import a_turn, adapters, ids_of, leased

from memory.errors import BadInput, Unavailable
from memory.model import Message, RecallStatus, Receipt, Turn, TurnStatus

REASON = "the model said [bold]nonsense[/bold] \x1b[31m"


@pytest.fixture(params=adapters())
def world(request: pytest.FixtureRequest, tmp_path: Path) -> CommandWorld:
    return command_world(request.param, tmp_path)


def closed(world: CommandWorld, turn_id: str, *, after: float = 0.0, **fields: str) -> Turn:
    """A whole turn, some seconds after the others."""
    at = world.deployment.clock.now + after
    asked = (Message("user", f"My cat is {turn_id}"), Message("user", "[bold]what?[/bold] \x1b[31m"))
    turn = a_turn(turn_id, status=TurnStatus.CLOSED, at=at, **fields)
    return replace(turn, messages=asked, answer=f"Hello {turn_id}", answered_at=at + 1)


async def record(world: CommandWorld, *turns: Turn) -> None:
    async with world.deployment.start() as process:
        for turn in turns:
            await process.log.append(turn)


async def bury(world: CommandWorld, *turn_ids: str) -> None:
    """One dead letter for each, of a user of its name."""
    async with world.deployment.start() as process:
        for turn_id in turn_ids:
            await process.log.append(closed(world, turn_id, user=f"user-{turn_id}"))
            lease = await leased(process.log, world.deployment.clock.now + 1)
            assert ids_of(lease) == [turn_id]
            await process.log.move_to_dead_letters(lease, now=world.deployment.clock.now, reason=REASON)


def told(world: CommandWorld, *words: str, code: int = 0) -> Any:
    return json.loads(world.run(*words, "--json", code=code).stdout)


def turns_of(world: CommandWorld, user: str, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = told(world, "turns", "--user", user, *words)["turns"]
    return found


def letters(world: CommandWorld) -> dict[str, str]:
    """Windows by user."""
    return {one["user_id"]: one["window_id"] for one in told(world, "dlq", "list")["dead_letters"]}


def test_turns_shows_the_record_of_a_user_oldest_first(world: CommandWorld) -> None:
    first, second = closed(world, "t1", session="one"), closed(world, "t2", session="two", after=5.0, project="red")
    aborted = replace(closed(world, "t3", session="one", after=9.0), status=TurnStatus.ABORTED, answer="Hel")
    asyncio.run(record(world, first, second, aborted, closed(world, "t4", user="bob")))
    found = turns_of(world, "ann")
    assert [one["id"] for one in found] == ["t1", "t2", "t3"]
    assert found[0]["messages"] == msgspec.to_builtins(list(first.messages))
    answers = [("Hello t1", "closed"), ("Hello t2", "closed"), ("Hel", "aborted")]
    assert [(one["answer"], one["status"]) for one in found] == answers
    assert found[1]["scope"] == msgspec.to_builtins(second.scope)
    assert found[0]["at"] == pytest.approx(first.at)
    assert [one["id"] for one in turns_of(world, "ann", "--session", "one")] == ["t1", "t3"]
    assert turns_of(world, "ann", "--session", "three") == turns_of(world, "nobody") == []
    shown = world.run("turns", "--user", "ann").stdout
    assert [line.split()[2] for line in shown.splitlines() if "My cat" in line] == ["closed", "closed", "aborted"]
    assert "[bold]what?[/bold]" in shown
    assert "\x1b" not in shown


def test_dead_letters_are_listed_with_the_reason_of_their_last_failure_and_replayed(world: CommandWorld) -> None:
    """By their ids, or all."""
    asyncio.run(record(world))
    assert letters(world) == {}
    asyncio.run(bury(world, "a", "b", "c"))
    found = told(world, "dlq", "list")["dead_letters"]
    assert {one["user_id"]: one["turn_ids"] for one in found} == {f"user-{name}": [name] for name in "abc"}
    assert (found[0]["session_id"], found[0]["attempts"], found[0]["reason"]) == ("s1", 1, REASON)
    assert found[0]["buried_at"] == pytest.approx(world.deployment.clock.now)
    head, *rows = world.run("dlq", "list").stdout.splitlines()
    assert head.split() == ["window", "user", "session", "turns", "attempts", "buried", "at", "reason"]
    assert {row.split()[0] for row in rows} == {one["window_id"] for one in found}
    assert all("the model said [bold]nonsense[/bold]" in row and "\x1b" not in row for row in rows)
    windows = letters(world)
    assert world.run("dlq", "replay", "another").stdout == "due again: 0\n"
    assert world.run("dlq", "replay", windows["user-b"], windows["user-b"]).stdout == "due again: 1\n"
    assert set(letters(world)) == {"user-a", "user-c"}
    assert told(world, "dlq", "replay", "--all") == {"replayed": 2}
    assert letters(world) == {}
    assert world.run("dlq", "replay", "--all").stdout == "due again: 0\n"


def test_a_dead_letter_is_dropped_only_on_purpose_and_its_turn_stays_on_record(world: CommandWorld) -> None:
    asyncio.run(bury(world, "a", "b", "c"))
    windows = letters(world)
    world.run("dlq", "drop", code=2)
    world.run("dlq", "drop", windows["user-a"], "--all", code=2)
    world.run("dlq", "drop", "--all", code=1, answer="n\n")
    assert set(letters(world)) == {"user-a", "user-b", "user-c"}
    assert world.run("dlq", "drop", "another", "--yes", code=1).stdout == "dropped: 0\n"
    assert told(world, "dlq", "drop", windows["user-a"], "--yes") == {"dropped": 1}
    assert set(letters(world)) == {"user-b", "user-c"}
    assert world.run("dlq", "drop", "--all", answer="y\n").stdout.endswith("dropped: 2\n")
    assert letters(world) == {}
    assert told(world, "dlq", "drop", "--all", "--yes", code=1) == {"dropped": 0}
    assert [one["id"] for one in turns_of(world, "user-a")] == ["a"]


@pytest.mark.parametrize("words", [("turns", "--user", "ann"), ("dlq", "list"), ("dlq", "drop", "--all", "--yes")])
def test_a_server_that_does_not_answer_is_named(tmp_path: Path, words: tuple[str, ...]) -> None:
    config = settings_file(tmp_path, database_url="postgresql://127.0.0.1:1/log")
    with pytest.raises(Unavailable, match="PostgreSQL"):
        run(*words, "--config", config)


# `eval holdout`


ASKED = "Where is my secret kayak?"


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
                turn = a_turn(f"t{number}-{place}", user=user, session=f"s{number}", at=now + place, text=ASKED)
                receipt_id = f"{'q' if place else 'r'}{number}"
                turn = replace(turn, status=TurnStatus.CLOSED, answer="In Dorset.", receipt_id=receipt_id)
                await process.log.append(turn)
        for user, last in (("ann", "q19"), ("bob", "q15")):
            while await process.receipts.get(user, last) is None:
                await asyncio.sleep(0.01)


def test_both_arms_of_the_holdout_are_counted_and_compared(world: CommandWorld) -> None:
    asyncio.run(recorded(world))
    report = told(world, "eval", "holdout")
    assert (report["noted"]["conversations"], report["held_out"]["conversations"]) == (10, 10)
    assert (report["noted"]["follow_ups"]["value"], report["held_out"]["follow_ups"]["value"]) == (0.0, 1.0)
    assert report["difference"]["follow_ups"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert report["noted"]["corrected"]["high"] == 0.2775
    shown = world.run("eval", "holdout").stdout
    assert "follow-ups per conversation" in shown
    assert "1.00 [1.00, 1.00]" in shown
    assert told(world, "eval", "holdout", "--days", "0")["noted"]["questions"] == 0
    for private in ("ann", "bob", "kayak", "Dorset"):
        assert private not in shown + json.dumps(report).replace("answer_tokens", "")


def test_where_nothing_was_recorded_the_setting_is_named(world: CommandWorld, request: pytest.FixtureRequest) -> None:
    is_on_postgres = request.node.callspec.params["world"] != "sqlite"
    with pytest.raises(BadInput, match="database_url" if is_on_postgres else "data_dir"):
        world.run("eval", "holdout")
    of_log = ("turns", "--user", "ann"), ("dlq", "list"), ("dlq", "replay", "--all"), ("dlq", "drop", "x", "--yes")
    for words in () if is_on_postgres else of_log:
        with pytest.raises(BadInput, match="data_dir"):
            world.run(*words)
    assert list((world.config.parent / "data").iterdir()) == []
