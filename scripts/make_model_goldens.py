# SPDX-License-Identifier: Apache-2.0
"""Writes Hugging Face's results for whole Llama models into tests/golden.

    python scripts/make_model_goldens.py [--model examples/models/stories] [--out tests/golden]

stories/logits.safetensors, metadata "prompts" (JSON list of the four texts):
  prompt.<i>.ids            [1, n] i64, BOS included
  prompt.0.logits.<t>       [1, n, vocab] for t in f32, f64, bf16
  prompt.<i>.last.<t>       [vocab] at the last position
stories/greedy.safetensors:
  prompt.<i>.greedy         [200] i64, greedy continuation in f32 that does not stop at EOS
  prompt.<i>.gap            [200] f32, difference of the two largest logits at each of those steps
  forced.ids                [1, n + 200] i64, prompt 0 and its continuation
  forced.logits.<t>         [1, n + 200, vocab], the full pass over forced.ids
llama_tiny_{llama3,linear,v5}/: a model folder with random weights and expected.safetensors with
  input_ids [2, 17] i64, logits [2, 17, vocab] f32, logits.f64
  `v5` has config.json as transformers 5 writes it, the others as transformers 4 does.

f32 and f64 are computed with the stored (bf16) weights widened, bf16 with the stored weights as
they are. So f64 is the truth for both others.
"""

import argparse
import copy
import json
import pathlib

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from golden_file import write_golden

STEPS = 200
PROMPTS = [
    "Once upon a time there was a curious girl named Nora. She loved to play with her kite. One "
    "sunny afternoon, Nora and Theo met on the hill. Suddenly Nora",
    "There once was a brave boy called Max.",
    "In a small house near the lake lived",
    "Clara",
]  # fmt: skip
PRECISIONS = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}


class WideRMSNorm(LlamaRMSNorm):
    """LlamaRMSNorm that keeps float64, where the library's own computes in f32."""

    def forward(self, x):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.to(x.dtype)


def load(config, tensors, dtype):
    """The model in one dtype. RoPE tables are f32 in all of them, as in the library."""
    model = LlamaForCausalLM._from_config(config, dtype=dtype, attn_implementation="sdpa")
    missing, unexpected = model.load_state_dict(
        {name: tensor.to(dtype) for name, tensor in tensors.items()}, strict=False
    )
    tied = ["lm_head.weight"] if config.tie_word_embeddings else []
    if missing != tied or unexpected:
        raise SystemExit(f"weights do not fit: missing {missing}, unexpected {unexpected}")
    if dtype == torch.float64:
        for module in model.modules():
            if isinstance(module, LlamaRMSNorm):
                module.__class__ = WideRMSNorm
    return model.eval()


def greedy(model, ids):
    """STEPS tokens of greedy continuation with the cache, and the top-1 to top-2 gap at each."""
    cache, step, chosen, gaps = None, ids, [], []
    for _ in range(STEPS):
        out = model(step, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        top = torch.topk(out.logits[0, -1], 2)
        chosen.append(top.indices[0])
        gaps.append(top.values[0] - top.values[1])
        step = top.indices[:1].reshape(1, 1)
    return torch.stack(chosen), torch.stack(gaps)


@torch.no_grad()
def story_goldens(folder, out):
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    config = LlamaConfig.from_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    models = {name: load(config, tensors, dtype) for name, dtype in PRECISIONS.items()}

    logits, decoded = {}, {}
    for i, prompt in enumerate(PROMPTS):
        ids = torch.tensor([tokenizer.encode(prompt).ids])
        logits[f"prompt.{i}.ids"] = ids
        for name, model in models.items():
            result = model(ids, use_cache=False).logits
            if i == 0:
                logits[f"prompt.0.logits.{name}"] = result
            logits[f"prompt.{i}.last.{name}"] = result[0, -1]
        chosen, gaps = greedy(models["f32"], ids)
        decoded[f"prompt.{i}.greedy"], decoded[f"prompt.{i}.gap"] = chosen, gaps
        print(f"prompt {i}: {ids.shape[1]} tokens, smallest greedy gap {gaps.min():.4f}")
        print("  " + tokenizer.decode(ids[0].tolist() + chosen.tolist()))
    forced = torch.cat([logits["prompt.0.ids"], decoded["prompt.0.greedy"][None]], 1)
    decoded["forced.ids"] = forced
    for name, model in models.items():
        decoded[f"forced.logits.{name}"] = model(forced, use_cache=False).logits
    for name in ["f32", "bf16"]:
        error = (decoded[f"forced.logits.{name}"].double() - decoded["forced.logits.f64"]).abs()
        print(f"forced {name}: largest error {error.max():.3g}, mean {error.mean():.3g}")
    start = logits["prompt.0.ids"].shape[1] - 1
    again = decoded["forced.logits.f32"][0, start:-1].argmax(-1)
    if not torch.equal(again, decoded["prompt.0.greedy"]):
        raise SystemExit("greedy decoding with the cache and the full pass disagree")
    write_golden(out / "logits.safetensors", logits, {"prompts": json.dumps(PROMPTS)})
    write_golden(out / "greedy.safetensors", decoded, {"prompts": json.dumps(PROMPTS)})


def tiny_config(changes):
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": True,
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": 24,
        "hidden_act": "silu",
        "hidden_size": 64,
        "initializer_range": 0.02,
        "intermediate_size": 72,
        "max_position_embeddings": 128,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "pretraining_tp": 1,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "use_cache": True,
        "vocab_size": 97,
    } | changes


# Bounds so small that 17 positions reach all three bands of wavelengths.
LLAMA3 = {
    "factor": 8.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 64,
    "rope_type": "llama3",
}
TINY = {
    "llama3": {"rope_scaling": LLAMA3},
    "linear": {"rope_scaling": {"factor": 4.0, "rope_type": "linear"}, "mlp_bias": True},
    "v5": {"rope_scaling": LLAMA3 | {"factor": 32.0}, "rope_theta": 500000.0},
}


@torch.no_grad()
def tiny_goldens(name, changes, out):
    out.mkdir(parents=True, exist_ok=True)
    config = LlamaConfig(**copy.deepcopy(tiny_config(changes)))  # LlamaConfig edits rope_scaling
    stored = torch.bfloat16 if name == "v5" else torch.float32
    generator = torch.Generator().manual_seed(len(name) * 1000 + ord(name[0]))
    tensors = {}
    for key, tensor in LlamaForCausalLM._from_config(config).state_dict().items():
        drawn = torch.randn(tensor.shape, generator=generator)
        if key.endswith("bias"):
            drawn *= 0.1
        elif tensor.dim() == 1:
            drawn = 1 + 0.2 * drawn
        elif "embed_tokens" not in key:
            drawn /= tensor.shape[1] ** 0.5
        tensors[key] = drawn.to(stored)
    write_golden(out / "model.safetensors", tensors, {"format": "pt"})
    if name == "v5":
        config.architectures = ["LlamaForCausalLM"]
        config.dtype = "bfloat16"
        config.save_pretrained(out)
    else:
        (out / "config.json").write_text(json.dumps(tiny_config(changes), indent=2) + "\n")

    read_back = LlamaConfig.from_pretrained(out)
    ids = torch.randint(0, config.vocab_size, (2, 17), generator=generator)
    results = {
        kind: load(read_back, tensors, PRECISIONS[kind])(ids, use_cache=False).logits
        for kind in ["f32", "f64"]
    }
    write_golden(
        out / "expected.safetensors",
        {"input_ids": ids, "logits": results["f32"], "logits.f64": results["f64"]},
    )
    error = (results["f32"].double() - results["f64"]).abs().max()
    print(f"llama_tiny_{name}: {read_back.rope_parameters}, largest f32 error {error:.3g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    default = root / "examples" / "models" / "stories"
    parser.add_argument("--model", type=pathlib.Path, default=default)
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests" / "golden")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name, changes in TINY.items():
        tiny_goldens(name, changes, arguments.out / f"llama_tiny_{name}")
    story_goldens(arguments.model, arguments.out / "stories")


if __name__ == "__main__":
    main()
