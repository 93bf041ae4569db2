# SPDX-License-Identifier: Apache-2.0
"""Small random configs of the decoder-only families: every field that changes the mathematics."""

FULL, SLIDING = "full_attention", "sliding_attention"
# Activations that a gated MLP may have.
ACTIVATIONS = ["silu", "silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu"]


def sizes(r, own_head_dim=False):
    heads = r.choice([1, 2, 4, 6])
    head_dim = r.choice([4, 8, 12])
    fields = {
        "vocab_size": r.randint(11, 16),
        "hidden_size": heads * head_dim,
        "intermediate_size": r.choice([12, 20, 28]),
        "num_hidden_layers": r.randint(1, 3),
        "num_attention_heads": heads,
        "num_key_value_heads": r.choice([k for k in (1, 2, 3, 4, 6) if heads % k == 0]),
        "max_position_embeddings": r.choice([32, 64]),
        "rms_norm_eps": r.choice([1e-6, 1e-5, 1e-2]),
        "tie_word_embeddings": r.random() < 0.4,
    }
    if own_head_dim:
        fields["head_dim"] = r.choice([6, 8, 10, 16])
    return fields


def rope(r, fields, kinds=("default", "linear", "dynamic", "yarn", "llama3", "longrope")):
    """rope_parameters; short trained lengths, so that the few tokens of a golden reach past them."""
    head_dim = fields.get("head_dim") or fields["hidden_size"] // fields["num_attention_heads"]
    kind = r.choice(kinds)
    p = {"rope_type": kind, "rope_theta": r.choice([100.0, 10000.0, 500000.0])}
    if kind == "default":
        return p
    p["factor"] = r.choice([2.0, 4.0, 8.0])
    if kind == "dynamic":
        fields["max_position_embeddings"] = r.choice([4, 6, 16])
    if kind == "yarn":
        p["original_max_position_embeddings"] = r.choice([4, 8, 16])
        if r.random() < 0.5:
            p.update(beta_fast=r.choice([4.0, 8.0]), beta_slow=r.choice([0.5, 1.0]))
        if r.random() < 0.3:
            p.update(mscale=0.7, mscale_all_dim=1.3)
        elif r.random() < 0.3:
            p["attention_factor"] = 1.2
        if r.random() < 0.3:
            p["truncate"] = False
    if kind == "llama3":
        p["original_max_position_embeddings"] = r.choice([8, 32])
        p.update(low_freq_factor=r.choice([1.0, 2.0]), high_freq_factor=r.choice([4.0, 6.0]))
    if kind == "longrope":
        count = head_dim // 2
        p["original_max_position_embeddings"] = r.choice([4, 16])
        p["short_factor"] = [round(r.uniform(1, 1.5), 2) for _ in range(count)]
        p["long_factor"] = [round(r.uniform(1.5, 9), 2) for _ in range(count)]
        if r.random() < 0.5:
            del p["factor"]
    return p


def llama(r):
    f = sizes(r, own_head_dim=r.random() < 0.4)
    f.update(
        hidden_act=r.choice(ACTIVATIONS),
        attention_bias=r.random() < 0.3,
        mlp_bias=r.random() < 0.3,
        rope_parameters=rope(r, f),
    )
    return f


def mistral(r):
    f = sizes(r, own_head_dim=r.random() < 0.3)
    f.update(
        hidden_act=r.choice(ACTIVATIONS),
        sliding_window=r.choice([None, 2, 3, 5, 4096]),
        rope_parameters=rope(r, f, ("default", "default", "linear", "yarn")),
    )
    return f


def windows(r, f):
    f.update(
        use_sliding_window=r.random() < 0.7,
        sliding_window=r.choice([2, 3, 5]),
        max_window_layers=r.randint(0, 2),
    )
    if f["use_sliding_window"] and r.random() < 0.3:
        f["layer_types"] = [r.choice([FULL, SLIDING]) for _ in range(f["num_hidden_layers"])]


def qwen2(r):
    f = sizes(r)
    f.update(hidden_act=r.choice(ACTIVATIONS), rope_parameters=rope(r, f, ("default", "yarn")))
    windows(r, f)
    return f


def qwen3(r):
    f = sizes(r, own_head_dim=True)
    f.update(
        hidden_act=r.choice(ACTIVATIONS),
        attention_bias=r.random() < 0.4,
        rope_parameters=rope(r, f, ("default", "yarn", "linear")),
    )
    windows(r, f)
    return f


def qwen3_moe(r):
    f = sizes(r, own_head_dim=True)
    experts = r.choice([3, 4, 6])
    f.update(
        hidden_act=r.choice(ACTIVATIONS),
        attention_bias=r.random() < 0.4,
        rope_parameters=rope(r, f, ("default", "yarn")),
        use_sliding_window=r.random() < 0.3,
        sliding_window=r.choice([2, 3]),
        decoder_sparse_step=r.choice([1, 1, 2]),
        mlp_only_layers=r.choice([[], [], [1]]),
        num_experts=experts,
        num_experts_per_tok=r.randint(1, experts),
        moe_intermediate_size=r.choice([8, 12]),
        norm_topk_prob=r.random() < 0.5,
    )
    return f


def mixtral(r):
    f = sizes(r, own_head_dim=r.random() < 0.3)
    experts = r.choice([2, 4, 5])
    f.update(
        hidden_act=r.choice(ACTIVATIONS),
        rope_parameters=rope(r, f, ("default", "linear")),
        sliding_window=r.choice([None, None, 3]),
        num_local_experts=experts,
        num_experts_per_tok=r.randint(1, min(experts, 3)),
    )
    return f


def gemma(r):
    f = sizes(r, own_head_dim=True)
    f.update(
        hidden_act=r.choice(["gelu", "gelu_pytorch_tanh", "silu"]),
        attention_bias=r.random() < 0.3,
        rope_parameters=rope(r, f, ("default", "linear")),
    )
    return f


def gemma2(r):
    f = sizes(r, own_head_dim=True)
    f.update(
        num_hidden_layers=r.randint(2, 3),
        hidden_activation=r.choice(["gelu_pytorch_tanh", "gelu_pytorch_tanh", "gelu", "silu"]),
        attention_bias=r.random() < 0.3,
        query_pre_attn_scalar=r.choice([4, 8, 13]),
        sliding_window=r.choice([2, 3, 5]),
        attn_logit_softcapping=r.choice([None, 0.5, 2.0, 50.0]),
        final_logit_softcapping=r.choice([None, 0.5, 3.0, 30.0]),
        rope_parameters=rope(r, f, ("default", "linear")),
    )
    if r.random() < 0.3:
        f["layer_types"] = [r.choice([FULL, SLIDING]) for _ in range(f["num_hidden_layers"])]
    return f


def gemma3(r):
    f = gemma2(r)
    del f["attn_logit_softcapping"]
    full = rope(r, f, ("default", "linear", "yarn"))
    full.pop("truncate", None)  # which transformers does not look for in an object per kind of layer
    f["rope_parameters"] = {
        FULL: full,
        SLIDING: {"rope_type": "default", "rope_theta": r.choice([100.0, 10000.0])},
    }
    if "layer_types" not in f:
        f["sliding_window_pattern"] = r.choice([2, 3])
    return f


def phi3(r):
    f = sizes(r)
    heads = f["num_attention_heads"]
    head_dim = r.choice([8, 16])
    f["hidden_size"] = heads * head_dim
    part = r.choice([1.0, 0.75, 0.5])
    p = rope(r, {**f, "head_dim": int(head_dim * part)}, ("default", "longrope"))
    p["partial_rotary_factor"] = part
    trained = p.pop("original_max_position_embeddings", 16)
    f.update(
        hidden_act=r.choice(ACTIVATIONS),
        sliding_window=r.choice([None, None, 3]),
        original_max_position_embeddings=trained,
        rope_parameters=p,
        pad_token_id=None,
        bos_token_id=1,
        eos_token_id=2,
    )
    p.pop("factor", None)
    return f


def olmo2(r):
    f = sizes(r)
    f.update(
        hidden_act=r.choice(ACTIVATIONS),
        attention_bias=r.random() < 0.3,
        rope_parameters=rope(r, f, ("default", "yarn", "linear")),
        eos_token_id=2,
    )
    return f


def granite(r):
    f = sizes(r)
    f.update(
        hidden_act=r.choice(ACTIVATIONS),
        attention_bias=r.random() < 0.3,
        mlp_bias=r.random() < 0.3,
        embedding_multiplier=r.choice([1.0, 12.0, 0.5]),
        attention_multiplier=r.choice([1.0, 0.015625, 0.3]),
        residual_multiplier=r.choice([1.0, 0.22, 1.7]),
        logits_scaling=r.choice([1.0, 8.0, 0.3]),
        rope_parameters=rope(r, f, ("default", "linear")),
    )
    return f


def gpt2(r):
    heads = r.choice([1, 2, 3])
    return {
        "vocab_size": r.randint(11, 16),
        "n_positions": r.choice([16, 32]),
        "n_embd": heads * r.choice([5, 8, 12]),
        "n_layer": r.randint(1, 3),
        "n_head": heads,
        "n_inner": r.choice([None, None, 20]),
        "activation_function": r.choice(["gelu_new", "gelu_new", "gelu", "relu", "silu"]),
        "layer_norm_epsilon": r.choice([1e-5, 1e-2]),
        "scale_attn_weights": r.random() < 0.8,
        "scale_attn_by_inverse_layer_idx": r.random() < 0.3,
        "reorder_and_upcast_attn": r.random() < 0.2,
        "tie_word_embeddings": r.random() < 0.7,
        "bos_token_id": 1,
        "eos_token_id": 1,
    }


def gpt_neox(r):
    f = sizes(r)
    del f["num_key_value_heads"], f["rms_norm_eps"]
    head_dim = r.choice([8, 16])
    f["hidden_size"] = f["num_attention_heads"] * head_dim
    p = rope(r, f, ("default", "linear"))
    p["partial_rotary_factor"] = r.choice([0.25, 0.5, 1.0])
    f.update(
        hidden_act=r.choice(["gelu", "gelu", "gelu_new", "relu", "silu"]),
        layer_norm_eps=r.choice([1e-5, 1e-2]),
        use_parallel_residual=r.random() < 0.6,
        attention_bias=r.random() < 0.7,
        rope_parameters=p,
    )
    return f


def layer_normed(r, f):
    """Fields of a decoder with LayerNorms."""
    del f["rms_norm_eps"]
    f["layer_norm_eps"] = r.choice([1e-5, 1e-2])
    return f


def partly_rotated(r, f, kinds):
    """Heads of which a part is rotated."""
    head_dim = r.choice([8, 16])
    f["hidden_size"] = f["num_attention_heads"] * head_dim
    part = r.choice([0.25, 0.5, 1.0])
    f["rope_parameters"] = rope(r, {**f, "head_dim": int(head_dim * part)}, kinds)
    f["rope_parameters"]["partial_rotary_factor"] = part
    return f


PLAIN_ACTIVATIONS = ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"]


def phi(r):
    f = partly_rotated(r, layer_normed(r, sizes(r)), ("default", "linear"))
    f.update(hidden_act=r.choice(PLAIN_ACTIVATIONS), qk_layernorm=r.random() < 0.4)
    return f


def qwen2_moe(r):
    f = sizes(r)
    experts = r.choice([3, 4, 6])
    f.update(
        hidden_act=r.choice(ACTIVATIONS),
        qkv_bias=r.random() < 0.7,
        rope_parameters=rope(r, f, ("default", "yarn")),
        use_sliding_window=r.random() < 0.3,
        sliding_window=r.choice([2, 3]),
        max_window_layers=r.randint(0, 3),
        decoder_sparse_step=r.choice([1, 1, 2]),
        mlp_only_layers=r.choice([[], [], [1]]),
        num_experts=experts,
        num_experts_per_tok=r.randint(1, experts),
        moe_intermediate_size=r.choice([8, 12]),
        shared_expert_intermediate_size=r.choice([8, 20]),
        norm_topk_prob=r.random() < 0.5,
    )
    return f


def opt(r):
    heads = r.choice([1, 2, 3])
    hidden = heads * r.choice([4, 8])
    return {
        "vocab_size": r.randint(11, 16),
        "hidden_size": hidden,
        "ffn_dim": r.choice([12, 20]),
        "num_hidden_layers": r.randint(1, 3),
        "num_attention_heads": heads,
        "max_position_embeddings": r.choice([16, 32]),
        "activation_function": r.choice(["relu", "relu", "gelu", "silu"]),
        "word_embed_proj_dim": r.choice([hidden, hidden, 10]),
        "do_layer_norm_before": r.random() < 0.7,
        "_remove_final_layer_norm": r.random() < 0.2,
        "enable_bias": r.random() < 0.7,
        "layer_norm_elementwise_affine": r.random() < 0.7,
        "tie_word_embeddings": r.random() < 0.7,
    }


def gptj(r):
    heads = r.choice([1, 2, 3])
    head_dim = r.choice([4, 8, 12])
    return {
        "vocab_size": r.randint(11, 16),
        "n_positions": r.choice([16, 32]),
        "n_embd": heads * head_dim,
        "n_layer": r.randint(1, 3),
        "n_head": heads,
        "rotary_dim": r.choice([2, 4, head_dim]),
        "n_inner": r.choice([None, None, 20]),
        "activation_function": r.choice(PLAIN_ACTIVATIONS),
        "layer_norm_epsilon": r.choice([1e-5, 1e-2]),
        "tie_word_embeddings": r.random() < 0.2,
        "bos_token_id": 1,
        "eos_token_id": 1,
    }


def falcon(r):
    f = sizes(r)
    heads = f["num_attention_heads"]
    grouped = r.random() < 0.4
    f.update(
        layer_norm_epsilon=r.choice([1e-5, 1e-2]),
        num_kv_heads=f.pop("num_key_value_heads"),
        ffn_hidden_size=f.pop("intermediate_size"),
        new_decoder_architecture=grouped,
        multi_query=r.random() < 0.5,
        parallel_attn=grouped or r.random() < 0.6,
        bias=r.random() < 0.5,
        alibi=r.random() < 0.4,
        activation=r.choice(["gelu", "gelu", "relu"]),
        rope_parameters=rope(r, f, ("default", "linear")),
        bos_token_id=1,
        eos_token_id=1,
    )
    if not grouped:
        f["num_kv_heads"] = heads
    if grouped and r.random() < 0.5:
        f["num_ln_in_parallel_attn"] = r.choice([1, 2])
    del f["rms_norm_eps"]
    return f


def starcoder2(r):
    f = sizes(r)
    del f["rms_norm_eps"]
    f.update(
        hidden_act=r.choice(PLAIN_ACTIVATIONS),
        norm_epsilon=r.choice([1e-5, 1e-2]),
        use_bias=r.random() < 0.7,
        sliding_window=r.choice([None, 2, 3, 4096]),
        rope_parameters=rope(r, f, ("default", "linear", "yarn")),
        bos_token_id=1,
        eos_token_id=1,
    )
    return f


def smollm3(r):
    f = sizes(r)
    f.update(
        hidden_act=r.choice(ACTIVATIONS),
        attention_bias=r.random() < 0.3,
        mlp_bias=r.random() < 0.3,
        no_rope_layer_interval=r.choice([2, 3, 4]),
        use_sliding_window=r.random() < 0.5,
        sliding_window=r.choice([2, 3, 5]),
        rope_parameters=rope(r, f, ("default", "linear", "yarn")),
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    if r.random() < 0.5:
        f["no_rope_layers"] = [r.choice([0, 1]) for _ in range(f["num_hidden_layers"])]
    return f


def cohere(r):
    f = layer_normed(r, sizes(r))
    f.update(
        hidden_act=r.choice(ACTIVATIONS),
        attention_bias=r.random() < 0.4,
        use_qk_norm=r.random() < 0.5,
        logit_scale=r.choice([0.0625, 1.0, 0.25]),
        rope_parameters=rope(r, f, ("default", "linear")),
        bos_token_id=1,
        eos_token_id=2,
    )
    return f


def stablelm(r):
    f = partly_rotated(r, layer_normed(r, sizes(r)), ("default", "linear"))
    f.update(
        hidden_act=r.choice(ACTIVATIONS),
        use_qkv_bias=r.random() < 0.5,
        qk_layernorm=r.random() < 0.4,
        use_parallel_residual=r.random() < 0.5,
    )
    return f


def bloom(r):
    heads = r.choice([1, 2, 3, 6])
    return {
        "vocab_size": r.randint(11, 16),
        "hidden_size": heads * r.choice([4, 8]),
        "n_layer": r.randint(1, 3),
        "n_head": heads,
        "layer_norm_epsilon": r.choice([1e-5, 1e-2]),
        "apply_residual_connection_post_layernorm": r.random() < 0.4,
        "tie_word_embeddings": r.random() < 0.7,
    }


# architecture: how its config is drawn
DECODERS = {
    "LlamaForCausalLM": llama,
    "MistralForCausalLM": mistral,
    "Qwen2ForCausalLM": qwen2,
    "Qwen3ForCausalLM": qwen3,
    "GemmaForCausalLM": gemma,
    "Gemma2ForCausalLM": gemma2,
    "Gemma3ForCausalLM": gemma3,
    "Phi3ForCausalLM": phi3,
    "GPT2LMHeadModel": gpt2,
    "GPTNeoXForCausalLM": gpt_neox,
    "Olmo2ForCausalLM": olmo2,
    "GraniteForCausalLM": granite,
    "MixtralForCausalLM": mixtral,
    "Qwen3MoeForCausalLM": qwen3_moe,
    "Qwen2MoeForCausalLM": qwen2_moe,
    "PhiForCausalLM": phi,
    "OPTForCausalLM": opt,
    "GPTJForCausalLM": gptj,
    "FalconForCausalLM": falcon,
    "Starcoder2ForCausalLM": starcoder2,
    "SmolLM3ForCausalLM": smollm3,
    "CohereForCausalLM": cohere,
    "StableLmForCausalLM": stablelm,
    "BloomForCausalLM": bloom,
}
