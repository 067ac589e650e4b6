"""The composition root: adapters are built and put together here, and nowhere else."""
