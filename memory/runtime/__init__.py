"""What any process needs, whatever it does: logs, metrics, tasks, threads, garbage collection."""
