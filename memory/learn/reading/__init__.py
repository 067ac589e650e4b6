"""Messages read once, into claims: the one place where meaning is decided."""
