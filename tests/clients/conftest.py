"""The clients are driven against the same child process as the tests of the service: its helpers are found there."""
