"""How each class of secrets is handled before anything is stored. Contains no secrets itself."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

How: TypeAlias = Literal["redact", "drop", "allow"]


class SecretSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Per class: `redact` it, `drop` the message that contains it, or `allow` it to be recorded and learnt."""

    api_key: Annotated[How, "Keys of services, access keys, and anything with a vendor's key format."] = "redact"
    token: Annotated[How, "Bearer tokens, session ids, and values assigned to a name such as `secret`."] = "redact"  # noqa: S105 - what becomes of tokens, none itself
    password: Annotated[
        How, "Passwords, passphrases, PINs, codes of locks, one-time and alarm codes, recovery words."
    ] = "redact"  # noqa: S105 - likewise
    private_key: Annotated[How, "Private keys in PEM."] = "redact"
    card_number: Annotated[How, "Numbers of payment cards."] = "redact"
    bank_account: Annotated[How, "IBANs and account numbers."] = "redact"
    national_id: Annotated[How, "Passports, identity cards, driving licences, social security and tax numbers."] = (
        "redact"
    )
