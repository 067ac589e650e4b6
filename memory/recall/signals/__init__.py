"""Does a request want memory at all? Signals from ahead, rules, then a small classifier."""
