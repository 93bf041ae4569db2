# SPDX-License-Identifier: Apache-2.0
"""Writes Hugging Face's results for the small models of examples/models into tests/golden/models.

    python scripts/make_example_goldens.py [--out tests/golden/models]

NAME.safetensors holds a model of random weights under Hugging Face's names, the inputs as
`input.NAME` and the result in f32 as `expected`. Norms and biases are drawn as well: of ones and
zeros no mistake would be seen.
"""

import argparse
import pathlib

import torch
import transformers

from golden_file import write_golden


def drawn(model):
    """The model with weights that are all drawn, in eval mode."""
    torch.manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if name.endswith("weight") and parameter.dim() == 1 else 0.0, 0.2)
    return model.eval()


def ids(count, *shape):
    return torch.randint(1, count, shape, generator=torch.Generator().manual_seed(11))


def gpt2():
    config = transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=24, n_layer=2, n_head=3)
    model = drawn(transformers.GPT2LMHeadModel(config))
    inputs = {"ids": ids(50, 2, 7)}
    return model, inputs, model(inputs["ids"]).logits, ["lm_head.weight"]


def moe():
    config = transformers.MixtralConfig(
        vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
        max_position_embeddings=16,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    model = drawn(transformers.MixtralForCausalLM(config))
    inputs = {"ids": ids(40, 2, 7)}
    return model, inputs, model(inputs["ids"]).logits, []


def vit():
    config = transformers.ViTConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
        image_size=16, patch_size=4, num_labels=10)
    model = drawn(transformers.ViTForImageClassification(config))
    inputs = {"image": torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(3))}
    return model, inputs, model(inputs["image"]).logits, []


def bert():
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=40, max_position_embeddings=16)
    model = drawn(transformers.BertModel(config, add_pooling_layer=False))
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, 4:] = 0
    inputs = {"ids": ids(50, 2, 7), "mask": mask}
    result = model(inputs["ids"], attention_mask=mask).last_hidden_state
    return model, inputs, result, []


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/golden/models"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for make in (gpt2, moe, vit, bert):
        with torch.no_grad():
            model, inputs, expected, left_out = make()
        tensors = {k: v for k, v in model.state_dict().items() if k not in left_out}
        tensors |= {f"input.{name}": value for name, value in inputs.items()}
        tensors["expected"] = expected
        write_golden(out / f"{make.__name__}.safetensors", tensors)


if __name__ == "__main__":
    main()
