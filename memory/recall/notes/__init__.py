"""What the model is told: notes, where they stand, past notes, and receipts."""
