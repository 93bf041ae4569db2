# SPDX-License-Identifier: Apache-2.0
"""lathe.torch.export and torch.compile on architectures of other kinds against eager PyTorch."""
import later_models as later
import pytest
import torch
from torch_models import error

import lathe
import lathe.torch as lt

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", later.MODELS)
def test_an_export_is_right_and_keeps_its_attention(name):
    model, args, shapes = later.made(name)
    with torch.no_grad():
        want = model(*args)  # RWKV's first call writes into its weights
    exported = lt.export(model, args, dynamic_shapes=shapes)
    assert error(exported.session()(*args), want) < 1e-6
    assert lathe.ir(exported.graph, "fused").count("= lathe.attention") == later.MODELS[name][1]


@pytest.mark.parametrize("name", later.MODELS)
def test_torch_compile_is_right_and_counts_what_runs_in_pytorch(name):
    torch._dynamo.reset()
    lt.reset()
    model, args, _ = later.made(name)
    with torch.no_grad():
        assert error(torch.compile(model, backend="lathe")(*args), model(*args)) < 1e-6
    assert bool(lt.fallbacks) == (name in later.IN_PYTORCH)
    assert all(any(word in reason for word in ("histc", "grouped_mm", "index_put")) for reason in lt.fallbacks)


def test_an_argument_of_attention_that_is_unknown_is_named():
    """Numbers that the hook does not read would be passed over."""
    from lathe.torch.lowering import Unsupported
    from lathe.torch.transformers import attention_hook
    q = torch.zeros(1, 2, 3, 4)
    with pytest.raises(Unsupported, match="the argument block_indices of attention in Identity"):
        attention_hook(torch.nn.Identity(), q, q, q, None, block_indices=torch.zeros(1))
    attention_hook(torch.nn.Identity(), q, q, q, None, position_ids=torch.zeros(1), block_indices=None)
