#!/bin/sh
# Brings the headers of cuDNN's frontend, as NVIDIA publishes them on PyPI, to a build folder, where
# cmake/cuda.cmake finds them:  cmake/fetch_cudnn_frontend.sh BUILD_FOLDER
# Without them the program is built with its own attention kernels alone.
set -eu
version=1.32.0
[ $# -eq 1 ] || { echo "usage: $0 BUILD_FOLDER" >&2; exit 2; }
target=$1/cudnn_frontend
[ -e "$target/include/cudnn_frontend.h" ] && exit 0
mkdir -p "$target"
/usr/bin/python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$target" \
  "nvidia-cudnn-frontend==$version"
/usr/bin/python3 - "$target" <<'PYTHON'
import glob, sys, zipfile
target = sys.argv[1]
with zipfile.ZipFile(glob.glob(target + "/*.whl")[0]) as wheel:
    wheel.extractall(target, [name for name in wheel.namelist() if name.startswith("include/")])
PYTHON
rm "$target"/*.whl
