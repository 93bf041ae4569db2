# SPDX-License-Identifier: Apache-2.0
"""Small programs as users write them, under torch.compile and exported: right, and what runs in PyTorch is counted."""
import collections
import logging

import pytest
import torch
import torch.nn.functional as F
import torch_programs as programs
from torch.utils import _pytree as pytree

import lathe
import lathe.torch as lt

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    torch._dynamo.reset()
    lt.reset()
    monkeypatch.setattr(logging.getLogger("lathe.torch"), "level", logging.ERROR)


def agree(got, want):
    got, want = pytree.tree_leaves(got), pytree.tree_leaves(want)
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if isinstance(w, torch.Tensor):
            torch.testing.assert_close(g, w, equal_nan=True, msg=lambda m, i=i: f"result {i}: {m}")
        else:
            assert g == w, f"result {i}"


def ops(counted):
    """Names of ops that were counted."""
    return {reason.split(":")[0].split(" ")[0] for reason in counted}


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_a_program_is_right_under_torch_compile(name):
    program, calls = programs.PROGRAMS[name]
    with torch.no_grad():
        run = torch.compile(program, backend="lathe")
        for args in calls:
            mine, theirs = ([a.clone() if isinstance(a, torch.Tensor) else a for a in args] for _ in range(2))
            agree(run(*mine), program(*theirs))
            agree(mine, theirs)  # what is written into
    assert lt.compiled
    assert ops(lt.fallbacks) == programs.IN_PYTORCH.get(name, set())


@pytest.mark.parametrize("level", ["named", "core"])
@pytest.mark.parametrize("name", [n for n in programs.PROGRAMS if n not in programs.NOT_EXPORTED])
def test_a_program_is_right_when_exported(name, level):
    program, calls = programs.PROGRAMS[name]

    class Program(torch.nn.Module):
        def forward(self, *args):
            return program(*args)

    args = calls[0]
    want = program(*args)
    if missing := programs.IN_PYTORCH.get(name):
        with pytest.raises(lathe.Error) as e:
            lathe.torch.export(Program(), args, level=level)
        assert any(op in str(e.value) for op in missing)
    else:
        agree(lathe.torch.export(Program(), args, level=level).session()(*args), want)


def test_buffers_that_change_under_torch_compile():
    class Running(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
            self.register_buffer("mean", torch.zeros(8))

        def forward(self, x):
            self.calls += 1
            self.mean.mul_(0.9).add_(x.mean(0) * 0.1)
            return x - self.mean

    torch.manual_seed(1)
    mine, theirs = Running(), Running()
    run = torch.compile(mine, backend="lathe")
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(4, 8)
            agree(run(x), theirs(x))
            agree(dict(mine.named_buffers()), dict(theirs.named_buffers()))
    assert not lt.fallbacks


def test_a_step_of_training():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 3))
    x, found = torch.randn(4, 8), []

    def loss(x):
        return F.cross_entropy(model(x), torch.tensor([0, 1, 2, 1]))

    for run in (torch.compile(loss, backend="lathe"), loss):
        model.zero_grad()
        run(x).backward()
        found.append([p.grad.clone() for p in model.parameters()])
    agree(*found)


def test_hooks_run():
    layer = torch.nn.Linear(8, 8).eval()
    layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    layer.register_forward_hook(lambda module, args, result: result * 2)
    x = torch.randn(4, 8)
    with torch.no_grad():
        agree(torch.compile(layer, backend="lathe")(x), layer(x))
    assert not lt.fallbacks


def test_keywords():
    def scaled(x, *, scale=2.0, shift=None):
        return x * scale if shift is None else {"y": x * scale + shift}

    run, x = torch.compile(scaled, backend="lathe"), torch.randn(3)
    for given in ({}, {"scale": 3.0}, {"shift": x}):
        agree(run(x, **given), scaled(x, **given))


def test_what_lies_between_uses_without_a_lowering_is_compiled():
    """A size that is no polynomial refuses its op and what needs it, not the whole program."""
    def halves(x):
        b, s, d = x.shape
        return x.view(b, s // 2, 2, d).sum(2), (x * 2).relu() + 1

    run = torch.compile(halves, backend="lathe", dynamic=True)
    with torch.no_grad():
        for n in (6, 4):
            x = torch.randn(2, n, 8)
            agree(run(x), halves(x))
    assert len(lt.compiled) == 1 and collections.Counter(ops(lt.fallbacks)) == {"aten.view.default": 1, "aten.sum.dim_IntList": 1}
    assert any("polynomials of symbols" in reason for reason in lt.fallbacks)


def test_a_dtype_that_lathe_does_not_have_is_counted_and_named():
    z = torch.complex(torch.randn(3), torch.randn(3))
    agree(torch.compile(lambda z: z.abs() * 2 + 1, backend="lathe")(z), z.abs() * 2 + 1)
    assert ops(lt.fallbacks) == {"aten.abs.default"}

    class Absolute(torch.nn.Module):
        def forward(self, z):
            return z.abs()

    with pytest.raises(lathe.Error, match="the dtype torch.complex64"):
        lathe.torch.export(Absolute(), (z,))
