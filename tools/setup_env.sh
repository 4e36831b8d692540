#!/bin/sh
# Make a virtual environment for development, for benchmarks, for HTA or for fuzzing.
#
#   sh tools/setup_env.sh FOLDER PYTHON dev|bench|hta|hta05|fuzz
#
# Versions come from constraints-dev.txt, which holds torch at a build without CUDA: users get
# whatever torch they have, developers need only the CPU.
set -eu
folder=$1 python=$2 purpose=$3

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "traceparse needs Python 3.11 or newer; $python is $("$python" -V). Try: make PYTHON=python3.12" >&2
    exit 1
}
echo "setting up $folder for $purpose: a minute or two"
"$python" -m venv "$folder"
pip() { "$folder/bin/python" -m pip --disable-pip-version-check install --quiet --quiet "$@"; }

pip --upgrade 'pip>=25.1'  # the first one that knows dependency groups
case $purpose in
    dev) pip --constraint constraints-dev.txt --group dev --editable '.[capture,report,hta,sql,dask]' ;;
    bench)
        pip --constraint constraints-dev.txt --editable '.[hta]' orjson
        pip --constraint constraints-dev.txt torch-tb-profiler ||
            echo "no torch-tb-profiler for this Python: it will not be timed"
        ;;
    hta) pip --constraint constraints-dev.txt --editable '.[hta]' hypothesis pytest pytest-benchmark ;;
    hta05)  # without constraints, which hold pandas at 3: its call stacks need an older one
        pip --editable . 'HolisticTraceAnalysis==0.5.0' 'pandas<3' hypothesis pytest pytest-benchmark
        ;;
    fuzz)
        pip --constraint constraints-dev.txt --editable .
        pip atheris || echo "no atheris for this Python: mutations will be at random, not guided"
        ;;
    *) echo "setup_env.sh: no such purpose: $purpose" >&2; exit 2 ;;
esac
