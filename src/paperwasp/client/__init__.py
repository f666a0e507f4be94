"""What the command line does to a running service, over HTTP like any other client."""
