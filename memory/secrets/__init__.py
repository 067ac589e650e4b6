"""Finds secrets in a text and redacts them.

The entry points are `redaction.redact` and `recordable`. Finders are pure and must never keep, log or return more of a
secret than its position.
"""
