"""Runs benchmarks and prints one table: `make bench`, `make bench ONLY=top_k`, or this file with --help."""

import os
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).parent
sys.path[0] = str(HERE.parent)
# What is timed is the thread that asks: NumPy's matrix products are not to be shared out to others that nobody times.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(1, sysconfig.get_path("purelib", vars={"base": str(HERE / ".cache" / "peers")}))

if __name__ == "__main__":
    from bench.command import main

    main()
