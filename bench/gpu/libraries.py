# SPDX-License-Identifier: Apache-2.0
"""Prints the file of a library of NVIDIA's that Lathe is to open; status 1 where there is none.

    libraries.py cublaslt|cudnn|nccl

Where its variable names none and neither the loader nor a toolkit has it, PyTorch's copy is taken:
it lies among Python's packages, where no loader looks.
"""

import ctypes
import importlib.util
import os
import sys
from pathlib import Path


class Library:
    def __init__(self, variable, name, version, writes_version=False):
        self.variable, self.name = variable, name
        self.version, self.writes_version = version, writes_version  # its function, which returns it or writes it
        self.stem = name.partition(".so.")[0]

    def of_python(self):
        """Copies among Python's packages, also of other versions; imports nothing."""
        spec = importlib.util.find_spec("nvidia")
        folders = spec.submodule_search_locations if spec else []
        return sorted(str(path) for f in folders for path in Path(f).glob(f"*/lib/{self.stem}.so.*"))

    def version_of(self, library):
        ask = getattr(library, self.version)
        if not self.writes_version:
            ask.restype = ctypes.c_size_t
            return ask()
        number = ctypes.c_int()
        ask(ctypes.byref(number))
        return number.value

    def candidates(self):
        if named := os.environ.get(self.variable):
            return [named]
        roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
        toolkits = [f"{root}/lib64/{self.name}" for root in roots if root]
        own = [path for path in self.of_python() if path.endswith(self.name)]
        return list(dict.fromkeys([self.name, *toolkits, *own]))

    def found(self):
        """What opens first: its file and version, or why there is none."""
        for name in self.candidates():
            try:
                number = self.version_of(ctypes.CDLL(name))
            except (OSError, AttributeError):
                continue
            mapped = (line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines())
            file = name if "/" in name else next(m for m in mapped if Path(m).name.startswith(self.name))
            return {"file": file, "version": number}
        return {"missing": f"no {self.name}; Python has {self.of_python() or 'none'}"}


# The versions that Lathe opens.
LIBRARIES = {
    "cublaslt": Library("LATHE_CUBLASLT", "libcublasLt.so.13", "cublasLtGetVersion"),
    "cudnn": Library("LATHE_CUDNN", "libcudnn.so.9", "cudnnGetVersion"),
    "nccl": Library("LATHE_NCCL", "libnccl.so.2", "ncclGetVersion", writes_version=True),
}


if __name__ == "__main__":
    library = LIBRARIES[sys.argv[1]].found()
    print(library.get("file", ""))
    sys.exit("file" not in library)
