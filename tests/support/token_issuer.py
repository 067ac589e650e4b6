"""An issuer of tokens with keys of its own, and what somebody else may make of its tokens."""

from __future__ import annotations

import base64
import hmac
import json
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER = "https://login.example"
AUDIENCE = "chat"
LONG_AGO, LATER = 1_000_000_000, 4_102_444_800  # 2001 and 2100, in Unix seconds
DROPPED = object()  # in place of a claim: leave it out


@dataclass
class TokenIssuer:
    """Signs with ES256 (`kid` "ec") or RS256 ("rsa")."""

    ec_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    rsa_key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))

    def key_set(self) -> str:
        """The public keys, as the issuer publishes them."""
        curve = json.loads(ECAlgorithm.to_jwk(self.ec_key.public_key()))
        modulus = json.loads(RSAAlgorithm.to_jwk(self.rsa_key.public_key()))
        return json.dumps(
            {
                "keys": [
                    {**curve, "kid": "ec", "alg": "ES256", "use": "sig"},
                    {**modulus, "kid": "rsa", "alg": "RS256", "use": "sig"},
                ]
            }
        )

    def public_pem(self) -> bytes:
        return self.rsa_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def claims(self, **claims: Any) -> dict[str, Any]:
        usual = {"iss": ISSUER, "aud": AUDIENCE, "exp": LATER}
        return {name: value for name, value in (usual | claims).items() if value is not DROPPED}

    def token(self, *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token of this issuer; claims and header fields replace the usual ones."""
        return signed(self.claims(**claims), self.ec_key, "ES256", {"kid": "ec", **(header or {})})

    def rsa_token(self, **claims: Any) -> str:
        return signed(self.claims(**claims), self.rsa_key, "RS256", {"kid": "rsa"})


def signed(claims: dict[str, Any], key: Any, algorithm: str | None, header: dict[str, Any]) -> str:
    """As given: a `sub` may be of any type."""
    return jwt.api_jws.encode(json.dumps(claims).encode(), key, algorithm, headers={"typ": "JWT", **header})


def unsigned(claims: dict[str, Any], header: dict[str, Any], signature: str = "") -> str:
    return f"{encoded(header)}.{encoded(claims)}.{signature}"


def signed_with_secret(claims: dict[str, Any], secret: bytes, header: dict[str, Any]) -> str:
    """HS256 with any secret, also with a public key, which the library refuses to take for one."""
    text = f"{encoded({'alg': 'HS256', 'typ': 'JWT', **header})}.{encoded(claims)}"
    digest = hmac.digest(secret, text.encode(), "sha256")
    return f"{text}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def encoded(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def with_claims(token: str, claims: dict[str, Any]) -> str:
    """The token's header and signature around other claims."""
    header, _, signature = token.split(".")
    return f"{header}.{encoded(claims)}.{signature}"
