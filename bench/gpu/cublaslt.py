# SPDX-License-Identifier: Apache-2.0
"""Prints the file of the cuBLASLt that Lathe is to open; status 1 where there is none.

Where LATHE_CUBLASLT names none and neither the loader nor a toolkit has it, PyTorch's copy is taken:
it lies among Python's packages, where no loader looks.
"""

import ctypes
import importlib.util
import os
import sys
from pathlib import Path

NAME = "libcublasLt.so.13"  # the version that Lathe opens


def of_python():
    """Copies among Python's packages, also of other versions; imports nothing."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else []
    return sorted(str(path) for f in folders for path in Path(f).glob("*/lib/libcublasLt.so.*"))


def candidates():
    if named := os.environ.get("LATHE_CUBLASLT"):
        return [named]
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    toolkits = [f"{root}/lib64/{NAME}" for root in roots if root]
    own = [path for path in of_python() if path.endswith(NAME)]
    return list(dict.fromkeys([NAME, *toolkits, *own]))


def found():
    """What opens first: its file and version, or why there is none."""
    for name in candidates():
        try:
            library = ctypes.CDLL(name)
            library.cublasLtGetVersion.restype = ctypes.c_size_t
            version = library.cublasLtGetVersion()
        except (OSError, AttributeError):
            continue
        mapped = (line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines())
        file = name if "/" in name else next(m for m in mapped if Path(m).name.startswith(NAME))
        return {"file": file, "version": version}
    return {"missing": f"no {NAME}; Python has {of_python() or 'none'}"}


if __name__ == "__main__":
    library = found()
    print(library.get("file", ""))
    sys.exit("file" not in library)
