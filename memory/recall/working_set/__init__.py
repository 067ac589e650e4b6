"""Working sets: users' memories in this process, ready to be ranked, and their snapshots."""
