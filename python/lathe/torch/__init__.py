# SPDX-License-Identifier: Apache-2.0
"""Models of PyTorch: export() makes a graph of a module, torch.compile(model, backend="lathe") runs one through
Lathe. Needs torch; with transformers, attention and masks come through its public hooks."""
from .backend import compiled, fallbacks, lathe_backend, rebind, reset
from .export import Exported, export
from .runner import Runner

__all__ = ["Exported", "Runner", "compiled", "export", "fallbacks", "lathe_backend", "rebind", "reset"]
