#!/bin/sh
# Installs paperwasp in place, with its compiled core. $1: the virtual environment's bin folder.
# Where the machine has no C++ compiler, the one that PyPI's ziglang carries is used.
set -eu
bin=$1
PATH="$(cd "$bin" && pwd):$PATH"
export PATH
if ! command -v "${CXX:-c++}" >/dev/null; then
    mkdir -p build
    printf '#!/bin/sh\nexec "%s" -m ziglang c++ "$@"\n' "$(cd "$bin" && pwd)/python" > build/zig-c++
    chmod +x build/zig-c++
    CXX="$(pwd)/build/zig-c++"
    export CXX
fi
# One build at a time: two would write the same files.
exec 9>"$bin/.build-lock"
if command -v flock >/dev/null; then flock 9; fi
exec "$bin/python" -m pip install --quiet --no-build-isolation --editable .
