#!/bin/sh
# Builds a wheel with each Python named (3.11 3.12 …) that is here, installs it where there is no compiler, and runs the
# demo with it. The first is built without a compiler, too: then the build takes the one of PyPI's ziglang.
# Ends by saying which were tried; fails where one fails, or none is here.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tried=
absent=

for version; do
    if ! "python$version" -c '' 2> /dev/null; then
        absent="$absent $version"
        continue
    fi
    for use in build try; do
        "python$version" -m venv "$work/$use-$version"
    done
    build=$work/build-$version/bin
    try=$work/try-$version/bin
    env PATH="$build${tried:+:$PATH}" "$build/python" -m pip wheel --quiet --no-deps --wheel-dir "$work/$version" .
    env PATH="$try" "$try/python" -m pip install --quiet "$work/$version"/*.whl
    env PATH="$try" "$try/python" examples/pydoc/demo.py --once > "$work/demo.txt" || { cat "$work/demo.txt"; exit 1; }
    tried="$tried $("$try/python" -c 'import platform; print(platform.python_version())')"
done
echo "wheels: built, installed and run with${tried:- none}${absent:+; not on this machine:$absent}"
[ -n "$tried" ]
