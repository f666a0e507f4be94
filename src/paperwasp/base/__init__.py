"""The ground that every package may use: records, the environment, threads, patterns, files, measurements."""
