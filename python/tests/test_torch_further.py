# SPDX-License-Identifier: Apache-2.0
"""lathe.torch.export on further architectures against eager PyTorch."""
import re

import further_models as further
import pytest
import torch
from torch_models import error

import lathe

pytestmark = pytest.mark.filterwarnings("ignore")
# Attention that stays apart, with the words of why-not: scores of three parts.
APART = {"deberta-v2": "a mask is added under a finite fill"}


@pytest.mark.parametrize("level", ["core", "named"])
@pytest.mark.parametrize("name", further.MODELS)
def test_a_model_is_right_and_its_attention_is_found(name, level):
    model, args, shapes = further.made(name)
    exported = lathe.torch.export(model, args, dynamic_shapes=shapes, level=level)
    with torch.no_grad():
        assert error(exported.session()(*args), model(*args)) < 1e-6
    text = lathe.ir(exported.graph, "fused")
    if name in APART:
        assert "lathe.attention" not in text and APART[name] in str(lathe.why_not(exported.graph))
    elif name not in ("convnext", "resnet"):
        assert "lathe.attention" in text
        # Those of routers stay: no product stands behind them.
        assert len(re.findall(r"lathe\.softmax", text)) == (2 if name.endswith("-moe") else 0)
