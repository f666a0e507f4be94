"""paperwasp as a library: a service in this process, without a server to run."""
