# SPDX-License-Identifier: Apache-2.0
"""Small programs of PyTorch as users write them, with the arguments of their calls."""
import collections

import torch
import torch.nn.functional as F

PROGRAMS = {}  # name to (function, arguments by call)
# Ops that have no lowering, by program: they run in PyTorch, and an export names one of them.
IN_PYTORCH = {"rare_functions": {"aten.atan2.default", "aten.cummax.default"},
              "merged_behind_pytorch": {"aten.atan2.default"},
              # A whole number that changes from call to call is the size of no tensor.
              "numbers": {"aten.mul.Tensor", "aten.slice.Tensor", "aten.repeat.default"}}
# An input is written, arguments are no tensors, a branch depends on values.
NOT_EXPORTED = {"written_input", "numbers", "breaks"}


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def program(*calls):
    def add(function):
        PROGRAMS[function.__name__] = (function, calls)
        return function
    return add


@program((draw(3, 4),))
def odd_dtypes(x):
    return x.half() * 2, x.double().sum(), x.to(torch.int8) + 1, (x > 0).to(torch.uint8), x.to(torch.int16) // 2


@program(((draw(3, 4) * 10).to(torch.int32),))
def whole_numbers(n):
    return n // 3, n % 3, n / 4, -n // 3, torch.div(n, 3, rounding_mode="trunc"), n**2, n * 0.5, n.float().mean(), n.prod()


@program((torch.tensor([1, 2]),))
def large_whole_numbers(n):
    return n + (2**62 + 1), torch.full((2,), 2**60 + 3), torch.where(n > 1, n, 2**61 + 1), n.masked_fill(n > 1, -2**63), \
        n.clamp(max=2**63 - 1)


@program((draw(4, 6),))
def views(x):
    return x.view(2, 12), x.t(), x[1:3, ::2], x.T[2], x.view(4, 2, 3).transpose(1, 2).contiguous().view(4, 6), x.unfold(1, 2, 2), \
        x.unfold(0, 3, 1), x.permute(0, 1), x.transpose(0, 0)


@program((draw(4, 6),))
def written_in_place(x):
    y = x.clone()
    y.add_(1).mul_(2)
    y[0] = 5
    y[:, 1] -= 3
    y[1:3, 2:4] = 0
    z = torch.zeros(4, 6)
    row = z[1]
    row += x[0]
    z.t()[2] = 7
    return y.clamp_(min=-1), z, row


@program((draw(4, 6),))
def written_input(x):
    x.add_(1)
    return x * 2


@program((draw(4, 6), torch.tensor(2.5)))
def scalar_tensors(x, s):
    return x * s, s**2, torch.where(x > s, x, s), x.sum() * s, s.expand(3), s.max(0)


@program((torch.tensor([0.1, 0.2, 0.3]).bfloat16(), torch.tensor(0.1), torch.tensor(0.2, dtype=torch.float64)))
def scalar_tensors_of_wider_dtypes(x, s, t):
    """They do not widen the others: numbers are rounded to what they are compared with."""
    return x < s, x == s, t >= x, x.float() == t, x * s, x + t


@program((draw(4, 6), 3, 0.5), (draw(4, 6), 2, 1.5))
def numbers(x, n, a):
    return x * n + a, x[:n], x.repeat(1, n)


@program((draw(2, 5, 8),), (draw(3, 7, 8),), (draw(1, 9, 8),))
def lengths(x):
    b, s, d = x.shape
    return x.reshape(b * s, d).mean(0), x.view(b, s, 2, 4).transpose(1, 2).flatten(2), torch.arange(s) * b, x / s, torch.zeros(b, s).tril()


@program((draw(4, 8),))
def autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ torch.arange(64.0).reshape(8, 8).sin()
        return y, F.softmax(y, -1), F.layer_norm(y, (8,))


Pair = collections.namedtuple("Pair", "u v")


@program((draw(4, 8),))
def results_in_dicts(x):
    pair = Pair(x, x * 2)
    return {"a": x + 1, "b": (pair.v, [x.sum(), {"c": x.max()}]), "n": None, "k": 3, "p": Pair(pair.u + pair.v, x)}


@program((draw(4, 8),))
def largest_and_smallest(x):
    return *x.max(1), *x.min(0, keepdim=True), x.max(-1).values, x.amax()


@program((draw(4, 8), torch.tensor([3, 0, 1, 1, 2])))
def reads_by_indices(x, i):
    return x[i], x[i, i], x.gather(0, i[:, None].expand(5, 8)), torch.take_along_dim(x, i[:, None], 0), F.one_hot(i, 4), \
        F.embedding(i, x), x[:, torch.tensor([1, -1])], x[i.neg().topk(2).values], x[i.neg().sort().values]


@program((draw(4, 6),))
def every_second_written(x):
    y = x.clone()
    y[:, ::2] = 5
    z = x.clone()
    z[1::3, 1:6:2] = x[:1, :3] * 2
    z[:, 5::9] -= 1
    z[-3::2, -5::3] = 8
    return y + 1, z, x.slice_scatter(x[:, :2], 1, -4, 6, 2), x.slice_scatter(x[:, :2], 1, 1, 6, 3), x.slice_scatter(x[:0], 0, 4, 9, 2)


@program((draw(3, 5), torch.tensor([[1, 4]])))
def one_value_into_a_part(x, i):
    """The index names places of the first row alone."""
    return x.scatter(1, i, 7.0) + 1, x.scatter(0, i[:, :1], 7.0), x.t().scatter(0, i.t(), x[:2, :1])


@program((draw(3, 5), torch.tensor([[0, 2], [1, 1], [4, 0]])))
def one_value_by_indices(x, i):
    return x.scatter(1, i, 2.0), torch.zeros(3, 6).scatter_(1, i, 1.0), x.t().scatter(0, i.t(), float("nan")), x.scatter(1, i[:, :0], 1.0)


@program((draw(4, 8), torch.tensor([3, 0, 1])))
def writes_by_indices(x, i):
    y, z, w = x.clone(), x.clone(), torch.zeros(2, 4, 8)
    y[i] = x[:3] * 2
    z[i, i + 1] = 5
    z[:, i - 1] += 2
    w[:, [1, -1]] = x[:2]
    w[1, [[0], [2]], [0, 3]] = -x[:2, :2]
    return torch.zeros(4, 8).index_add(0, i, torch.ones(3, 8)) + 1, torch.zeros(4, 8).scatter(0, i[:, None].expand(3, 8), x[:3]) * 2, \
        y, z, w, x.index_copy(0, i, x[1:]), x.index_copy(1, i, x[:, 2:5]), x.scatter(1, i[None, :2], x[2:]), \
        x.index_put((i, i), torch.tensor(2.0), accumulate=True)


@program((draw(4, 8), torch.tensor([[3, 0, 3], [1, 1, 1]])))
def sums_by_indices(x, i):
    """Several values for one place add up, rounded once in 16 bits."""
    many = torch.zeros(9, dtype=torch.int64)
    return x.scatter_add(0, i, x[1:]), x.scatter_add(1, i, x), x.index_add(1, i[0], x[:, :3], alpha=2), x.half().index_add(0, i[0], x[:3].half()), \
        torch.full((1,), 256.0).bfloat16().scatter_add(0, many, torch.full((9,), 0.75).bfloat16()), \
        torch.zeros(4, dtype=torch.int32).index_add(0, i[0], torch.tensor([1, 2, 3], dtype=torch.int32)), \
        torch.bincount(i[0], minlength=4) if x.dim() > 2 else x[0]


@program((draw(3, 5), draw(3, 5) > 0))
def writes_by_masks(x, m):
    y = x.clone()
    y[m] = 0
    y[y < -1] = float("nan")
    y[m[:, 0]] = 7
    z, w, u = x.clone(), torch.stack([x, -x]), x.t().clone()
    z[:, m[1]] = 3
    w[:, m] = 4
    u[m[0]] = torch.tensor([6.0])
    return y, x.masked_fill(~m, -1), z, w, u, x.index_put((m,), torch.tensor([2.0])), x.index_put((m[:, 0],), x.sum()), \
        torch.ops.aten.index_put(x, [None, m[1]], torch.tensor(3.0))


@program((draw(4, 8),))
def literals(x):
    return x @ torch.tensor([[1.0, 2.0]] * 8), x + torch.tensor([1.0] * 8), x * torch.tensor(3), torch.tensor([[1, 2], [3, 4]]) + 1


@program((draw(4, 8),))
def breaks(x):
    for i in range(3):
        x = x + i
    return x * 2 if x.sum() > 0 else -x


@program((draw(2, 3, 4),))
def sums_of_products(x):
    return torch.einsum("bij,bkj->bik", x, x), torch.einsum("bij->ji", x), torch.einsum("bij,j->bi", x, torch.arange(4.0)), \
        x[0, 0].dot(x[0, 1]), x[0] @ x[0, 0], torch.outer(x[0, 0], x[0, 1]), torch.tensordot(x[0], x[0].T, 1)


@program((draw(2, 3, 4),))
def norms(x):
    return x.norm(), x.norm(dim=-1), F.normalize(x, dim=-1), torch.linalg.vector_norm(x, 3, dim=1), x.std(), x.var(1, unbiased=False), \
        F.cosine_similarity(x[0], x[1], dim=-1)


@program((draw(2, 3, 8, 7),))
def pools(x):
    return F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, (2, 3), 1, (1, 1), count_include_pad=False), F.avg_pool2d(x, 2, divisor_override=3), \
        F.adaptive_avg_pool2d(x, (3, 5)), F.adaptive_avg_pool2d(x, 1), F.max_pool2d(x, 3, 2, 1), x.mean((2, 3))


@program((draw(3, 8, 8),))
def image_without_batch(x):
    return F.max_pool2d(x * 2, 2) + 1, F.max_pool2d(x, 3, 2, ceil_mode=True), F.max_pool2d(x[None], (3, 2), 3, 1, ceil_mode=True), \
        F.max_pool2d(x[:, :7], 2, 3, ceil_mode=True), F.max_pool2d(x, 2, 2, dilation=3, ceil_mode=True), \
        F.max_pool2d(x, 2, 3, dilation=3, ceil_mode=True)


@program((draw(2, 3, 5, 6),))
def pads(x):
    return F.pad(x, (1, 1, 2, 2), mode="reflect"), F.pad(x, (1, 1, 1, 1), mode="replicate"), F.pad(x, (-1, 2)), F.pad(x, (1, -1, -2, 0)), \
        F.pad(x, (0, 1), value=float("-inf")), F.pad(x[0, 0], (2, 1), mode="circular") if x.dim() < 4 else x


@program((torch.tensor([-1e-6, 1e-6, -0.4, 0.4, -0.6, 3.0, -30.0, 88.0, float("-inf"), float("inf"), float("nan"), 0.0]),))
def activations(x):
    return x.expm1(), x.exp2(), F.elu(x), F.elu(x, 2.0), F.selu(x), F.celu(x, 0.5), F.leaky_relu(x, 0.1), F.hardswish(x), F.hardsigmoid(x), \
        F.mish(x[:8]), F.softsign(x[:8]), F.logsigmoid(x[:8]), x.log1p(), F.softplus(x), F.glu(x), F.relu6(x), F.prelu(x, torch.tensor([0.2])), x.abs().log2(), \
        x.abs().log10(), F.threshold(x, 0.1, 5.0), x.nan_to_num(), x.logaddexp(-x)[:8]


@program((torch.tensor([float("-inf"), -0.0, 0.0, -4.0, 4.0, 1e-9, float("inf"), float("nan")]),))
def roots_as_powers(x):
    return x**0.5, 1 / x**0.5, x**-0.5, x.bfloat16() ** 0.5, x.half() ** -0.5, x.bfloat16() ** -0.5, x.double() ** -0.5, x**-1.5, x**0, x**1


@program((torch.tensor([-1.9, -0.2, 255.9, 300.0, -300.0, 1e6, -0.0, 7.5, -128.0]),))
def bytes_of_numbers_below_zero(x):
    """They count modulo 256."""
    return x.to(torch.uint8), x.bfloat16().to(torch.uint8), x.double().to(torch.uint8), torch.zeros(9, dtype=torch.uint8).copy_(x), \
        (x > 0).to(torch.uint8), x.long().to(torch.uint8)


@program((draw(2, 6).bfloat16(),))
def activations_in_bf16(x):
    return x.expm1(), x.exp2(), F.elu(x), F.leaky_relu(x, 0.1), x.abs().log2(), x.abs().log10(), F.avg_pool2d(x[None, None], 2)


@program((draw(2, 6),))
def rare_functions(x):
    return x.atan2(x + 1) * 2, x.cummax(1).values + 1


@program((draw(4, 6),))
def another_axis(x):
    return *x.topk(2, dim=0), *x.topk(3, dim=0, largest=False), *x.sum().topk(1)


@program((draw(4, 6),))
def the_smallest(x):
    y = torch.where(x > 1, float("nan"), x)
    return *x.topk(2, largest=False), *(x * 9).int().topk(6, largest=False, dim=-1)[:1], y.topk(6, largest=False).values, y.topk(6).values, \
        *torch.tensor([[-128, 127, 0]], dtype=torch.int8).topk(2, largest=False), x[:, :1].topk(1, 0, largest=False).values


@program((draw(2, 5, 8),))
def attention(x):
    q = x[:, None]
    wide, groups = q.expand(2, 4, 5, 8), q.expand(2, 2, 5, 8)
    return F.scaled_dot_product_attention(q, q, q, is_causal=True), F.scaled_dot_product_attention(wide, groups, groups, enable_gqa=True), \
        F.scaled_dot_product_attention(x, x, x, scale=0.1), F.scaled_dot_product_attention(q[:, None], q[:, None] * 2, q[:, None] + 1)


@program((torch.tensor([[True, False], [False, False]]),))
def truths(b):
    return torch.add(b, ~b, alpha=False), ~b, b | True, b.any(1), b.all(), b.sum(), b.float().mean(), b ^ b, b.int() + 1, b.logical_xor(~b), b.cumsum(0), b.long().argmax(1)


@program((draw(0, 4),))
def nothing(x):
    return x * 2, x.sum(), x @ torch.ones(4, 3), torch.cat([x, torch.ones(1, 4)])


@program((draw(3, 4),))
def made_from_numbers(x):
    return torch.ones(2), torch.eye(3), torch.linspace(0, 1, 5), torch.full((2,), 1.5, dtype=torch.bfloat16), \
        torch.empty(2, 3).fill_(2), torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij"), x


@program((draw(4, 6), draw(6, 4).t()))
def places_in_memory(x, y):
    return x.as_strided((3, 2, 2), (4, 2, 1), 1), (y * 2).as_strided((5, 3), (2, 1)), (x + 1).t().as_strided((10, 15), (1, 0), 3)


@program((draw(3, 4).t(), draw(5, 3)[:, ::2]))
def inputs_with_strides(x, y):
    return x + 1, y * 2, x.sum(0)


@program((draw(3, 4),))
def input_as_result(x):
    return x, x.view(12), x + 1


@program((draw(2, 4, 9),))
def convolutions(x):
    return F.conv1d(x, torch.ones(2, 4, 3), dilation=2), F.interpolate(x, scale_factor=2.0), F.unfold(x[:, None], (2, 3))


@program((draw(2, 4, 9),))
def transposed_convolution(x):
    w = torch.arange(24.0).reshape(4, 2, 3).sin()
    image, v = x.reshape(2, 2, 3, 6), torch.arange(48.0).reshape(4, 2, 2, 3).cos()
    wide = torch.cat([image, image * 2], 1)
    return F.conv_transpose1d(x * 2, torch.ones(4, 3, 3), stride=2) + 1, F.conv_transpose1d(x, w, w[0, :, 0]), \
        F.conv_transpose1d(x, w, stride=3, padding=1, output_padding=2), F.conv_transpose1d(x, w, padding=2, dilation=2), \
        F.conv_transpose1d(x, w, stride=3, padding=3, output_padding=2), \
        F.conv_transpose1d(x, w, w[:2].flatten()[:4], groups=2, stride=2), F.conv_transpose1d(x[0], w, padding=3, stride=2), \
        F.conv_transpose2d(wide, v, stride=(2, 1), padding=(0, 2)), F.conv_transpose2d(wide, v, groups=4, stride=2, output_padding=1), \
        F.conv_transpose3d(wide[..., None], v[..., None], stride=(1, 2, 3)), F.conv_transpose2d(wide, v[..., :1], padding=1)


@program((draw(2, 4, 9),), (draw(3, 4, 11),), (draw(4, 4, 6),))
def transposed_of_any_length(x):
    return F.conv_transpose1d(x, torch.arange(24.0).reshape(4, 2, 3).sin(), stride=2, padding=1)


@program((draw(4, 4).double(),))
def doubles(x):
    return x @ x, F.softmax(x, 0), F.layer_norm(x, (4,)), x.float().half()


@program((draw(3, 1, 5), draw(4, 1)))
def broadcasts(x, y):
    return x + y, x.expand(3, 4, 5) * 1, torch.maximum(x, y), x < y, torch.where(x < y, 1, 0)


@program((draw(2, 6),))
def losses(x):
    t = torch.tensor([1, 3])
    return F.cross_entropy(x, t), F.mse_loss(x, x * 2), F.l1_loss(x, x + 1), F.binary_cross_entropy_with_logits(x, (x > 0).float()), \
        F.smooth_l1_loss(x, x * 2), F.kl_div(x.log_softmax(1), x.softmax(1) + 0.1, reduction="batchmean"), \
        F.cross_entropy(x, t, label_smoothing=0.1, reduction="none"), F.cross_entropy(x, torch.tensor([1, -100]))


@program((draw(2, 3, 6),), (draw(3, 5, 6),), (draw(4, 7, 6),))
def split_heads(x):
    """Views of an input, of lengths that change."""
    y = x * 2
    return x.view(x.shape[0], x.shape[1], 2, 3).transpose(1, 2), x[1:].transpose(0, 1), x.unflatten(-1, (3, 2))[:, :, 1], \
        y.transpose(0, 1)[1:], y


@program((draw(3, 4),), (draw(5, 4),), (draw(7, 4),))
def padded_to_a_length(x):
    return F.pad(x, (0, 0, 0, 9 - x.shape[0])), F.pad(x, (0, 0, 0, 4 - x.shape[0])), F.pad(x, (x.shape[0], 1), value=2.0), F.pad(x, (0, 0, -1, 2)), x.shape[0] // 2, \
        int(x.shape[0] / 2) + 1


@program((draw(3, 4),), (draw(5, 4),), (draw(7, 4),))
def sizes_below_zero(x):
    n = x.shape[0]
    return x + (2 - n), x * -n, torch.arange(1 - n, 1), (x @ x.T).triu(2 - n), x.clamp(-n, n), torch.full((2,), -n) + x[0, :2]


@program((draw(2, 3, 4),), (draw(3, 5, 4),), (draw(4, 7, 4),))
def merged_behind_pytorch(x):
    return torch.atan2(x.flatten(0, 1), x.flatten(0, 1)).exp() * 2


@program((draw(3, 4),))
def numbers_beside_16_bits(x):
    """Products and quotients keep them in f32, all else rounds them."""
    h, b, low = x.half(), x.bfloat16(), torch.full((9,), -2048.0)
    return (h * 1e-2) * 1e5, (h * 1e4) / 1e5, h * 1e-8, b * 0.3, b / 0.3, torch.div(h * 100, 0.3, rounding_mode="floor"), h // 0.7, \
        torch.div(h * 100, 0.3, rounding_mode="trunc"), 1.3 - b, low.half() + 2049, low.half() - -2049, torch.fmod(h, 0.3), \
        torch.remainder(h, 0.3), torch.fmod(b, 1.1)


@program((draw(40, 100), torch.tensor(0.3), torch.tensor(0.3, dtype=torch.float64), torch.tensor(1001)))
def scalar_tensors_beside_16_bits(x, s, t, n):
    """Bits are compared, all at once: a rounding more or less is half a unit."""
    h, b = x.half(), x.bfloat16()
    return [(y.view(torch.int16).long() * torch.arange(1, 101)).sum() for y in (
        b * s, b / s, b * t, h / t, b * n, h / n, s * b, s / b, b + s, b - t, b // s, h // t, torch.fmod(b, s), b * s.half(),
        b.abs() ** s, b * x[0].bfloat16(), b * 0.3, 0.3 * b, b * True)]


@program((torch.full((3, 1), -2048.0),), (torch.full((2051, 1), -2048.0),), (torch.full((2053, 1), -2047.0),))
def sizes_beside_16_bits(x):
    n = x.shape[0]
    return x.half() / n, x.half() * n, x.half() + (2 - n)


@program((torch.tensor([-128, 127, -7, 7], dtype=torch.int8), torch.tensor([-(2**63), 2**63 - 1, -7, 7])))
def rests_of_the_smallest(a, b):
    return torch.fmod(a, 3), torch.fmod(b, 3), torch.fmod(b, torch.tensor([5, -5, 2, -2]))


@program((draw(4, 9, 11), draw(5, 4, 3, 3), draw(5)))
def convolutions_of_one_image(x, w, b):
    return F.conv2d(x, w, b), F.conv2d(x, w, padding=1), F.conv1d(x[:, 0], w[:, :, 0], b)


@program((draw(3, 4, 6),))
def filled_places(x):
    return x.index_fill(1, torch.tensor([1, -1]), 3.0), x.index_fill(-1, torch.tensor(2), torch.tensor(5.0)), \
        torch.var_mean(x, 0)


@program((draw(4, 6),))
def places_of_what_is_turned(x):
    """Places in memory are those of PyTorch's strides, also where a view of them is taken."""
    y = x.t() * 2
    return y.as_strided((3, 4), (4, 1)).t(), y.as_strided((2, 2), (1, 6), 3)[1:]
