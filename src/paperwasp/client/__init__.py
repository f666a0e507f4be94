"""The commands of the command line to a running service, over HTTP like any other client."""
