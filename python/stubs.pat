# What signatures of the modules name without defining it.
lathe._runtime.__prefix__:
    import os
    import numpy
    \from collections.abc import Mapping, Sequence
    \from typing import TypeAlias
    ArrayLike: TypeAlias = object
    DTypeLike: TypeAlias = object
    DimLike: TypeAlias = "int | str | Dim"

lathe._compiler.__prefix__:
    import contextlib
    import os
    \from collections.abc import Callable, Sequence
    \from lathe._runtime import ArrayLike, Dim, DimLike, DTypeLike, Program

lathe._compiler.fused.__prefix__:
    \from collections.abc import Sequence
    \from lathe._compiler import Tensor
    \from lathe._runtime import DimLike, DTypeLike

lathe._compiler.nn.__prefix__:
    \from collections.abc import Sequence
    \from lathe._compiler import Graph, Tensor
    \from lathe._runtime import DimLike, DTypeLike

lathe._compiler.onnx.__prefix__:
    import os
    \from collections.abc import Mapping
    \from lathe._compiler import Graph
    \from lathe._runtime import Array, ArrayLike
