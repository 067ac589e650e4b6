"""Users' memories in this process, ready to be ranked, and the snapshots that outlive it."""
