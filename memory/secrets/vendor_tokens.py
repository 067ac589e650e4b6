"""Finds keys and tokens by their form, with the rules of betterleaks run in this process, and passwords in URLs.

The library maintains about 460 rules; `betterleaks.toml` adds a few. No network access. Comments in the text that tell
scanners to ignore a line have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import betterleaks

from memory.secrets.plain_text import PlainText
from memory.secrets.secret_classes import SecretClass, Span
from memory.secrets.values import is_made_up, is_masked
from memory.secrets.vocabulary import LabelMatches, Vocabulary

RULES = str(Path(__file__).with_name("betterleaks.toml"))  # the library takes a path; loaded once
KEY_BEGINS = "-----BEGIN "
HEAD_CHARACTERS = 80  # of a private key's first line

_TOKEN_RULES = ("token", "jwt", "auth", "session", "cookie", "oauth", "bearer", "secret")
_GENERIC = "generic"
_CUT_OFF = ("...", "…")
_PASSWORD_RULES = ("password", "passphrase", "credential-uri", "connection-string", "curl-auth-user")
_NOT_SECRET_RULES = (
    *("username", "jfrog-url", "instance-url", "project-url", "rest-url", "-host", "-domain", "polymarket-address"),
    *("tenant-id", "account-id", "account-name", "cloud-name", "token-name"),
)

# Word boundaries; the library knows those of source code, not of prose.
_PROSE_MARK = re.compile(r"[.,)\]](?=\s|$)")
_OTHER_SCRIPT = re.compile(r"[\u2000-\uffef]")
_REST_OF_RUN = re.compile(r"(?:[\w+/=~-]|\.(?=\w))*", re.ASCII)
_ADDRESS_PASSWORD = re.compile(r"://[^\s/:@]{0,80}:(?!\d+[/?#])([^\s/@][^\s@]{0,200})(?=@)")


def private_key_spans(text: str) -> Iterator[Span]:
    """PEM private keys, from first to last line; truncated ones, to the end of the text."""
    position = 0
    while (start := text.find(KEY_BEGINS, position)) >= 0:
        position = start + 11
        if "PRIVATE KEY" not in text[position : position + HEAD_CHARACTERS].partition("-----")[0]:
            continue
        tail = text.find("-----END ", position)
        close = text.find("-----", tail + 9) if tail >= 0 else -1
        position = close + 5 if close >= 0 else len(text)
        yield start, position, SecretClass.PRIVATE_KEY


def vendor_token_spans(plain: PlainText, labels: LabelMatches, vocabulary: Vocabulary) -> Iterator[Span]:
    """Unordered; may overlap. What is only an example of a password is not returned.

    The library's time grows quadratically with its findings: callers hand over a few thousand characters.
    """
    yield from _found_in(plain, labels, vocabulary)
    for match in _ADDRESS_PASSWORD.finditer(plain.text):
        if match[1].lower() not in vocabulary.example_words and match[1][0] not in "<{$[":
            yield (*match.span(1), SecretClass.PASSWORD)


def _found_in(plain: PlainText, labels: LabelMatches, vocabulary: Vocabulary) -> Iterator[Span]:
    text = plain.text
    piece = _PROSE_MARK.sub(" ", text).replace("\0", " ").replace("</", " /").replace("leaks:allow", "leaks allow")
    piece = piece if piece.isascii() else _OTHER_SCRIPT.sub(" ", piece)
    position: dict[str, int] = {}  # where to continue the search for values found several times
    for finding in betterleaks.scan_string(piece.encode("utf-8", "replace").decode(), RULES):
        kind, secret, found = _class_of(finding.rule_id), finding.secret, finding.match.full
        start = piece.find(found, position.get(found, 0)) if secret.lower() not in vocabulary.example_words else -1
        if kind and secret and start >= 0:
            position[found] = start + 1
            named, start = start, start + max(0, found.rfind(secret))
            end = _REST_OF_RUN.match(text, start + len(secret)).end()  # type: ignore[union-attr]  # matches "" at least
            is_by_name = _GENERIC in finding.rule_id  # a rule of no vendor: then it has to look like a secret as well
            is_example = is_by_name and (secret.lower() in vocabulary.prose or is_masked(secret) or is_made_up(secret))
            is_named = not is_by_name or not labels.is_look_alike(named, start)
            is_cut_off = any(mark in text[start : end + len(mark)] for mark in _CUT_OFF)
            if is_named and not is_example and not is_cut_off:
                yield start, end, kind


def _class_of(rule: str) -> SecretClass | None:
    """The class of a rule; None for findings that are no secrets themselves."""
    if any(part in rule for part in _NOT_SECRET_RULES):
        return None
    if rule == "private-key":
        return SecretClass.PRIVATE_KEY
    if any(part in rule for part in _PASSWORD_RULES):
        return SecretClass.PASSWORD
    is_token = any(part in rule for part in _TOKEN_RULES) and "api" not in rule and "access-key" not in rule
    return SecretClass.TOKEN if is_token else SecretClass.API_KEY
