# SPDX-License-Identifier: Apache-2.0
"""PyTorch's attention back ends, matrix products and row kernels by themselves."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch_measure import DEVICE, timed

BACK_ENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}
# rows, columns, terms: the square ones are the matrix roof, the others linear layers.
PRODUCTS = [(8192, 8192, 8192), (4096, 4096, 4096), (2048, 28672, 4096), (2048, 4096, 14336)]
PRODUCTS += [(2048, 6144, 4096), (2048, 4096, 4096), (512, 4096, 4096), (2048, 16384, 2048)]
PRODUCTS += [(1, 28672, 4096), (1, 4096, 4096), (1, 128256, 2048), (8, 28672, 4096)]
PRODUCTS += [(16, 28672, 4096)]
ROWS = [(16384, 4096), (16384, 2048), (32768, 8192), (512, 4096)]


def random(*shape):
    return torch.randn(*shape, device=DEVICE, dtype=torch.bfloat16)


def attention_one(book, back_end, heads, tokens, size, key):
    q, k, v = (random(1, heads, tokens, size) for _ in range(3))
    with sdpa_kernel(BACK_ENDS[back_end]), torch.no_grad():
        result = timed(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    result["tflops"] = 2.0 * tokens * tokens * heads * size / result["ms"] / 1e9
    book.put(key, result)


def attention(book, tiny):
    for size in (64, 128):
        for tokens in (64,) if tiny else (1024, 2048, 4096, 8192, 16384):
            for name in BACK_ENDS:
                if name == "math" and tokens > 2048:
                    continue
                key = f"attention_causal_{name}_hd{size}_{tokens}"
                book.run(key, 2, lambda: attention_one(book, name, 32, tokens, size, key))


def product_one(book, m, n, k, key):
    # Copies of the weights to walk over, so that no cache holds them.
    count = max(1, min(8, int(2.5e8 // (2 * n * k))))
    x, weights = random(m, k), [random(n, k) for _ in range(count)]

    def work():
        for weight in weights:
            F.linear(x, weight)

    with torch.no_grad():
        result = {name: ms / count for name, ms in timed(work, repetitions=21).items()}
    result["tflops"] = 2.0 * m * n * k / result["ms"] / 1e9
    result["weight_gbps"] = 2.0 * n * k / result["ms"] / 1e6
    book.put(key, result)


def products(book, tiny):
    for m, n, k in [(4, 64, 32)] if tiny else PRODUCTS:
        key = f"product_{m}x{n}x{k}"
        book.run(key, 3, lambda: product_one(book, m, n, k, key))


def rows_one(book, function, compiled, elements, key):
    torch._dynamo.reset()
    work = torch.compile(function, dynamic=False) if compiled else function
    with torch.no_grad():
        result = timed(work, repetitions=21)
    result["gbps_read_and_written"] = 2.0 * 2 * elements / result["ms"] / 1e6
    book.put(key, result)


def rows(book, tiny):
    for count, columns in [(4, 64)] if tiny else ROWS:
        x, gain = random(count, columns), random(columns)
        functions = {
            "rms_norm": lambda: F.rms_norm(x, (columns,), gain, 1e-5),
            "softmax": lambda: torch.softmax(x, -1),
            "silu_mul": lambda: F.silu(x) * x,
        }
        for name, function in functions.items():
            for compiled in (False, True):
                key = f"{name}_{'compiled' if compiled else 'eager'}_{count}x{columns}"
                needed = 8 if compiled else 1
                sizes = count * columns
                book.run(key, needed, lambda: rows_one(book, function, compiled, sizes, key))
