#!/bin/sh
# The kernels under ThreadSanitizer, with a mixed load: queries on all threads beside feeding. Arguments are those of
# tests/races.py, such as the seconds. Where the compiler has no ThreadSanitizer, it says so and succeeds.
set -eu
cd "$(dirname "$0")/.."
bin=$(pwd)/.venv/bin
work=$(pwd)/build/races
mkdir -p "$work"
compiler=${CXX:-c++}
runtime=$("$compiler" -print-file-name=libtsan.so 2> /dev/null || true)
if [ ! -f "$runtime" ]; then
    echo "races: '$compiler' has no libtsan.so; skipped"
    exit 0
fi

PATH="$bin:$PATH" cmake -S . -B "$work/cmake" -G Ninja \
    -DCMAKE_BUILD_TYPE=Debug -DPAPERWASP_SANITIZE_THREADS=ON \
    -DPython_EXECUTABLE="$bin/python" -Dnanobind_DIR="$("$bin/python" -m nanobind --cmake_dir)" > "$work/cmake.log"
unset MAKEFLAGS
PATH="$bin:$PATH" cmake --build "$work/cmake" > "$work/build.log" || { cat "$work/build.log"; exit 1; }

# A copy of the package with the checked kernels in it, as in sanitize.sh.
package=$work/package
rm -rf "$package"
mkdir -p "$package"
cp -R src/paperwasp "$package/paperwasp"
cp "$work"/cmake/_core*.so "$package/paperwasp/core/"
cp "$("$bin/python" -c "from paperwasp.text.linguistics import krovetzstemmer as module; print(module.__file__)")" \
    "$package/paperwasp/text/linguistics/"
cat > "$package/sitecustomize.py" << END
import sys

sys.meta_path = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("_editable")]
from paperwasp.core import _core

if not _core.__file__.startswith("$package"):
    raise SystemExit(f"races: these are not the checked kernels: {_core.__file__}")
END

# Python, NumPy and RocksDB are not built with it: what they alone do is not looked at.
LD_PRELOAD=$runtime TSAN_OPTIONS="halt_on_error=0 exitcode=66 ignore_noninstrumented_modules=1 report_signal_unsafe=0" \
    PYTHONPATH=$package:$(pwd) "$bin/python" -m tests.races "$@"
