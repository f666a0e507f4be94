"""HTTP without input and output, and the threads that read and answer sockets."""
