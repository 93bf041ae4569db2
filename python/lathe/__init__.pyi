# SPDX-License-Identifier: Apache-2.0
# What `import lathe` shows: the two modules, whose stubs are generated, and questions.
from . import _compiler, questions as questions, torch as torch
from ._compiler import *
from ._compiler import fused as fused, nn as nn, onnx as onnx
from ._runtime import Array as Array, Dim as Dim, Program as Program, Session as Session, allocations as allocations
from .questions import check_numerics as check_numerics, diff as diff, ir as ir, report as report, \
    rewrites as rewrites, why_not as why_not

__version__: str

class Error(RuntimeError):
    """A mistake of the user or a bad file."""
    code: str
    file: str | None
    line: int | None
