"""What operators say of secrets holds for turns, imports and receipts, and the gate keeps to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plain_reader import PlainReader
from prometheus_client import CollectorRegistry
from written_settings import written_settings

from memory.learn import gate
from memory.model import Message, RecallStatus, Receipt, Scope, Turn, TurnStatus
from memory.processes import composition
from memory.processes.from_settings import recording, secret_policy, worker_settings
from memory.secrets.secret_classes import SecretClass
from memory.settings import SecretSettings, Settings

SAID = {
    SecretClass.API_KEY: "My key is sk-proj-aB3dE5fG7hJ9kL1mN2pQ4rS6 and my cat is called Tom.",
    SecretClass.TOKEN: "I got token=4f9aQ2LmZ81xTtR0wBvKc7Ue, and my cat is called Tom.",
    SecretClass.PASSWORD: "My PIN is 8812, and my cat is called Tom.",
    SecretClass.PRIVATE_KEY: "-----BEGIN PRIVATE KEY-----\nMIIEa1\n-----END PRIVATE KEY-----\nMy cat is called Tom.",
    SecretClass.CARD_NUMBER: "My card is 4111 1111 1111 1111, and my cat is called Tom.",
    SecretClass.BANK_ACCOUNT: "My account number is 50093321, and my cat is called Tom.",
    SecretClass.NATIONAL_ID: "My SSN is 536-90-4399, and my cat is called Tom.",
}
KEYS = {SecretClass.API_KEY, SecretClass.TOKEN}  # one may well look like the other, and then the stricter policy holds


def settings_with(folder: Path, **secrets: str) -> Settings:
    places = {name: str(folder) for name in ("data_dir", "run_dir")}
    return written_settings(folder, memory={"secrets": secrets}, **places)


async def learnt(settings: Settings, recorded: str) -> list[str]:
    turn = Turn("t1", Scope("ann", session_id="s"), 1_741_600_000.0, (Message("user", recorded),), TurnStatus.CLOSED)
    secrets = worker_settings(settings).secrets
    claims = await PlainReader().read([turn], context=())
    return [claim.text for claim in gate.check_claims(claims, [turn], secrets=secrets).kept]


def test_each_class_of_secrets_has_its_setting() -> None:
    assert set(SecretSettings.__struct_fields__) == {kind.value for kind in SecretClass}
    assert set(secret_policy(Settings())) == set(SecretClass)


@pytest.mark.parametrize("kind", SecretClass)
async def test_a_secret_is_redacted_or_drops_its_message_or_is_allowed(kind: SecretClass, tmp_path: Path) -> None:
    """What is redacted leaves the rest to be learnt; of what is dropped not a word is recorded or learnt."""
    name, said, kinds = kind.value.replace("_", " "), SAID[kind], KEYS if kind in KEYS else {kind}
    redacting, dropping = settings_with(tmp_path), settings_with(tmp_path, **{kind.value: "drop"})
    allowing = settings_with(tmp_path, **{one.value: "allow" for one in kinds})
    assert f"[redacted {name}]" in recording(redacting)(said)
    assert recording(dropping)(said) == f"[withheld {name}]"
    assert recording(dropping)("My cat is called Tom.") == "My cat is called Tom."
    assert recording(allowing)(said) == said
    facts = [await learnt(settings, recording(settings)(said)) for settings in (redacting, dropping, allowing)]
    assert [any("called Tom" in fact for fact in found) for found in facts] == [True, False, True]
    assert facts[1] == []


async def test_imports_and_receipts_follow_the_same_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "REGISTRY", CollectorRegistry())  # the process's own takes one set of metrics only
    settings = settings_with(tmp_path, password="drop", card_number="allow")
    said = "I live in Porto and my PIN is 8812", "My card is 4111 1111 1111 1111", "My SSN is 536-90-4399"
    expected = ["[withheld password]", said[1], "My SSN is [redacted national id]"]
    async with composition.open_parts(settings) as parts:
        now = composition.SYSTEM_CLOCK()
        for number, one in enumerate(said):
            parts.stores.receipts.keep(Receipt(f"r{number}", "ann", now, RecallStatus.EMPTY, "test", query=one))
        library = parts.library()
        # written by the same thread as the receipts, after them
        await library.append_turn(Scope("ann", session_id="s"), [Message("user", one) for one in said])
        assert [message.content async for turn in library.turns("ann") for message in turn.messages] == expected
        kept: list[Any] = [await parts.stores.receipts.get("ann", f"r{number}") for number in range(3)]
        assert [receipt.query for receipt in kept] == expected
