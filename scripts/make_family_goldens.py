# SPDX-License-Identifier: Apache-2.0
"""Writes the logits of small random models of every family, by transformers, into tests/golden.

    python scripts/make_family_goldens.py [--out tests/golden/families] [--only LlamaForCausalLM]

Each architecture has one file ARCHITECTURE.safetensors. Metadata "cases" is a JSON list with, for
each case, its config.json ("config"), the seed of its weights ("seed", see
family_goldens/weights.py) and whether decoding with a cache gives what one full pass does
("decodes": rotations that depend on the length of a call do not, once they have changed).
Tensors of case i: "<i>.<input>" and "<i>.<output>"; of encoder-decoders "<i>.greedy" and
"<i>.beams", the tokens that they write.

Written with torch 2.15.0, transformers 5.23.0 and diffusers 0.42.1, f32 weights and arithmetic, eager attention
(Falcon: scaled_dot_product_attention).
"""

import argparse
import copy
import json
import pathlib
import random
import re

import diffusers
import torch
import transformers
from family_goldens.decoders import DECODERS
from family_goldens.encoders import ENCODERS
from family_goldens.weights import weight
from golden_file import write_golden

CASES, BATCH = 20, 2
# Encoder-decoders of texts: what they write is kept, too.
WRITERS = {"T5ForConditionalGeneration", "MT5ForConditionalGeneration", "BartForConditionalGeneration", "MarianMTModel"}
OUTPUTS = ("last_hidden_state", "pooler_output", "logits", "text_embeds", "image_embeds",
           "logits_per_text", "logits_per_image")  # fmt: skip
# Fields that may be left out of a config.json where they have the family's default.
OPTIONAL = {
    "num_key_value_heads", "head_dim", "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon",
    "tie_word_embeddings", "hidden_act", "hidden_activation", "activation_function",
    "attention_bias", "mlp_bias", "sliding_window", "use_sliding_window", "max_window_layers",
    "n_inner", "scale_embedding", "scale_attn_weights", "scale_attn_by_inverse_layer_idx", "embedding_multiplier",
    "attention_multiplier", "residual_multiplier", "logits_scaling", "use_parallel_residual",
    "attn_logit_softcapping", "final_logit_softcapping", "query_pre_attn_scalar",
    "type_vocab_size", "pad_token_id", "norm_topk_prob", "decoder_sparse_step", "mlp_only_layers",
    "qkv_bias", "use_qkv_bias", "qk_layernorm", "use_qk_norm", "use_bias", "bias", "enable_bias",
    "norm_epsilon", "ffn_hidden_size", "num_kv_heads", "multi_query", "parallel_attn", "alibi",
    "new_decoder_architecture", "num_ln_in_parallel_attn", "word_embed_proj_dim",
    "do_layer_norm_before", "_remove_final_layer_norm", "layer_norm_elementwise_affine",
    "no_rope_layer_interval", "apply_residual_connection_post_layernorm",
}  # fmt: skip
# Not of the model.
LEFT_OUT = {"transformers_version", "dtype", "torch_dtype", "_name_or_path", "attn_implementation"}


# What transformers 5 renamed, and how published checkpoints call it.
VIT_NAMES = [
    (r"(^|\.)layers\.(\d+)\.", r"\1encoder.layer.\2."),
    (r"attention\.q_proj", "attention.attention.query"),
    (r"attention\.k_proj", "attention.attention.key"),
    (r"attention\.v_proj", "attention.attention.value"),
    (r"attention\.o_proj", "attention.output.dense"),
    (r"mlp\.fc1", "intermediate.dense"),
    (r"mlp\.fc2", "output.dense"),
]


def checkpoint_tensors(architecture, name, tensor):
    """Pieces of one of transformers' tensors under the names of published checkpoints."""
    if architecture == "GPTNeoXForCausalLM" and name == "lm_head.weight":
        return [("embed_out.weight", ...)]
    # What transformers 5 calls by a shorter name.
    for bare, prefix in (("CLIPTextModel", "text_model."), ("CLIPVisionModel", "vision_model.")):
        if architecture == bare and not name.startswith(prefix):
            name = prefix + name
    if architecture.startswith("ViT"):
        for ours, published in VIT_NAMES:
            name = re.sub(ours, published, name)
    if ".mlp.experts." in name:
        first, down = ("w1", "w2") if architecture == "MixtralForCausalLM" else ("gate_proj", "down_proj")
        up = "w3" if architecture == "MixtralForCausalLM" else "up_proj"
        stem = name.rsplit(".", 1)[0]
        if architecture == "MixtralForCausalLM":
            stem = stem.replace(".mlp.", ".block_sparse_moe.")
        pieces = []
        for e in range(tensor.shape[0]):
            if name.endswith("down_proj"):
                pieces.append((f"{stem}.{e}.{down}.weight", e))
            else:
                half = tensor.shape[1] // 2
                pieces.append((f"{stem}.{e}.{first}.weight", (e, slice(0, half))))
                pieces.append((f"{stem}.{e}.{up}.weight", (e, slice(half, None))))
        return pieces
    if architecture == "MixtralForCausalLM":
        name = name.replace(".mlp.gate.", ".block_sparse_moe.gate.")
    return [(name, ...)]


def fill(model, architecture, seed):
    """Every parameter of the model, from its name; tied ones once, under the name that the others are tied to."""
    seen, parameters = set(), dict(model.named_parameters(remove_duplicate=False))
    tied = dict(model._tied_weights_keys or {})
    with torch.no_grad():
        for name, p in sorted([*parameters.items(), *model.named_buffers()], key=lambda item: item[0] in tied):
            if name not in parameters and name != "final_logits_bias":
                continue
            if p.data_ptr() in seen or (architecture == "MarianMTModel" and "embed_positions" in name):
                continue  # Marian computes its places
            seen.add(p.data_ptr())
            for piece, where in checkpoint_tensors(architecture, name, p):
                part = p[where]
                part.copy_(torch.from_numpy(weight(piece, tuple(part.shape), seed)))


def as_version_4(r, config):
    """rope_theta and rope_scaling beside each other, as transformers 4 writes them."""
    p = config.get("rope_parameters")
    if not p or r.random() < 0.5:
        return config
    config = dict(config)
    del config["rope_parameters"]
    if "full_attention" in p:
        config["rope_theta"] = p["full_attention"].pop("rope_theta")
        config["rope_local_base_freq"] = p["sliding_attention"]["rope_theta"]
        p = p["full_attention"]
    else:
        p = dict(p)
        theta = p.pop("rope_theta")
        part = p.pop("partial_rotary_factor", None)
        if config["model_type"] == "gpt_neox":
            config.update(rotary_emb_base=theta, rotary_pct=part)
        else:
            config["rope_theta"] = theta
            if part is not None and config["model_type"] in ("phi3", "phi", "stablelm"):
                config["partial_rotary_factor"] = part
    if p["rope_type"] != "default":
        p[r.choice(["rope_type", "type"])] = p.pop("rope_type")
        config["rope_scaling"] = p
    return config


def config_json(r, config, architecture):
    fields = json.loads(config.to_json_string(use_diff=True))
    if isinstance(config, transformers.ViTConfig):
        fields["id2label"] = {str(i): f"LABEL_{i}" for i in range(config.num_labels)}
    defaults = type(config)().to_dict()
    for key in list(fields):
        is_default = key in OPTIONAL and fields[key] == defaults.get(key)
        if key in LEFT_OUT or (is_default and r.random() < 0.7):
            del fields[key]
    fields["architectures"] = [architecture]
    return as_version_4(r, fields)


def decodes(config, length):
    """Whether keys in a cache were rotated as the last call rotates."""
    p = getattr(config, "rope_parameters", None) or {}
    kind = p.get("rope_type", "default")
    if kind == "dynamic":
        return length <= config.max_position_embeddings
    if kind == "longrope":
        return length <= p["original_max_position_embeddings"]
    return True


def decoder_case(r, architecture, index):
    cls = getattr(transformers, architecture)
    fields = DECODERS[architecture](r)
    config = cls.config_class(**copy.deepcopy(fields))
    written = config_json(r, config, architecture)
    # Falcon's eager attention adds its biases of distances twice, the default one once.
    config._attn_implementation = "sdpa" if architecture == "FalconForCausalLM" else "eager"
    model = cls(config).eval()
    fill(model, architecture, index)
    limit = getattr(config, "max_position_embeddings", 32)
    dynamic = (getattr(config, "rope_parameters", None) or {}).get("rope_type") == "dynamic"
    length = r.randint(7, 9) if not dynamic else min(8, int(limit * config.rope_parameters["factor"]))
    ids = torch.tensor([[r.randrange(config.vocab_size) for _ in range(length)] for _ in range(BATCH)])
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits
    assert torch.isfinite(logits).all() and logits.std() > 1e-3
    case = {"config": written, "seed": index, "decodes": decodes(config, length)}
    return case, {"input_ids": ids, "logits": logits}


def diffusion_case(r, architecture, index):
    cls = getattr(diffusers, architecture)
    fields, inputs = ENCODERS[architecture](r)
    model = cls(**fields).eval()
    written = {"_class_name": architecture, "_diffusers_version": diffusers.__version__, **fields}
    fill(model, architecture, index)
    with torch.no_grad():
        sample = model(**inputs).sample
    assert torch.isfinite(sample).all() and sample.std() > 1e-3
    return {"config": written, "seed": index}, {**inputs, "sample": sample}


def encoder_case(r, architecture, index):
    if not hasattr(transformers, architecture):
        return diffusion_case(r, architecture, index)
    cls = getattr(transformers, architecture)
    fields, inputs = ENCODERS[architecture](r)
    config = cls.config_class(**copy.deepcopy(fields))
    written = config_json(r, config, architecture)
    config._attn_implementation = "eager"
    model = cls(config).eval()
    fill(model, architecture, index)
    with torch.no_grad():
        result = model(**inputs)
    if "encoder_last_hidden_state" in result:
        inputs["encoder_hidden_states"] = result["encoder_last_hidden_state"]
    outputs = {k: result[k] for k in OUTPUTS if k in result}
    assert outputs and all(torch.isfinite(x).all() for x in outputs.values())
    if architecture in ("BertModel", "RobertaModel", "XLMRobertaModel", "DistilBertModel"):
        outputs["embeddings"] = mean_pooled(outputs["last_hidden_state"], inputs["attention_mask"])
    if architecture in WRITERS:
        outputs.update(searched(model, config, inputs, architecture))
    return {"config": written, "seed": index}, {**inputs, **outputs}


def searched(model, config, inputs, architecture):
    """What the model writes: the likeliest next token each time, and by a search with three beams."""
    source = {k: inputs[k] for k in ("input_ids", "attention_mask")}
    options = {"max_new_tokens": 8, "do_sample": False, "use_cache": False}
    if architecture == "MarianMTModel":
        options.update(bad_words_ids=[[config.pad_token_id]], renormalize_logits=True)
    with torch.no_grad():
        return {
            name: model.generate(**source, num_beams=beams, **options)[:, 1:]
            for name, beams in (("greedy", 1), ("beams", 3))
        }


def mean_pooled(x, mask):
    """As sentence-transformers' modules Pooling (mean) and Normalize."""
    shares = mask.unsqueeze(-1).float()
    mean = (x * shares).sum(1) / shares.sum(1).clamp(min=1e-9)
    return torch.nn.functional.normalize(mean, p=2, dim=1)


# What published folders call a class that has another name by now.
FORMER_NAMES = {"DiTTransformer2DModel": ["Transformer2DModel"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests/golden/families")
    parser.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for architecture in arguments.only or [*DECODERS, *ENCODERS]:
        r = random.Random(architecture)
        cases, tensors = [], {}
        for i in range(CASES):
            draw = decoder_case if architecture in DECODERS else encoder_case
            case, arrays = draw(r, architecture, i)
            cases.append(case)
            tensors.update({f"{i}.{name}": a for name, a in arrays.items()})
        for name in (architecture, *FORMER_NAMES.get(architecture, ())):
            told = json.dumps(cases, sort_keys=True).replace(f'"{architecture}"', f'"{name}"')
            write_golden(arguments.out / f"{name}.safetensors", tensors, {"cases": told})
        print(architecture, len(cases))


if __name__ == "__main__":
    main()
