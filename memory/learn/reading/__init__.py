"""Reading: messages become claims. The only place where meaning is decided."""
