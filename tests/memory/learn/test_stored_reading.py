"""What a model read survives a crash as it was; what cannot be read is read again."""

from __future__ import annotations

import pytest
from claims import NOW, claim

from memory.learn import plan, stored_reading
from memory.learn.plan import Plan
from memory.model import Act, Relation

CLAIMS = [
    claim("I live in Leeds \ud800", attribute="home", values=("Leeds",), holds_from=NOW),
    claim("forget my sister Ana", act=Act.FORGET, relation=Relation.SIBLING, name="Ana", is_affirmed=False),
]


def test_claims_come_back_as_they_were() -> None:
    assert stored_reading.decode(stored_reading.encode(CLAIMS)) == CLAIMS


def test_a_reading_is_no_plan_and_a_plan_no_reading() -> None:
    assert stored_reading.is_reading(None)
    assert stored_reading.is_reading(stored_reading.encode(CLAIMS))
    assert not stored_reading.is_reading(plan.encode(Plan()))
    assert not stored_reading.is_reading(b"damaged")


@pytest.mark.parametrize(
    "stored", [None, b"", b"{}", b"[]", b'{"stage": "read", "version": 99, "claims": []}', b'{"stage": "extracted"}']
)
def test_what_another_release_stored_is_read_again(stored: bytes | None) -> None:
    assert stored_reading.decode(stored) is None
