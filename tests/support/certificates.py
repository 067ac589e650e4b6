"""Authorities and certificates for servers with TLS on 127.0.0.1, made by the test that needs them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID_SINCE = datetime(2020, 1, 1, tzinfo=UTC)
VALID_FOR = timedelta(days=36_500)


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files of a server: its own, the key of it, and the authority by which others verify it."""

    certificate: Path
    key: Path
    authority: Path


def issued_certificates(folder: Path) -> Certificates:
    """By an authority of their own. The folder is made."""
    folder.mkdir()
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = _named(f"authority of {folder.name}")
    builder = _builder(authority_name, authority_name, authority_key)
    authority = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    own = _builder(_named("server"), authority_name, key).add_extension(address, critical=False)
    files = Certificates(folder / "server.pem", folder / "server.key", folder / "authority.pem")
    for path, made in ((files.authority, authority), (files.certificate, own)):
        path.write_bytes(made.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    private = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
    return files


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        issuer, subject, key.public_key(), x509.random_serial_number(), VALID_SINCE, VALID_SINCE + VALID_FOR
    )
