"""The service as a process: its roles, how they start and stop, and what is checked of the machine that it runs on."""
