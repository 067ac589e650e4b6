"""What the turn log must never hold is gone before it gets there, and nothing else is."""

from __future__ import annotations

from memory.learn.redaction import redact


def test_the_full_stop_after_a_key_stays_so_that_the_next_sentence_is_its_own() -> None:
    text = "My API key is sk-proj-aB3dE5fG7hJ9kL1mN2pQ4rS6tU8v. My terrier is called Biscuit."
    assert redact(text) == "My API key is [redacted api key]. My terrier is called Biscuit."
