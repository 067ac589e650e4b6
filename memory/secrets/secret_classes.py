"""The classes of secrets, and the type of a finding. Names only."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias


class SecretClass(StrEnum):
    API_KEY = "api_key"
    TOKEN = "token"  # noqa: S105 (the name of a class of secrets)
    PASSWORD = "password"  # noqa: S105 (likewise)
    PRIVATE_KEY = "private_key"
    CARD_NUMBER = "card_number"
    BANK_ACCOUNT = "bank_account"
    NATIONAL_ID = "national_id"


Span: TypeAlias = tuple[int, int, SecretClass]
"""Start, end, class."""
