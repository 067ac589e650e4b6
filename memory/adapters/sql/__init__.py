"""Ports on one SQLite file: turn log, user ledger, notes, receipts, and what is known about models."""
