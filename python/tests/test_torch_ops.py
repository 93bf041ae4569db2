# SPDX-License-Identifier: Apache-2.0
"""Single ops of PyTorch at both levels, with values that tell their corners apart."""
import math

import pytest
import torch
import torch.nn.functional as F

import lathe
import lathe.torch

pytestmark = pytest.mark.filterwarnings("ignore")

X = torch.tensor([[-2.5, -1.0, -0.25, 0.0, 0.5, 3.0], [7.0, -7.0, 2.0, -2.0, 1.5, -1.5]])
N = torch.tensor([[-7, -3, 0, 3, 7, 8], [1, 2, 3, 4, 5, 6]])
MASK = X > 0

OPS = {
    "signs": lambda x: (x // 2, x // 0.1, x // -0.3, x // 0, 1 // x, (x / 0) // 2, x // math.inf, x.bfloat16() // 0.1, x % 3, torch.fmod(x, 3), torch.div(x, 2, rounding_mode="trunc"), x.trunc(), -x.abs()),
    "integers": lambda n: (n // 2, n % 3, torch.fmod(n, 3), n * n - 3, n**2, n & 6, ~n),
    "comparisons": lambda x: (x > 0.5, x == 0, (x > 0) & (x < 2), (x > 0) ^ (x < 2), ~(x > 0), x.isnan()),
    "choices": lambda x: (torch.where(x > 0, x, 1.0), x.masked_fill(x > 0, -3), x.clamp(-1, 1), x.clamp(max=0),
                          F.hardtanh(x), F.relu(x)),
    "activations": lambda x: (F.silu(x), F.gelu(x), F.gelu(x, approximate="tanh"), torch.tanh(x), F.softplus(x),
                              F.softplus(x, beta=2, threshold=3)),
    "powers": lambda x: (torch.log1p(x.abs() * 1e-5), torch.log1p(x.abs()), x**2, x**3, x.abs() ** 0.5, (x.abs() + 1).rsqrt(), torch.exp(x), (x.abs() + 1).log()),
    "infinities": lambda x: ((x / 0).isinf(), (x / 0).isnan(), *(f(torch.where(x == 0, 1.0, x) / 0) for f in (
        F.softplus, F.relu, F.sigmoid, torch.tanh, torch.exp, torch.sign, torch.reciprocal)),
        torch.log1p((x.abs() + 1) / 0), (x.abs() + 1).mul(1e30).log1p(), (x / 0).clamp(-2, 3)[:, :3]),
    "rounding": lambda x: (x.floor(), x.ceil(), x.round(), torch.sign(x), torch.sign(x / 0)),
    "slices": lambda x: (x[:, 1:-1], x[:, ::2], x[-1], x[..., -2], x[:, None], x.flip(1), x.roll(1, 0),
                         x[:, -16:], x[:, :99], x[9:], x[:, -9:-3], x[:, 4:-4], x[-9:1, 2:]),
    "joins": lambda x: (torch.cat([x, x], 1), torch.stack([x, -x], -1), x.repeat(2, 3), x.repeat_interleave(2, 0)),
    "parts": lambda x: (*x.chunk(4, 1), *x.split([1, 5], 1), *x.unbind(0)),
    "pads": lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, 0, 2, 1), value=-1.0)),
    "triangles": lambda x: (x.tril(), x.triu(1), x.tril(-1)),
    "sums": lambda x: (x.sum(), x.sum(0), x.mean(1, True), x.amax(1), x.amin(0), x.prod(1), x.var(1), x.std(1),
                       x.var(0, correction=0), x.var(1, correction=0.5), x.std((0, 1), correction=2.5),
                       x.var(0, correction=2), (x > 0).any(1), (x > 0).all()),
    "orders": lambda x: (x.cumsum(1), x.argmax(1), x.argmin(0), x.argmax(), *x.topk(2), *x.sort(1, descending=True)),
    "softmaxes": lambda x: (x.softmax(-1), x.softmax(0), x.log_softmax(-1), (x / 0).log_softmax(0)),
    "indices": lambda x: (x[:, [0, -1, 3]], x[[-2]], x[:, x[0].argsort() - 2], x[[1, -1], [-6, 5]], x[[1, 0], [2, 5]], x.index_select(1, torch.tensor([5, 0])),
                          x[:, torch.arange(3) + -1], x[:, torch.arange(3) * -1], x[:, torch.add(torch.arange(3), 1, alpha=-2)],
                          x.gather(1, torch.tensor([[0, 5], [2, 2]]))),
    "nothing": lambda x: (torch.zeros_like(x), torch.full((2, 3), 4.0), torch.arange(1, 7, 2), x.new_ones(3)),
    "products": lambda x: (x @ x.T, torch.addmm(x @ x.T, x, x.T, beta=0.5, alpha=2), F.linear(x, x),
                           torch.baddbmm(x[None, :, :2], x[None], x.T[None]), torch.einsum("ij,kj->ik", x, x)),
    "norms": lambda x: (F.layer_norm(x, (6,)), F.rms_norm(x, (6,), eps=1e-5), F.rms_norm(x, (6,)),
                        F.group_norm(x[None].reshape(1, 4, 3), 2)),
    "images": lambda x: (F.conv2d(x.reshape(1, 1, 3, 4), x.reshape(2, 1, 2, 3), padding=1, stride=2),
                         F.conv1d(x[None], x.reshape(2, 2, 3), bias=x[0, :2], padding=1),
                         F.conv1d(x[None], x[:, None, :3], padding="same", groups=2),
                         F.conv2d(x.reshape(1, 2, 2, 3), x.reshape(2, 1, 2, 3)[..., :2], padding=(1, 2), groups=2,
                                  stride=(2, 1), bias=x[0, :2]),
                         F.conv2d(x.reshape(1, 2, 2, 3), x.reshape(1, 2, 2, 3)[..., :2], padding=2, dilation=(2, 3)),
                         F.conv3d(x.reshape(1, 1, 2, 2, 3), x[:, :4].reshape(2, 1, 2, 2, 1), padding=(0, 1, 0)),
                         F.max_pool2d(x.reshape(1, 2, 2, 3), (2, 3), stride=1, padding=1),
                         F.batch_norm(x.reshape(1, 2, 2, 3), x[0, :2], x[1, :2].abs(), x[0, 1:3], x[1, 1:3], eps=0.1)),
    "interpolations": lambda x: tuple(
        F.interpolate(x.reshape(1, 2, 2, 3), mode=mode, **how) for mode in ("bilinear", "bicubic", "nearest")
        for how in ({"size": (5, 2)}, {"scale_factor": 1.7})) + (
        F.interpolate(x.reshape(1, 2, 2, 3), size=(4, 6), mode="bilinear", align_corners=True),
        F.interpolate(x[None], size=9, mode="linear"), F.interpolate(x[None], scale_factor=0.5, mode="nearest"),
        F.interpolate(x.reshape(1, 1, 3, 4), scale_factor=1.1, mode="bicubic")),  # as large as before, and another image
    # No two sizes are equal, axes are counted from the back, and several at once.
    "axes": lambda x: (lambda y: (
        y.permute(2, 0, 1), y.permute(-2, -1, 0), y.transpose(-1, 0), y.transpose(1, -1), y.sum(-2), y.mean((0, -1)),
        y.amax((0, 2), True), y.var((0, -1)), y.prod(-2), y.cumsum(-2), y.cumsum(0), y.flip((-1, 0)), y.flip(-2),
        *y.unbind(-1), torch.stack([y, -y], -2), torch.stack([y, -y], 1), torch.cat([y, y[:, :2]], -2),
        torch.cat([y, y[:1]]), *y.split([1, 3], -2), *y.chunk(2, -1), y.repeat_interleave(2, -1), y.repeat(2, 1, 3),
        y.unsqueeze(-2), y[:, :1].squeeze(1), y[:, :1].expand(3, 5, 2), y.narrow(-2, 1, 2), y.select(-2, -1),
        y.roll((1, -1), (0, 1)), y.roll(2, -2), F.pad(y, (1, 0, 2, 3, 0, 1), value=2.0), F.pad(y, (0, 2)),
        y.argmax(-2, keepdim=True), y.argmin(0), y.argmax(1), *y.sort(-2), *y.sort(0, True),
        y.softmax(-2), y.log_softmax(0), torch.logsumexp(y, -2), (y > 0).any(-1), (y > 1).all(0), y.flatten(1),
        y.flatten(0, 1), y.tril(1), y.triu(-1), y.gather(-2, torch.tensor([[[3, 0], [1, 2]]])),
        y.index_select(-2, torch.tensor([2, 0, 3])), y[:, 1::2], y[::2, 1:-1, :1], y[1:, -3:-1], y[..., None, :],
        F.layer_norm(y, (2,), y[0, 0], y[1, 1]), torch.einsum("abc,dbc->ad", y, y), torch.einsum("abc,abd->cd", y, y),
        y @ y[0].T, torch.bmm(y, y.transpose(1, 2)),
    ))(torch.cat([x.flatten(), x.flatten().flip(0) * 0.5 + 0.125]).reshape(3, 4, 2)),
    "mixed": lambda n: (
        n > 2.5, n == 3.5, 2.5 < n, n * 0.5, n + 1.5, 1.5 - n, n / 2, n / n.abs().clamp(min=1), torch.where(n > 0, n, 0.5),
        torch.where(n > 0, 7, n), torch.div(n, 2, rounding_mode="trunc"), torch.div(n, -2, rounding_mode="floor"),
        torch.div(n * 0.75, 2, rounding_mode="trunc"), n.clamp(-2, 3), n.clamp(max=4), n.masked_fill(n > 3, -1),
        (n > 0) + n, (n > 0) * 2.5, n.sum(1), n.float().mean(0), n.amax(1), n.amin(0), n.cumsum(1), n.argmax(1),
        n.prod(1), (n > 0).sum(1), (n > 3).cumsum(1), n.max(), n.to(torch.int32) * 3, n.abs(), n.float() ** -1.5 * 0 == 0,
        n.double() * 1e-3, (n > 0) | (n < -2), (n > 0) & (n < 5), ~(n > 0), n.bool(), torch.maximum(n, -n),
        torch.minimum(n, n.flip(1)), torch.remainder(n, -3), torch.fmod(n, -3), n % 4, torch.full_like(n, 2), 2 * n - 5,
    ),
    "dtypes": lambda x: (x.to(torch.int64), x.double() * 2, x > 0, (x > 0).float(), x.bool().long() + 1),
}


@pytest.mark.parametrize("level", ["named", "core"])
@pytest.mark.parametrize("name", OPS)
def test_ops_agree_with_pytorch(name, level):
    class Ops(torch.nn.Module):
        def forward(self, x):
            return OPS[name](x)

    x = N if name in ("integers", "mixed") else X
    want = Ops()(x)
    got = lathe.torch.export(Ops(), (x,), level=level).session()(x)
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        torch.testing.assert_close(g, w, equal_nan=True, msg=lambda m, i=i: f"{name}[{i}]: {m}")


class Write(torch.nn.Module):
    """v at places of the second axis."""
    def __init__(self, copied, places):
        super().__init__()
        self.copied, self.places = copied, places

    def forward(self, x, v, i):
        if self.copied:
            return x.index_copy(1, self.places(i), v)
        x = x.clone()
        x[:, self.places(i)] = v
        return x


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8])
def test_whole_numbers_at_the_ends_of_their_range(dtype):
    ends = torch.iinfo(dtype)
    x = torch.tensor([ends.min, ends.min + 1, 0, 1, 5, ends.max - 1, ends.max], dtype=dtype)

    class Ends(torch.nn.Module):
        def forward(self, x):
            signed = (x // -7, x % -7) if ends.min else ()
            return x // 7, x % 7, x // 2, ~x, x ^ 3, torch.div(x, 3, rounding_mode="trunc"), *signed

    for g, w in zip(lathe.torch.export(Ends(), (x,)).session()(x), Ends()(x), strict=True):
        assert torch.equal(g, w)


@pytest.mark.parametrize("f, x", [
    (lambda x: torch.baddbmm(x, x, x, beta=0.3, alpha=1.7), torch.randn(3, 40, 40)),
    (lambda x: torch.addmm(x, x, x, beta=0.3, alpha=1.7), torch.randn(64, 64)),
    (lambda x: F.log_softmax(x, -1), 100 + torch.randn(64, 512)), (lambda x: F.adaptive_avg_pool2d(x, (5, 7)), 100 + torch.randn(1, 1, 64, 512)),
    (lambda x: F.interpolate(x, scale_factor=1.3, mode="bicubic"), 100 + torch.randn(1, 1, 64, 512)),
    (lambda x: F.interpolate(x, size=(9, 7), mode="bilinear", align_corners=True), torch.randn(1, 2, 5, 6))])
@pytest.mark.parametrize("compiled", [True, False])
def test_bf16_is_as_near_to_exact_numbers_as_pytorchs(f, x, compiled):
    x = x.bfloat16()

    class Model(torch.nn.Module):
        def forward(self, x):
            return f(x)

    torch._dynamo.reset()
    run = torch.compile(Model(), backend="lathe") if compiled else lathe.torch.export(Model(), (x,)).session()
    with torch.no_grad():
        got, eager, exact = run(x), f(x), f(x.double())
    assert (got.double() - exact).abs().max() <= 1.5 * (eager.double() - exact).abs().max()


def test_what_is_added_times_0_is_not_read():
    class Products(torch.nn.Module):
        def forward(self, x, c):
            return torch.addmm(c, x, x.T, beta=0), torch.addmm(c, x, x.T, beta=0, alpha=2), torch.baddbmm(c[None], x[None], x.T[None], beta=0)

    c = torch.tensor([[math.nan, 1.0], [math.inf, -math.inf]])
    for got, want in zip(lathe.torch.export(Products(), (X, c), level="named").session()(X, c), Products()(X, c), strict=True):
        assert want.isfinite().all()
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("level", ["named", "core"])
def test_an_empty_vector_joins_anything(level):
    """PyTorch's older code joins parts to torch.tensor([])."""
    class Joined(torch.nn.Module):
        def forward(self, x):
            return torch.cat([torch.empty(0), x], 1), torch.cat([x, torch.empty(0), x]), torch.cat([torch.empty(0), x[0]])

    for got, want in zip(lathe.torch.export(Joined(), (X,), level=level).session()(X), Joined()(X), strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_a_pixel_that_is_no_number_stays_with_its_neighbours(mode):
    class Resized(torch.nn.Module):
        def forward(self, x):
            return F.interpolate(x, scale_factor=2, mode=mode)

    x = torch.randn(1, 1, 4, 4)
    x[0, 0, 1, 2], x[0, 0, 3, 0] = -math.inf, math.nan
    # PyTorch's own has NaN where it multiplies an infinite pixel by 0, too.
    got, want = lathe.torch.export(Resized(), (x,)).session()(x), Resized()(x)
    assert got.isnan().nonzero().tolist() == x.isnan().repeat_interleave(2, 2).repeat_interleave(2, 3).nonzero().tolist() \
        if mode == "nearest" else got.isnan().sum() == 9
    torch.testing.assert_close(got[~want.isnan()], want[~want.isnan()])


@pytest.mark.parametrize("f, args", [
    (lambda x, i: x.gather(1, i), ([[6], [0]],)), (lambda x, i: x.gather(1, i), ([[0], [-1]],)),
    (lambda x, i, j: x[i, j], ([0, 1], [6, 0])), (lambda x, i, j: x[i, j], ([0, 1], [-7, 0])), (lambda x, i, j: x[i, j], ([2, 1], [0, 0])),
    (lambda x, i: x.scatter(1, i, 1.0), ([[9], [0]],)), (lambda x, i: x.scatter(1, i, 1.0), ([[-1], [0]],)),
    (lambda x, i: x.scatter(1, i, x), ([[6], [0]],)), (lambda x, i: x.scatter_add(0, i, x), ([[2, 0]],)), (lambda x, i: F.nll_loss(x, i), ([6, 0],)),
    (lambda x, i: F.embedding(i, x), ([-1],)), (lambda x, i: x.index_copy(1, i, x[:, :1]), ([6],))])
def test_places_outside_of_an_axis_are_errors(f, args):
    torch._dynamo.reset()
    args = [torch.tensor(a) for a in args]
    with torch.no_grad():
        with pytest.raises((IndexError, RuntimeError)):
            f(X, *args)
        with pytest.raises(lathe.Error, match="is outside"):
            torch.compile(f, backend="lathe")(X, *args)


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("at, places", [
    (1, lambda i: i + torch.arange(2)), (-3, lambda i: i[None]), (-3, lambda i: i + torch.arange(2)),
    (0, lambda i: torch.tensor([-1])), (1, lambda i: torch.add(torch.arange(2), i, alpha=2)),
    (1, lambda i: torch.add(i, torch.arange(2), alpha=2)), (-1, lambda i: torch.arange(2) * 2 + i)])  # these two are no runs
def test_writes_at_places(copied, at, places):
    args = torch.zeros(2, 5, 3), torch.tensor([[[1.0], [2.0]]]).expand(2, 2, 3)[:, :places(torch.tensor(at)).numel()], torch.tensor(at)
    if copied and places(args[2]).min() < 0:
        pytest.skip("PyTorch's index_copy takes no place below 0")
    torch.testing.assert_close(lathe.torch.export(Write(copied, places), args).session()(*args), Write(copied, places)(*args))


@pytest.mark.parametrize("level", ["named", "core"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_norm_without_an_epsilon_takes_that_of_its_sums(dtype, level):
    """The mean of the squares is small beside it: PyTorch sums narrow dtypes in f32."""
    norm = torch.nn.RMSNorm(6).to(dtype)
    x = (X * (1e-8 if dtype == torch.float64 else 1e-4)).to(dtype)
    with torch.no_grad():
        got, want = lathe.torch.export(norm, (x,), level=level).session()(x), norm(x)
    assert want.abs().max() < 1.6  # with no epsilon 1.8
    torch.testing.assert_close(got, want)


PLACES = {"run": lambda: torch.arange(4) + 2, "other way": lambda: 2 + torch.arange(0, 4, 1),
          "shifted by more": lambda: torch.add(torch.arange(4), 1, alpha=3),
          # These are no runs: their first place does not tell the others.
          "step": lambda: torch.arange(0, 8, 2), "down": lambda: torch.arange(3, -1, -1),
          "step behind a shift": lambda: torch.arange(0, 8, 2) + 1,
          "stretched": lambda: torch.add(torch.zeros(1, dtype=torch.int64), torch.arange(4), alpha=2),
          "two ramps": lambda: torch.arange(4) + torch.arange(4)}


class Written(torch.nn.Module):
    def __init__(self, places):
        super().__init__()
        self.places = places

    def forward(self, x, y):
        a, b = x.clone(), x.clone()
        a[:, self.places()] = y
        return x.index_copy(1, self.places(), y), a


X8, Y4 = torch.zeros(2, 9, 3), torch.arange(1.0, 25).reshape(2, 4, 3)


@pytest.mark.parametrize("name", PLACES)
def test_places_are_written(name):
    model = Written(PLACES[name])
    for got, want in zip(lathe.torch.export(model, (X8, Y4)).session()(X8, Y4), model(X8, Y4), strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size, outputs, groups, kernel, how", [
    ((2, 6, 40), 6, 6, (4,), {"padding": 3}),                        # depthwise and causal, as state space models
    ((1, 4, 9, 8), 8, 4, (3, 5), {"padding": (1, 2), "stride": (2, 1)}),  # two results for each channel
    ((1, 3, 9, 8), 3, 3, (3, 3), {"padding": 2, "dilation": 2}),
    ((1, 4, 5, 6, 7), 4, 4, (3, 3, 3), {"padding": 1}),
    ((1, 2, 30, 30), 2, 2, (12, 11), {"padding": 5}),                # more elements than a sum has terms
    ((2, 8, 50), 12, 4, (37,), {"padding": 18}),                     # a convolution for each group
    ((2, 8, 50), 12, 4, (3,), {"padding": 1, "stride": 2}),
    ((1, 8, 40), 8, 4, (35,), {"padding": 35, "dilation": 2})])
def test_grouped_convolutions(size, outputs, groups, kernel, how, dtype):
    torch.manual_seed(3)
    model = getattr(torch.nn, f"Conv{len(kernel)}d")(size[1], outputs, kernel, groups=groups, **how).to(dtype)
    x = torch.randn(size).to(dtype)
    with torch.no_grad():
        got, exact = lathe.torch.export(model, (x,)).session()(x), model.double()(x.double())
    bound = 1e-5 if dtype == torch.float32 else 8e-3
    torch.testing.assert_close(got.double(), exact, rtol=bound, atol=bound * exact.abs().max().item())


@pytest.mark.parametrize("causal, mask", [(False, None), (True, None), (False, MASK[:, None] & MASK[:, :, None]),
                                          (False, torch.randn(2, 6, 6))])
def test_scaled_dot_product_attention(causal, mask):
    class Attention(torch.nn.Module):
        def forward(self, q, k, v):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)

    torch.manual_seed(1)
    q, k, v = (torch.randn(2, 6, 8) for _ in range(3))
    want = Attention()(q, k, v)
    got = lathe.torch.export(Attention(), (q, k, v)).session()(q, k, v)
    torch.testing.assert_close(got, want)


def test_the_attention_of_the_hooks_is_what_it_says():
    """The op's PyTorch form against the op of Lathe, with every attribute."""
    torch.manual_seed(2)
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 9, 8), torch.randn(2, 2, 9, 8)
    padding = torch.ones(2, 1, 1, 9, dtype=torch.bool)
    padding[1, ..., :3] = False
    for mask, positions, causal, window, cap in ((None, None, True, 0, 0.0), (padding, None, True, 0, 0.0),
                                                 (None, None, True, 3, 5.0), (torch.randn(2, 1, 5, 9), None, False, 0, 0.0),
                                                 (None, torch.tensor([0, 4]), True, 2, 0.0)):
        class Attention(torch.nn.Module):
            def forward(self, q, k, v):
                return torch.ops.lathe.attention(q, k, v, mask, positions, 0.3, causal, window, cap)

        torch.testing.assert_close(lathe.torch.export(Attention(), (q, k, v)).session()(q, k, v), Attention()(q, k, v))


def test_sizes_are_numbers_of_an_op():
    """Fills, diagonals, factors and bounds that come from sizes, at sizes other than the example's."""
    class Sizes(torch.nn.Module):
        def forward(self, x, past):
            n, total = x.shape[0], x.shape[0] + past.shape[0]
            seen = torch.ones(n, total).tril(total - n)
            return (seen, torch.cat([past, x]) * n, x.masked_fill(x > 0, n), x.clamp(max=n),
                    torch.add(x, x, alpha=n), torch.full((n, 2), n), x.triu(n))

    def inputs(n, past):
        return torch.arange(3.0 * n).reshape(n, 3) - 4, torch.ones(past, 3)

    dims = ({0: torch.export.Dim("n", min=2, max=9)}, {0: torch.export.Dim("past", min=2, max=9)})
    run = lathe.torch.export(Sizes(), inputs(4, 3), dynamic_shapes=dims).session()
    for n, past in ((4, 3), (2, 7), (6, 2)):
        for got, want in zip(run(*inputs(n, past)), Sizes()(*inputs(n, past)), strict=True):
            torch.testing.assert_close(got, want)
