"""Small makers of claims and turns for tests of what comes after reading."""

from __future__ import annotations

from typing import Any

from memory.model import Act, Claim, Evidence, Message, Scope, Turn, TurnStatus

NOW = 1_750_000_000.0


def claim(
    text: str,
    *,
    act: Act = Act.STATE,
    turn: str = "t1",
    said_at: float = NOW,
    project: str = "",
    role: str = "user",
    quote: str = "",
    **fields: Any,
) -> Claim:
    return Claim(
        act=act,
        text=text,
        evidence=Evidence(quote or text, turn, role),
        scope=Scope("ann", project_id=project, session_id="s"),
        said_at=said_at,
        **fields,
    )


def turn(text: str, *, turn_id: str = "t1", at: float = NOW, answer: str = "", receipt_id: str = "") -> Turn:
    return Turn(
        id=turn_id,
        scope=Scope("ann", session_id="s"),
        at=at,
        messages=(Message("user", text),),
        status=TurnStatus.CLOSED,
        answer=answer,
        receipt_id=receipt_id,
    )
