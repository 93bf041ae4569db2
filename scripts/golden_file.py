# SPDX-License-Identifier: Apache-2.0
"""Writes safetensors files whose bytes depend on their content only."""

import json

import safetensors.torch


def write_golden(path, tensors, metadata=None):
    """Stores tensors and text metadata.

    The library writes metadata in an order that changes from run to run; here the header is sorted,
    so that running a script again changes no file whose numbers are the same.
    """
    data = safetensors.torch.save(
        {name: tensor.contiguous().clone() for name, tensor in tensors.items()}, metadata
    )
    length = int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8 : 8 + length]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(len(header).to_bytes(8, "little") + header + data[8 + length :])
