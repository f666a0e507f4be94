"""What each kernel of the core must compute, in plain Python and NumPy: slow, and written to be read."""
