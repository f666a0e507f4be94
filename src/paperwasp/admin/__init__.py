"""Administration: who may use a service, what it measures and logs, and backups of its data."""
