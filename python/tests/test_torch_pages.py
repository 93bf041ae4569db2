# SPDX-License-Identifier: Apache-2.0
"""The block of docs/python.md about PyTorch runs on a model as it says."""
import pathlib
import re

import torch

PAGE = (pathlib.Path(__file__).parents[2] / "docs/python.md").read_text()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = torch.nn.Embedding(11, 8), torch.nn.Linear(8, 11)

    def forward(self, x):
        return self.head(self.table(x))


def test_block_runs():
    [block] = [b for b in re.findall(r"^```python\n(.*?)^```$", PAGE, re.S | re.M) if "lathe.torch" in b]
    model, ids = Model().eval(), torch.tensor([[1, 2, 3], [4, 5, 6]])
    here = {"model": model, "ids": ids}
    exec(compile(block, "python.md", "exec"), here)
    with torch.no_grad():
        wanted, fast = model(ids), here["fast"](ids)
    torch.testing.assert_close(torch.as_tensor(here["logits"]), wanted)
    torch.testing.assert_close(fast, wanted)
