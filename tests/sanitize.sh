#!/bin/sh
# The kernels under AddressSanitizer and UndefinedBehaviorSanitizer: builds them apart, and runs with them the tests
# that work them hardest. Arguments are pytest's. Where the compiler is not GCC, or lacks the sanitizers' runtimes, it
# says so and succeeds.
set -eu
cd "$(dirname "$0")/.."
bin=$(pwd)/.venv/bin
work=$(pwd)/build/sanitize
mkdir -p "$work"
compiler=${CXX:-c++}

runtimes=
for library in asan ubsan stdc++; do
    found=$("$compiler" -print-file-name="lib$library.so" 2> /dev/null || true)
    if [ ! -f "$found" ]; then
        echo "sanitize: '$compiler' has no lib$library.so; skipped"
        exit 0
    fi
    runtimes=$runtimes${runtimes:+:}$found
done

PATH="$bin:$PATH" cmake -S . -B "$work/cmake" -G Ninja \
    -DCMAKE_BUILD_TYPE=Debug -DPAPERWASP_SANITIZE=ON \
    -DPython_EXECUTABLE="$bin/python" -Dnanobind_DIR="$("$bin/python" -m nanobind --cmake_dir)" > "$work/cmake.log"
# ninja has no use for the pipe of a make with jobs, and stops where it cannot open it.
unset MAKEFLAGS
PATH="$bin:$PATH" cmake --build "$work/cmake" > "$work/build.log" || { cat "$work/build.log"; exit 1; }

# A copy of the package with the checked kernels in it. It is taken instead of the one that is installed in place, whose
# finder would come first.
package=$work/package
rm -rf "$package"
mkdir -p "$package"
cp -R src/paperwasp "$package/paperwasp"
cp "$work"/cmake/_core*.so "$package/paperwasp/core/"
cp "$("$bin/python" -c "from paperwasp.text.linguistics import krovetzstemmer as module; print(module.__file__)")" \
    "$package/paperwasp/text/linguistics/"
# Of every process of the tests: those that run them side by side are started by programs that are not ours.
cat > "$package/sitecustomize.py" << END
import sys

sys.meta_path = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("_editable")]
from paperwasp.core import _core

if not _core.__file__.startswith("$package"):
    raise SystemExit(f"sanitize: these are not the checked kernels: {_core.__file__}")
END

# The one structure that is written beside readers without a lock, under ThreadSanitizer and without Python.
if [ "$#" -eq 0 ] && [ -f "$("$compiler" -print-file-name=libtsan.so)" ]; then
    core=src/paperwasp/core
    "$compiler" -std=c++17 -O1 -g -fsanitize=thread -I"$core" tests/core/vectors/hnsw_race.cpp "$core"/vectors/hnsw_*.cpp \
        "$core/vectors/hamming.cpp" "$core/vectors/vector_distance.cpp" -o "$work/hnsw_race"
    "$work/hnsw_race"
fi

# Python itself is not built with the sanitizers, so their runtimes come first, and its own leaks are no concern.
# How much a graph finds after replacements says nothing of memory: of its metrics, one replaces everything here.
recall=tests/core/vectors/test_hnsw_changes.py::test_recall_after_three_replacements_of_everything
[ "$#" -gt 0 ] || set -- --deselect "$recall[angular" --deselect "$recall[product" tests/core tests/storage/index tests/storage/attributes \
    tests/search/test_content_search.py tests/search/show/test_marking.py tests/search/features/test_bm25.py \
    tests/search/features/test_features.py tests/search/features/test_native_rank.py \
    tests/container/search/test_text_requests.py tests/container/search/test_near_requests.py
LD_PRELOAD=$runtimes ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH=$package \
    "$bin/python" -m pytest -p no:cacheprovider --numprocesses auto --dist loadfile --no-loadscope-reorder "$@"
