"""Ports on one database in SQL: turn log, user ledger, notes, receipts, and what is known about models."""
