"""Secrets in a text: where they are, and what is put in their place.

`redaction` is the door: `redact` and `recordable`. Every finder here is pure and must never keep, log or return more of
a secret than its place.
"""
