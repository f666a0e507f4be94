#!/bin/sh
# Installs paperwasp in place, with its compiled core. $1: the virtual environment's bin folder.
# First what it needs, as pip installs it by default; then the package alone with the build tools that are installed, so
# that the core is rebuilt in seconds.
set -eu
bin=$(cd "$1" && pwd)
PATH="$bin:$PATH"
export PATH
# ninja has no use for the pipe of a make with jobs, and stops where it cannot open it.
unset MAKEFLAGS

# One build at a time: two would write the same files.
exec 9> "$bin/.build-lock"
if command -v flock > /dev/null; then flock 9; fi
"$bin/python" -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" |
    "$bin/python" -m pip install --quiet --requirement /dev/stdin
# Bytecode as an installed wheel has it, also for whoever has it not written (PYTHONDONTWRITEBYTECODE): a start takes
# half as long.
"$bin/python" -m compileall -q src/paperwasp
exec "$bin/python" -m pip install --quiet --no-deps --no-build-isolation --editable .
