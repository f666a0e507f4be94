"""Whether the service does what its specification says: a list of every row with its proof, and proofs over HTTP."""
