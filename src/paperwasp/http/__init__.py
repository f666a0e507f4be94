"""HTTP as values: requests, responses and a router, without I/O. The servers and the handlers meet here."""
