"""For whoever operates a service: who may use it, what it measures and logs, and backups of its data."""
