# SPDX-License-Identifier: Apache-2.0
"""Weights that Python and C++ make alike (tests/golden/family_weights.h): goldens hold none.

Element i of a tensor is a function of its name, of i and of a seed: FNV-1a of the name, mixed by
splitmix64, gives 24 bits, which are a number in [-1, 1) without rounding.
"""
import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def fnv1a(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) % (1 << 64)
    return h


def uniform(name, seed, count):
    """f64 [count] in [-1, 1)."""
    with np.errstate(over="ignore"):
        start = np.uint64(fnv1a(name)) ^ (np.uint64(seed) * GOLDEN)
        z = start + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float64) / (1 << 23) - 1


def weight(name, shape, seed):
    """Gains lie around 1, biases around 0, matrices keep the size of what they multiply."""
    u = uniform(name, seed, int(np.prod(shape)))
    if len(shape) <= 1:
        values = 1 + 0.3 * u if name.endswith("weight") else 0.3 * u
    else:
        values = 1.5 / np.sqrt(float(np.prod(shape[1:]))) * u
    return values.astype(np.float32).reshape(shape)
