"""Products behind an edge that knows who is signed in: a gateway in mode `header`, an issuer of tokens in `jwt`.

The calls of a gateway come from an address that Envoy trusts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from product import Product, running_product
from token_issuer import AUDIENCE, ISSUER, TokenIssuer

from memory.model.token_claims import user_of_tenant

MODES = ("header", "jwt")
IDENTITY = "x-authz-user-id"
GATEWAY, ELSEWHERE = "127.0.0.2", "127.0.0.1"  # header mode believes the first alone
TENANT = "acme/eu"  # which might end elsewhere
VICTIM = "ren\u00e9"
VICTIM_ID = user_of_tenant(TENANT, VICTIM)  # in mode jwt
IMPORTER = "mpt_a-token-of-the-importer-0123456789"
KEEPER, KEPT_USER = "mpt_a-token-of-the-keeper-0123456789", "ada.of.the.tools"  # whom that token may name


@dataclass(frozen=True)
class Edge:
    mode: str
    product: Product
    issuer: TokenIssuer

    @property
    def source(self) -> str:
        """The address from which identified calls reach Envoy."""
        return GATEWAY if self.mode == "header" else ELSEWHERE

    def identified(self, user: str) -> dict[str, str]:
        """Headers of a call that reaches Envoy from `source`."""
        return {IDENTITY: user} if self.mode == "header" else bearer(self.issuer.token(sub=user, tenant=TENANT))


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@contextmanager
def running_edge(mode: str, folder: Path, *, upstream: str) -> Iterator[Edge]:
    issuer, keys, config = TokenIssuer(), folder / "keys.json", folder / "settings.yaml"
    keys.write_text(issuer.key_set())
    tokens = {"issuer": ISSUER, "audiences": [AUDIENCE], "jwks_file": str(keys), "tenant_claim": "tenant"}
    of_mode: dict[str, Any] = {"trusted_peers": [f"{GATEWAY}/32"]} if mode == "header" else {"jwt": tokens}
    config.write_text(json.dumps({"identity": mode, "service_tokens": _programs(), **of_mode}))
    with running_product(folder / "data", upstream=upstream, config=config) as product:
        yield Edge(mode, product, issuer)


def _programs() -> list[dict[str, Any]]:
    """The service tokens that the product knows."""
    programs = (
        ("importer", IMPORTER, {"scopes": ["read", "write"], "users": [VICTIM_ID]}),
        ("keeper", KEEPER, {"scopes": ["read", "write"], "users": [KEPT_USER]}),
    )
    return [
        {"name": name, "sha256": hashlib.sha256(token.encode()).hexdigest(), **allowed}
        for name, token, allowed in programs
    ]
