"""What every process uses: logs, metrics, tasks, threads, garbage collection."""
