"""The compiled kernels, one C++ file per structure, and what Python keeps of time and memory for them."""
