"""The composition root: the only place where adapters are built and connected."""
