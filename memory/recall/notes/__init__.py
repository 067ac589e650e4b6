"""What goes into the prompt: notes, where they are placed, notes of earlier requests, and receipts."""
