# SPDX-License-Identifier: Apache-2.0
"""Writes small checkpoints of every format, and the logits of transformers with their dequantized weights.

    python scripts/make_checkpoint_goldens.py [--out tests/golden/checkpoints]

CASE/ holds a model (config.json and model.safetensors, or model.gguf; CASE/lora an adapter) and
expected.safetensors: input_ids i64 [2, 9] and logits f32 [2, 9, vocabulary]. kinds.gguf has one tensor of
every type, kinds.safetensors what the wheel `gguf` decodes it to. tokenizers/ has vocabularies as GGUF
metadata and the ids of texts by the libraries that trained them.

Written with torch 2.15.0, transformers 5.23.0, gguf 0.19.0, sentencepiece 0.2 and tokenizers 0.23.
"""

import argparse
import io
import json
import pathlib

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Kind
from safetensors.torch import save_file

HIDDEN, INNER, VOCAB, HEADS, KV = 32, 64, 64, 2, 1
HEAD = HIDDEN // HEADS
random = np.random.default_rng(0)


def draw(*shape, scale=0.3):
    return (random.standard_normal(shape) * scale).astype(np.float32)


def weights_of(model):
    """Random values for every tensor of the model: norms near 1."""
    return {name: draw(*t.shape) + (1 if "norm" in name and "gemma" not in model.config.model_type else 0)
            for name, t in model.state_dict().items()}  # fmt: skip


def build(config):
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()


def write_expected(folder, model, state):
    state = {k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in state.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and all("lm_head" in m for m in missing), (missing, unexpected)
    model.tie_weights()
    ids = torch.from_numpy(random.integers(0, model.config.vocab_size, (2, 9)))
    with torch.no_grad():
        logits = model(ids).logits.float()
    save_file({"input_ids": ids, "logits": logits.contiguous()}, folder / "expected.safetensors")


def llama_config(**more):
    return transformers.LlamaConfig(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=1,
        num_attention_heads=HEADS, num_key_value_heads=KV, max_position_embeddings=64,
        tie_word_embeddings=False, **more)  # fmt: skip


def write_config(folder, config, quantization=None):
    fields = json.loads(config.to_json_string())
    fields.pop("transformers_version", None)
    fields["architectures"] = ["LlamaForCausalLM"]
    if quantization:
        fields["quantization_config"] = quantization
    (folder / "config.json").write_text(json.dumps(fields, indent=1) + "\n")


# GGUF


def permuted(w, heads):
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


class GgufCase:
    def __init__(self, folder, arch, config, rotates=False):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.arch, self.rotates = folder, arch, rotates
        self.model = build(config)
        self.drawn = weights_of(self.model)
        self.state = {}
        self.writer = gguf.GGUFWriter(folder / "model.gguf", arch)
        w = self.writer
        w.add_block_count(1)
        w.add_context_length(config.max_position_embeddings)
        w.add_embedding_length(config.hidden_size)
        w.add_feed_forward_length(config.intermediate_size)
        w.add_head_count(config.num_attention_heads)
        w.add_head_count_kv(config.num_key_value_heads)
        w.add_layer_norm_rms_eps(config.rms_norm_eps)
        w.add_key_length(self.model.model.layers[0].self_attn.head_dim)
        w.add_value_length(self.model.model.layers[0].self_attn.head_dim)

    def encode(self, values, kind):
        """The bytes in the file and what they stand for."""
        data = gguf.quants.quantize(values, kind)
        return data, gguf.quants.dequantize(data, kind).reshape(values.shape).astype(np.float32)

    def add(self, theirs, ours, kind, heads=0, plus=0):
        values = self.drawn[ours] + np.float32(plus)
        if heads and self.rotates:
            values = permuted(values, heads)
        data, meant = self.encode(values, kind)
        self.writer.add_tensor(theirs, data, raw_dtype=kind)
        if heads and self.rotates:  # back to halves
            meant = meant.reshape(heads, meant.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(values.shape)
        self.state[ours] = meant - np.float32(plus)

    def add_layer(self, kinds, plus=0, ffn_norm="post_attention_layernorm"):
        c, at, blk = self.model.config, "model.layers.0.", "blk.0."
        self.add("token_embd.weight", "model.embed_tokens.weight", kinds["table"])
        self.add("output_norm.weight", "model.norm.weight", Kind.F32, plus=plus)
        if not c.tie_word_embeddings:
            self.add("output.weight", "lm_head.weight", kinds["head"])
        self.add(blk + "attn_norm.weight", at + "input_layernorm.weight", Kind.F32, plus=plus)
        self.add(blk + "ffn_norm.weight", at + ffn_norm + ".weight", Kind.F32, plus=plus)
        self.add(blk + "attn_output.weight", at + "self_attn.o_proj.weight", kinds["attn"])
        if "phi3" not in self.arch:
            for part, heads in (("q", c.num_attention_heads), ("k", c.num_key_value_heads), ("v", 0)):
                self.add(f"{blk}attn_{part}.weight", f"{at}self_attn.{part}_proj.weight", kinds["attn"], heads)

    def finish(self):
        w = self.writer
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()
        write_expected(self.folder, self.model, self.state)


def add_mlp(case, kind, names=("gate", "up", "down")):
    for name in names:
        case.add(f"blk.0.ffn_{name}.weight", f"model.layers.0.mlp.{name}_proj.weight", kind)


def gguf_llama(out):
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 16, "rope_theta": 10000.0}  # fmt: skip
    config = llama_config(rope_parameters=scaling)
    case = GgufCase(out / "gguf_llama", "llama", config, rotates=True)
    case.writer.add_rope_dimension_count(HEAD)
    case.add_layer({"table": Kind.Q5_0, "head": Kind.F16, "attn": Kind.Q8_0})
    add_mlp(case, Kind.Q4_0)
    inv = case.model.model.rotary_emb.inv_freq.numpy()
    plain = 1.0 / 10000.0 ** (np.arange(0, HEAD, 2, dtype=np.float32) / HEAD)
    case.writer.add_tensor("rope_freqs.weight", (plain / inv).astype(np.float32))
    case.finish()


def gguf_qwen3(out):
    config = transformers.Qwen3Config(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=1,
        num_attention_heads=HEADS, num_key_value_heads=KV, head_dim=16, max_position_embeddings=64,
        tie_word_embeddings=True)  # fmt: skip
    case = GgufCase(out / "gguf_qwen3", "qwen3", config)
    case.writer.add_rope_freq_base(10000.0)
    case.add_layer({"table": Kind.Q4_0, "attn": Kind.Q5_1})
    for part in "qk":
        case.add(f"blk.0.attn_{part}_norm.weight", f"model.layers.0.self_attn.{part}_norm.weight", Kind.F32)
    add_mlp(case, Kind.BF16)
    case.finish()


def gguf_gemma(out, version):
    common = dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=1,
        num_attention_heads=HEADS, num_key_value_heads=KV, head_dim=16, max_position_embeddings=64,
        tie_word_embeddings=True, sliding_window=4, query_pre_attn_scalar=16)  # fmt: skip
    config = (transformers.Gemma2Config if version == 2 else transformers.Gemma3TextConfig)(**common)
    case = GgufCase(out / f"gguf_gemma{version}", f"gemma{version}", config)
    case.writer.add_sliding_window(4)
    if version == 2:
        case.writer.add_attn_logit_softcapping(50.0)
        case.writer.add_final_logit_softcapping(30.0)
    else:
        case.writer.add_rope_freq_base(1e6)
        for part in "qk":
            case.add(f"blk.0.attn_{part}_norm.weight", f"model.layers.0.self_attn.{part}_norm.weight", Kind.F32, plus=1)
    case.add_layer({"table": Kind.Q8_0, "attn": Kind.Q4_1}, plus=1, ffn_norm="pre_feedforward_layernorm")
    case.add("blk.0.post_attention_norm.weight", "model.layers.0.post_attention_layernorm.weight", Kind.F32, plus=1)
    case.add("blk.0.post_ffw_norm.weight", "model.layers.0.post_feedforward_layernorm.weight", Kind.F32, plus=1)
    add_mlp(case, Kind.Q8_0)
    case.finish()


def gguf_phi3(out):
    factors = {"long_factor": [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 8.0],
               "short_factor": [1.0, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 2.0]}  # fmt: skip
    config = transformers.Phi3Config(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=1,
        num_attention_heads=HEADS, num_key_value_heads=KV, max_position_embeddings=128,
        original_max_position_embeddings=64, pad_token_id=0, sliding_window=None,
        rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 64, **factors})  # fmt: skip
    case = GgufCase(out / "gguf_phi3", "phi3", config)
    w = case.writer
    w.add_rope_dimension_count(HEAD)
    w.add_rope_scaling_orig_ctx_len(64)
    w.add_rope_scaling_attn_factors(float(np.sqrt(1 + np.log(2) / np.log(64))))
    for name in ("long", "short"):
        w.add_tensor(f"rope_factors_{name}.weight", np.array(factors[name + "_factor"], dtype=np.float32))
    case.add_layer({"table": Kind.F16, "head": Kind.Q8_0, "attn": Kind.Q4_0})
    case.add("blk.0.attn_qkv.weight", "model.layers.0.self_attn.qkv_proj.weight", Kind.Q4_0)
    case.add("blk.0.ffn_up.weight", "model.layers.0.mlp.gate_up_proj.weight", Kind.Q4_0)
    case.add("blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight", Kind.Q4_0)
    case.finish()


def gguf_mixtral(out):
    experts = 3
    config = transformers.MixtralConfig(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=HIDDEN, num_hidden_layers=1,
        num_attention_heads=HEADS, num_key_value_heads=KV, max_position_embeddings=64,
        num_local_experts=experts, num_experts_per_tok=2, rms_norm_eps=1e-5, sliding_window=None)  # fmt: skip
    case = GgufCase(out / "gguf_mixtral", "llama", config, rotates=True)
    case.writer.add_rope_dimension_count(HEAD)
    case.writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    case.writer.add_expert_count(experts)
    case.writer.add_expert_used_count(2)
    case.add_layer({"table": Kind.Q8_0, "head": Kind.Q8_0, "attn": Kind.Q8_0})
    at = "model.layers.0.mlp."
    case.add("blk.0.ffn_gate_inp.weight", at + "gate.weight", Kind.F32)
    halves = np.split(case.drawn[at + "experts.gate_up_proj"], 2, axis=1)
    meant = []
    for name, values in (("gate", halves[0]), ("up", halves[1]), ("down", case.drawn[at + "experts.down_proj"])):
        data, floats = case.encode(np.ascontiguousarray(values), Kind.Q4_0)
        case.writer.add_tensor(f"blk.0.ffn_{name}_exps.weight", data, raw_dtype=Kind.Q4_0)
        meant.append(floats)
    case.state[at + "experts.gate_up_proj"] = np.concatenate(meant[:2], axis=1)
    case.state[at + "experts.down_proj"] = meant[2]
    case.finish()


def gguf_kinds(out):
    """Blocks of random bits whose scales are ordinary numbers."""
    writer = gguf.GGUFWriter(out / "kinds.gguf", "llama")
    scales = {Kind.Q4_0: [0], Kind.Q4_1: [0, 2], Kind.Q5_0: [0], Kind.Q5_1: [0, 2], Kind.Q8_0: [0],
              Kind.Q2_K: [80, 82], Kind.Q3_K: [108], Kind.Q4_K: [0, 2], Kind.Q5_K: [0, 2], Kind.Q6_K: [208]}  # fmt: skip
    decoded = {}
    for kind, places in scales.items():
        block, size = gguf.GGML_QUANT_SIZES[kind]
        rows, blocks = 2, 1 if block == 256 else 2
        data = random.integers(0, 256, (rows, blocks, size), dtype=np.uint8)
        for place in places:
            values = draw(rows, blocks).astype(np.float16)
            data[:, :, place : place + 2] = values.view(np.uint8).reshape(rows, blocks, 2)
        data = data.reshape(rows, blocks * size)
        writer.add_tensor(kind.name, data, raw_dtype=kind)
        decoded[kind.name] = torch.from_numpy(gguf.quants.dequantize(data, kind).reshape(rows, blocks * block))
    for kind in (Kind.F32, Kind.F16, Kind.BF16):
        data = gguf.quants.quantize(draw(2, 32), kind)
        writer.add_tensor(kind.name, data, raw_dtype=kind)
        decoded[kind.name] = torch.from_numpy(gguf.quants.dequantize(data, kind).reshape(2, 32).copy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file({k: v.contiguous() for k, v in decoded.items()}, out / "kinds.safetensors")


# Folders


def words_of(numbers, bits, axis):
    """Neighbours along the axis in words of 32 bits, the first in the low bits."""
    numbers = np.moveaxis(numbers.astype(np.uint32), axis, -1)
    per = 32 // bits
    short = -numbers.shape[-1] % per
    numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, short)])
    numbers = numbers.reshape(*numbers.shape[:-1], -1, per) << (np.arange(per, dtype=np.uint32) * bits)
    words = np.bitwise_or.reduce(numbers, axis=-1).view(np.int32)
    return np.ascontiguousarray(np.moveaxis(words, -1, axis))


class Folder:
    """A Llama whose layers `quantize` writes; the head and the table stay floats."""

    def __init__(self, folder, quantization, quantize):
        folder.mkdir(parents=True, exist_ok=True)
        config = llama_config()
        model = build(config)
        tensors, meant = {}, {}
        for name, values in weights_of(model).items():
            if "_proj" in name:
                module = name.removesuffix(".weight")
                parts, meant[name] = quantize(values)
                tensors |= {f"{module}.{k}": torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in parts.items()}
            else:
                tensors[name] = torch.from_numpy(values).to(torch.float16)
                meant[name] = tensors[name].float().numpy()
        save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "model.safetensors")
        write_config(folder, config, quantization)
        write_expected(folder, model, meant)


def integers(w, bits, group, symmetric, order=None):
    """q, zero (both from 0 on) and scale of [n, k] by groups of columns, and what they stand for."""
    n, k = w.shape
    of = np.arange(k) // group if order is None else order
    groups = of.max() + 1
    top = 2**bits - 1
    q, zero, scale = np.zeros((n, k), np.int64), np.zeros((n, groups), np.int64), np.zeros((n, groups), np.float16)
    for g in range(groups):
        part = w[:, of == g]
        low, high = np.minimum(part.min(1), 0), np.maximum(part.max(1), 0)
        if symmetric:
            s = (2 * np.abs(part).max(1) / top).astype(np.float16)
            z = np.full(n, 2 ** (bits - 1))
        else:
            s = ((high - low) / top).astype(np.float16)
            z = np.clip(np.round(-low / s.astype(np.float32)), 1, top).astype(np.int64)
        q[:, of == g] = np.clip(np.round(part / s.astype(np.float32)[:, None]) + z[:, None], 0, top)
        zero[:, g], scale[:, g] = z, s
    meant = (q - zero[:, of]).astype(np.float32) * scale.astype(np.float32)[:, of]
    return q, zero, scale, meant


def gptq(bits, group, symmetric, act_order=False, version="gptq"):
    def quantize(w):
        k = w.shape[1]
        order = random.permutation(np.arange(k) // group) if act_order else np.arange(k) // group
        q, zero, scale, meant = integers(w, bits, group, symmetric, order)
        stored = zero - (version == "gptq")
        return {"qweight": words_of(q.T, bits, 0), "qzeros": words_of(stored.T, bits, 1),
                "scales": np.ascontiguousarray(scale.T), "g_idx": order.astype(np.int32)}, meant  # fmt: skip

    return {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": act_order, "sym": symmetric,
            "checkpoint_format": version, "true_sequential": True, "damp_percent": 0.01}, quantize  # fmt: skip


def awq(group):
    places = np.array([0, 2, 4, 6, 1, 3, 5, 7])

    def interleaved(x):
        return x.reshape(x.shape[0], -1, 8)[:, :, places].reshape(x.shape)

    def quantize(w):
        q, zero, scale, meant = integers(w, 4, group, symmetric=False)
        return {"qweight": words_of(interleaved(q.T), 4, 1), "qzeros": words_of(interleaved(zero.T), 4, 1),
                "scales": np.ascontiguousarray(scale.T)}, meant  # fmt: skip

    return {"quant_method": "awq", "bits": 4, "group_size": group, "version": "gemm", "zero_point": True}, quantize


def compressed(bits, group, symmetric, packed=True):
    def quantize(w):
        q, zero, scale, meant = integers(w, bits, group or w.shape[1], symmetric)
        if not packed:
            return {"weight": (q - 2 ** (bits - 1)).astype(np.int8), "weight_scale": scale}, meant
        parts = {"weight_packed": words_of(q, bits, 1), "weight_scale": scale, "weight_shape": np.array(w.shape)}
        if not symmetric:
            parts["weight_zero_point"] = words_of(zero, bits, 0)
        return parts, meant

    weights = {"num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": "group" if group else "channel",
               "group_size": group or None, "dynamic": False, "observer": "minmax", "observer_kwargs": {},
               "actorder": None, "block_structure": None}  # fmt: skip
    form = "pack-quantized" if packed else "int-quantized"
    return {"quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed",
            "ignore": ["lm_head"], "kv_cache_scheme": None, "global_compression_ratio": 1.5,
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights,
                                          "input_activations": None, "output_activations": None}}}, quantize  # fmt: skip


def fp8(tile):
    """One scale for each tile [rows, columns]; without columns one for each row, without a tile one."""

    def quantize(w):
        rows, columns = tile or w.shape
        columns = columns or w.shape[1]
        counts = -(-w.shape[0] // rows), -(-w.shape[1] // columns)
        scale = np.zeros(counts, np.float32)
        spread = np.zeros(w.shape, np.float32)
        for i in range(counts[0]):
            for j in range(counts[1]):
                part = np.s_[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns]
                scale[i, j] = np.abs(w[part]).max() / 448
                spread[part] = scale[i, j]
        bytes_ = torch.from_numpy(w / spread).to(torch.float8_e4m3fn)
        meant = bytes_.float().numpy() * spread
        name = "weight_scale_inv" if tile and tile[1] else "weight_scale"
        return {"weight": bytes_, name: scale if tile else scale.reshape(1)}, meant

    config = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3"}
    if tile and tile[1]:
        config["weight_block_size"] = tile
    return config, quantize


def lora(out, dora=False):
    import peft

    folder = out / ("dora" if dora else "lora")
    (folder / "lora").mkdir(parents=True, exist_ok=True)
    config = llama_config()
    model = build(config)
    state = {k: torch.from_numpy(v) for k, v in weights_of(model).items()}
    model.load_state_dict(state)
    save_file(state, folder / "model.safetensors")
    write_config(folder, config)
    targets = ["q_proj", "down_proj"] if dora else ["q_proj", "v_proj", "down_proj", "embed_tokens"]
    options = dict(r=4, lora_alpha=6, target_modules=targets, use_dora=dora)
    if not dora:
        options |= dict(use_rslora=True, rank_pattern={"v_proj": 2}, alpha_pattern={"self_attn.v_proj": 3}, modules_to_save=["lm_head"])
    adapted = peft.get_peft_model(model, peft.LoraConfig(**options))
    with torch.no_grad():
        for name, tensor in adapted.named_parameters():
            if "lora_" in name or "modules_to_save" in name:
                tensor.copy_(torch.from_numpy(draw(*tensor.shape)) + (2 if "magnitude" in name else 0))
    adapted.save_pretrained(folder / "lora")
    (folder / "lora" / "README.md").unlink(missing_ok=True)
    ids = torch.from_numpy(random.integers(0, VOCAB, (2, 9)))
    with torch.no_grad():
        logits = adapted.eval()(ids).logits.float()
    save_file({"input_ids": ids, "logits": logits.contiguous()}, folder / "expected.safetensors")


# Tokenizers

TEXTS = ["Hello world", " the  cat\n\nsat 1234 don't", "naïve Übung 日本語 🙂", "a\tb\r\nc  ", "", "x=y+1;", "THE END's"]


def corpus():
    words = "the cat sat on a mat and dog ran to house with red ball don't world hello 12 345 Über naïve".split()
    return [" ".join(random.choice(words, 12)) for _ in range(400)]


def write_vocabulary(path, model, tokens, kinds, scores=None, merges=None, pre=None, **ids):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    if pre:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    if scores:
        writer.add_token_scores(scores)
    if merges:
        writer.add_token_merges(merges)
    for name, value in ids.items():
        getattr(writer, "add_" + name)(value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tokenizers_of(out):
    import sentencepiece
    import tokenizers as hf

    folder = out / "tokenizers"
    folder.mkdir(parents=True, exist_ok=True)
    expected = {}
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=model, model_type="bpe", vocab_size=340, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2)  # fmt: skip
    sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    kinds = [2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1 for i in range(len(sp))]
    write_vocabulary(folder / "sentencepiece.gguf", "llama", [sp.id_to_piece(i) for i in range(len(sp))], kinds,
                     scores=[sp.get_score(i) for i in range(len(sp))], bos_token_id=1, eos_token_id=2, unk_token_id=0)  # fmt: skip
    expected["sentencepiece"] = [[1] + sp.encode(text) if text else [1] for text in TEXTS]

    llama3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    cases = {
        "gpt-2": hf.pre_tokenizers.ByteLevel(add_prefix_space=False),
        "llama-bpe": hf.pre_tokenizers.Sequence([hf.pre_tokenizers.Split(hf.Regex(llama3), "isolated"),
                                                 hf.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
        "smollm": hf.pre_tokenizers.Sequence([hf.pre_tokenizers.Digits(individual_digits=True),
                                              hf.pre_tokenizers.ByteLevel(add_prefix_space=False)]),
    }  # fmt: skip
    for pre, pre_tokenizer in cases.items():
        t = hf.Tokenizer(hf.models.BPE(ignore_merges=pre == "llama-bpe"))
        t.pre_tokenizer = pre_tokenizer
        t.train_from_iterator(corpus(), hf.trainers.BpeTrainer(vocab_size=320, special_tokens=["<s>", "</s>"], show_progress=False,
                                                                initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet()))  # fmt: skip
        stored = json.loads(t.to_str())["model"]
        tokens = sorted(stored["vocab"], key=stored["vocab"].get)
        merges = [m if isinstance(m, str) else " ".join(m) for m in stored["merges"]]
        kinds = [3 if token in ("<s>", "</s>") else 1 for token in tokens]
        write_vocabulary(folder / f"{pre}.gguf", "gpt2", tokens, kinds, merges=merges, pre=pre, bos_token_id=0, eos_token_id=1)
        begin = [0] if pre == "llama-bpe" else []
        expected[pre] = [begin + t.encode(text).ids for text in TEXTS]
    (folder / "expected.json").write_text(json.dumps({"texts": TEXTS, "ids": expected}, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/golden/checkpoints"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    gguf_kinds(out)
    gguf_llama(out)
    gguf_qwen3(out)
    gguf_gemma(out, 2)
    gguf_gemma(out, 3)
    gguf_phi3(out)
    gguf_mixtral(out)
    folders = {
        "gptq": gptq(4, 16, symmetric=False),
        "gptq_sym_v2": gptq(4, 32, symmetric=True, version="gptq_v2"),
        "gptq_act_order": gptq(4, 16, symmetric=False, act_order=True),
        "gptq_int8": gptq(8, 32, symmetric=True),
        "awq": awq(16),
        "packed_int4": compressed(4, 16, symmetric=True),
        "packed_int4_asymmetric": compressed(4, 16, symmetric=False),
        "packed_int8": compressed(8, 0, symmetric=True),
        "int8": compressed(8, 0, symmetric=True, packed=False),
        "fp8": fp8(None),
        "fp8_rows": fp8([1, 0]),
        "fp8_tiles": fp8([24, 24]),
    }
    for name, (config, quantize) in folders.items():
        Folder(out / name, config, quantize)
    lora(out)
    lora(out, dora=True)
    tokenizers_of(out)


if __name__ == "__main__":
    main()
