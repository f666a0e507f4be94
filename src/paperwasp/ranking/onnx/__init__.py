"""Models in ONNX files: what they take and give, how they are run, and the process in which they are tried first."""
