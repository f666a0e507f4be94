#!/bin/sh
# Builds a wheel with each Python named (python3.11, /usr/bin/python3 …), installs it where there is no compiler, and
# runs a quick part of the tests with it. The first is built without a compiler, too: then the build takes the one of
# PyPI's ziglang; with the first the demo is run as well. Ends by saying which were tried; fails where one fails, is not
# here, or none is named.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tried=

# Half a minute: records, private parts of asyncio, kernels by what stands on them, languages, and services with queries
# and older data. They need none of the tools for development but these.
tools="pytest pytest-timeout hypothesis httpx[http2]"
quick="tests/base/test_records.py tests/base/test_asyncio_internals.py tests/http/test_eager.py tests/document
    --ignore=tests/document/tensor tests/storage/index tests/storage/documents tests/text/linguistics
    tests/query_languages/yql/test_yql_scripts.py tests/service/test_query_scripts.py
    tests/upgrade/test_older_data.py tests/core/test_object_memory.py"

# Built from what the Dockerfile copies, and from nothing else: so the image's build is tried where there is no Docker.
context=$work/context
sed -n 's/^COPY \([^-].*\) \([^ ]*\)$/\2 \1/p' Dockerfile | while read -r target sources; do
    mkdir -p "$context/$target"
    for source in $sources; do
        if [ -d "$source" ]; then cp -R "$source/." "$context/$target"; else cp "$source" "$context/$target"; fi
    done
done
find "$context" -name __pycache__ -prune -exec rm -r {} + -o -name '*.so' -exec rm {} +

for python; do
    name=$("$python" -c 'import platform; print(platform.python_version())')
    for use in build try; do
        "$python" -m venv "$work/$use-$name"
    done
    build=$work/build-$name/bin
    try=$work/try-$name/bin
    env PATH="$build${tried:+:$PATH}" "$build/python" -m pip wheel --quiet --no-deps --wheel-dir "$work/$name" "$context"
    # shellcheck disable=SC2086
    env PATH="$try" "$try/python" -m pip install --quiet "$work/$name"/*.whl $tools
    if [ -z "$tried" ]; then
        env PATH="$try" "$try/python" examples/pydoc/demo.py --once > "$work/demo.txt" || { cat "$work/demo.txt"; exit 1; }
    fi
    # shellcheck disable=SC2086
    env PATH="$try" PYTHONHASHSEED=0 "$try/python" -m pytest -p no:cacheprovider $quick
    tried="$tried $name"
done
echo "wheels: built, installed and tried with${tried:- none}"
[ -n "$tried" ]
