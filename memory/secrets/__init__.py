"""Finds secrets in a text and redacts them: `redaction.redact` and `recordable`.

Finders are pure and must never keep, log or return more of a secret than its position.
"""
