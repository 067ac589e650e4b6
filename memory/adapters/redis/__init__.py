"""The turn log, the user ledger and what belongs to them, on a Redis server or cluster."""
