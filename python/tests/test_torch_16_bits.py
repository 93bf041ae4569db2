# SPDX-License-Identifier: Apache-2.0
"""Ops of several steps in 16 bits: no further from the exact value than PyTorch's own, or rounded once."""
import pytest
import torch
import torch.nn.functional as F

import lathe.torch as lt

pytestmark = pytest.mark.filterwarnings("ignore")

ONE_ROUNDING = 0.51  # units in the last place

OPS = {
    "softplus": F.softplus, "softplus_beta": lambda x: F.softplus(x, 3.0, 5.0), "log1p": lambda x: torch.log1p(x.abs()), "expm1": torch.expm1,
    "mish": F.mish, "logsigmoid": F.logsigmoid, "elu": F.elu, "leaky_relu": lambda x: F.leaky_relu(x, 0.3), "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "hardswish": F.hardswish,
    "selu": F.selu, "glu": lambda x: F.glu(x), "softsign": F.softsign, "rsqrt": lambda x: (x.abs() + 1).rsqrt(),
    "cube": lambda x: x**3, "power": lambda x: x.abs() ** 0.7, "exp2": torch.exp2, "log2": lambda x: x.abs().log2(),
    "scaled_sum": lambda x: torch.add(x, x[:, :1], alpha=0.75), "scaled_difference": lambda x: torch.sub(x, x[:, :1], alpha=3),
    "nearly_nothing": lambda x: torch.add(x, x, alpha=-0.9921875),
    "lerp": lambda x: torch.lerp(x, x.flip(1), 0.375), "addcmul": lambda x: torch.addcmul(x, x.flip(0), x.flip(1), value=0.5),
    "addcdiv": lambda x: torch.addcdiv(x, x.flip(0), x.flip(1).abs() + 1, value=0.5),
    "logaddexp": lambda x: torch.logaddexp(x, x.flip(1)), "logsumexp": lambda x: torch.logsumexp(x, 1),
    "softmax": lambda x: x.softmax(1), "log_softmax": lambda x: x.log_softmax(1), "mean": lambda x: x.mean(1), "sum": lambda x: x.sum(0),
    "cumsum": lambda x: x.cumsum(1), "var": lambda x: x.var(1), "std": lambda x: x.std(1), "norm": lambda x: x.norm(dim=1),
    "normalize": lambda x: F.normalize(x, dim=1), "cosine": lambda x: F.cosine_similarity(x, x.flip(0), dim=1),
    "layer_norm": lambda x: F.layer_norm(x, (64,), x[0], x[1]), "rms_norm": lambda x: F.rms_norm(x, (64,), x[0], 1e-5),
    "group_norm": lambda x: F.group_norm(x.reshape(4, 16, 64), 4, x[0, :16], x[1, :16]),
    "batch_norm": lambda x: F.batch_norm(x.reshape(4, 16, 64), x[0, :16], x[1, :16].abs() + 0.1, x[2, :16], x[3, :16]),
    "addmm": lambda x: torch.addmm(x, x, x, beta=0.5, alpha=0.25),
    "avg_pool": lambda x: F.avg_pool2d(x[None, None], 3, 1, 1), "interpolation": lambda x: F.interpolate(x[None, None], scale_factor=1.5, mode="bilinear"),
}


def units(y, exact):
    """How far `y` is from what it should be, in units in the last place of its dtype."""
    about = torch.finfo(y.dtype)
    exponent = torch.frexp(exact.abs().clamp(min=about.tiny))[1]
    return ((y.double() - exact).abs() / torch.ldexp(torch.tensor(about.eps, dtype=torch.float64), exponent - 1)).max().item()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "f16"])
@pytest.mark.parametrize("name", OPS)
def test_rounds_no_more_than_pytorch(name, dtype):
    torch._dynamo.reset()
    lt.reset()
    x = (torch.randn(64, 64, generator=torch.Generator().manual_seed(len(name))) * 2).to(dtype)
    function = OPS[name]
    with torch.no_grad():
        exact = function(x.double())
        mine, eager = torch.compile(lambda x: function(x), backend="lathe")(x), function(x)
    assert not lt.fallbacks and mine.dtype == dtype
    assert units(mine, exact) <= max(ONE_ROUNDING, 1.02 * units(eager, exact))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "f16"])
def test_a_layer_rounds_once(dtype):
    torch._dynamo.reset()
    torch.manual_seed(1)
    layer = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU()).to(dtype)
    x = torch.randn(32, 64).to(dtype)
    with torch.no_grad():
        mine, eager = torch.compile(layer, backend="lathe")(x), layer(x)
        exact = layer.double()(x.double())
    where = exact > 0.01  # sums of f32 cancel near 0
    assert units(mine[where], exact[where]) <= max(ONE_ROUNDING, 1.02 * units(eager[where], exact[where]))
