# SPDX-License-Identifier: Apache-2.0
"""Lathe compiles transformers: record a graph, or import a model of PyTorch, compile it, run it.

    import lathe
    g = lathe.Graph("mlp")
    x = g.input("x", "f32", [g.dim("batch", 1, 64), 64])
    g.output("y", lathe.nn.SwiGLU(g, "mlp", 64, 172)(x))
    session = lathe.Session(lathe.compile(g))

Importing the package loads the runtime. LLVM is loaded when a name that records or compiles is
first asked for; lathe.torch needs PyTorch and is imported by itself.
"""
import importlib
import os as _os

from ._runtime import Array, Dim, Error, Program, Session, allocations

__version__ = "0.1.0"

# Names of other modules of the package; all others that are asked for are the compiler's.
_QUESTIONS = ("ir", "why_not", "rewrites", "check_numerics", "diff", "report")
_MODULES = ("torch", "questions")


def _load_compiler():
    """The module that records and compiles; loading it loads LLVM."""
    try:
        module = importlib.import_module("._compiler", __name__)
    except ModuleNotFoundError as e:
        if e.name != __name__ + "._compiler":
            raise
        raise Error("this needs the compiler, and only the runtime is installed: pip install lathe") from e
    module._set_package_folder(_os.path.dirname(__file__) + _os.sep)
    return module


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    if name in _MODULES:
        return importlib.import_module("." + name, __name__)
    if name in _QUESTIONS:
        value = getattr(importlib.import_module(".questions", __name__), name)
    else:
        try:
            value = getattr(_load_compiler(), name)
        except AttributeError:
            raise AttributeError(f"module 'lathe' has no attribute '{name}'") from None
    globals()[name] = value
    return value


def __dir__():
    compiler = [n for n in dir(_load_compiler()) if not n.startswith("_")]
    return sorted(set(list(globals()) + compiler + list(_QUESTIONS) + list(_MODULES)))
