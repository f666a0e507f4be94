#!/bin/sh
# Installs paperwasp in place, with its compiled core. $1: the virtual environment's bin folder.
# Where the machine has no C++ compiler, the one that PyPI's ziglang carries is used.
set -eu
bin=$(cd "$1" && pwd)
PATH="$bin:$PATH"
export PATH

# A command of zig's as a program of its own, which is how CMake wants compilers and archivers.
zig() {
    printf '#!/bin/sh\nexec "%s/python" -m ziglang %s "$@"\n' "$bin" "$1" > "$bin/zig-$1"
    chmod +x "$bin/zig-$1"
}

if ! command -v "${CXX:-c++}" > /dev/null; then
    zig c++
    zig ar
    zig ranlib
    CXX="$bin/zig-c++"
    CMAKE_ARGS="${CMAKE_ARGS:-} -DCMAKE_AR=$bin/zig-ar -DCMAKE_RANLIB=$bin/zig-ranlib"
    CC="$CXX"  # what the packages that come as source ask for
    export CC CXX CMAKE_ARGS
fi

# One build at a time: two would write the same files.
exec 9> "$bin/.build-lock"
if command -v flock > /dev/null; then flock 9; fi
exec "$bin/python" -m pip install --quiet --no-build-isolation --editable .
