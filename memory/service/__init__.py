"""What may be done with memories, whoever asks: the library, erasure, and writes under the user's lock."""
