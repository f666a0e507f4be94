"""The compiled kernels, one C++ file per structure, and their plain NumPy twins."""
