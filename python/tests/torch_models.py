# SPDX-License-Identifier: Apache-2.0
"""Tiny random models of the real classes, with what their modules promise: one fused op per call of each."""
import collections

import torch
import transformers as tf

VOCAB, BATCH, SEQ = 131, 2, 19
Dim = torch.export.Dim
TOKENS = {"x": {0: Dim("batch", min=1, max=8), 1: Dim("seq", min=2, max=64)}}


def config(cls, **changed):
    base = dict(vocab_size=VOCAB, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2, max_position_embeddings=64)
    return cls(**{**base, **changed})


def wide(cls, **changed):
    """Configs without grouped heads."""
    base = dict(vocab_size=VOCAB, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                max_position_embeddings=64)
    return cls(**{**base, **changed})


class Call(torch.nn.Module):
    """One field of what a model returns, with inputs by position."""

    def __init__(self, model, field, names=("input_ids",), **fixed):
        super().__init__()
        self.model, self.field, self.names, self.fixed = model, field, names, fixed

    def forward(self, x, mask=None):
        given = dict(zip(self.names, (x, mask) if mask is not None else (x,)))
        return getattr(self.model(**given, **self.fixed), self.field)


def ids(n=BATCH, s=SEQ):
    return torch.randint(2, VOCAB, (n, s))


def decoder(cls, cfg):
    return lambda: (Call(cls(cfg), "logits", use_cache=False), (ids(),), TOKENS)


def encoder(cls, cfg, masked=True, **options):
    def make():
        model = cls(cfg, **options)
        if not masked:
            return Call(model, "last_hidden_state"), (ids(),), TOKENS
        mask = torch.ones(BATCH, SEQ, dtype=torch.int64)
        mask[0, -5:] = 0
        return Call(model, "last_hidden_state", ("input_ids", "attention_mask")), (ids(), mask), {**TOKENS, "mask": TOKENS["x"]}
    return make


class DiTBlock(torch.nn.Module):
    """adaLN-Zero of Peebles and Xie, "Scalable Diffusion Models with Transformers", 2022."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (torch.nn.LayerNorm(width, elementwise_affine=False, eps=1e-6) for _ in range(2))
        self.qkv, self.proj = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(approximate="tanh"),
                                       torch.nn.Linear(4 * width, width))
        self.ada = torch.nn.Sequential(torch.nn.SiLU(), torch.nn.Linear(width, 6 * width))

    def forward(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.ada(c).unsqueeze(1).chunk(6, dim=2)
        y = self.norm1(x) * (1 + scale1) + shift1
        n, t, d = y.shape
        q, k, v = self.qkv(y).reshape(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, d)
        x = x + gate1 * self.proj(y)
        return x + gate2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)


class DiT(torch.nn.Module):
    def __init__(self, width=48, depth=2, heads=4):
        super().__init__()
        self.patch = torch.nn.Conv2d(4, width, 2, 2)
        self.positions = torch.nn.Parameter(torch.randn(1, 64, width) * 0.02)
        self.time = torch.nn.Sequential(torch.nn.Linear(32, width), torch.nn.SiLU(), torch.nn.Linear(width, width))
        self.label = torch.nn.Embedding(10, width)
        self.blocks = torch.nn.ModuleList([DiTBlock(width, heads) for _ in range(depth)])
        self.norm = torch.nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.ada = torch.nn.Sequential(torch.nn.SiLU(), torch.nn.Linear(width, 2 * width))
        self.out = torch.nn.Linear(width, 2 * 2 * 8)

    def forward(self, x, t, y):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.positions
        angles = t[:, None].float() * torch.exp(-9.21034 * torch.arange(16, dtype=torch.float32) / 16)[None]
        c = self.time(torch.cat([torch.cos(angles), torch.sin(angles)], -1)) + self.label(y)
        for block in self.blocks:
            x = block(x, c)
        shift, scale = self.ada(c).chunk(2, dim=1)
        x = self.out(self.norm(x) * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1))
        n = x.shape[0]
        return torch.einsum("nhwpqc->nchpwq", x.reshape(n, 8, 8, 2, 2, 8)).reshape(n, 8, 16, 16)


def dit():
    return DiT(), (torch.randn(2, 4, 16, 16), torch.tensor([3, 700]), torch.tensor([1, 5])), None


def vit():
    cfg = tf.ViTConfig(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, image_size=16,
                       patch_size=4)
    return Call(tf.ViTModel(cfg, add_pooling_layer=False), "last_hidden_state", ("pixel_values",)), \
        (torch.randn(BATCH, 3, 16, 16),), {"x": {0: Dim("batch", min=1, max=8)}}


def whisper():
    cfg = tf.WhisperConfig(d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                           decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, num_mel_bins=20,
                           max_source_positions=30, max_target_positions=32, vocab_size=VOCAB, pad_token_id=0,
                           bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    return Call(tf.WhisperModel(cfg).encoder, "last_hidden_state", ("input_features",)), \
        (torch.randn(BATCH, 20, 60),), {"x": {0: Dim("batch", min=1, max=8)}}


WINDOW = dict(sliding_window=5)
GPT = dict(vocab_size=VOCAB, n_embd=48, n_layer=2, n_head=4, n_positions=64)
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
MODELS = {
    "llama": decoder(tf.LlamaForCausalLM, config(tf.LlamaConfig)),
    "llama-mqa-tied": decoder(tf.LlamaForCausalLM,
                              config(tf.LlamaConfig, num_key_value_heads=1, tie_word_embeddings=True)),
    "llama3-rope": decoder(tf.LlamaForCausalLM, config(tf.LlamaConfig, rope_scaling=LLAMA3)),
    "mistral": decoder(tf.MistralForCausalLM, config(tf.MistralConfig, **WINDOW)),
    "qwen2": decoder(tf.Qwen2ForCausalLM, config(tf.Qwen2Config)),
    "qwen3": decoder(tf.Qwen3ForCausalLM, config(tf.Qwen3Config, head_dim=16)),
    "gemma2": decoder(tf.Gemma2ForCausalLM,
                      config(tf.Gemma2Config, head_dim=16, query_pre_attn_scalar=16, **WINDOW)),
    "gemma3": decoder(tf.Gemma3ForCausalLM, config(tf.Gemma3TextConfig, head_dim=16, query_pre_attn_scalar=16,
                                                   num_hidden_layers=6, **WINDOW)),
    "phi3": decoder(tf.Phi3ForCausalLM, config(tf.Phi3Config, pad_token_id=0, bos_token_id=1, eos_token_id=2)),
    "gpt2": decoder(tf.GPT2LMHeadModel, tf.GPT2Config(**GPT)),
    "gpt-neox": decoder(tf.GPTNeoXForCausalLM, wide(tf.GPTNeoXConfig)),
    "gpt-j": decoder(tf.GPTJForCausalLM, tf.GPTJConfig(rotary_dim=8, **GPT)),
    "bert": encoder(tf.BertModel, wide(tf.BertConfig), add_pooling_layer=False),
    "t5-encoder": encoder(tf.T5EncoderModel,
                          tf.T5Config(vocab_size=VOCAB, d_model=48, d_kv=12, d_ff=96, num_layers=2, num_heads=4,
                                      feed_forward_proj="gated-gelu", dropout_rate=0.0)),
    "clip-text": encoder(tf.CLIPTextModel, wide(tf.CLIPTextConfig, pad_token_id=1, bos_token_id=0, eos_token_id=2),
                         masked=False),
    "vit": vit, "whisper-encoder": whisper, "dit": dit,
}
# Those whose modules are not called once a layer.
MIXTURES = {"mixtral": decoder(tf.MixtralForCausalLM,
                               config(tf.MixtralConfig, num_local_experts=4, num_experts_per_tok=2))}

ATTENTION = {"BertSelfAttention", "T5Attention", "GPT2Attention", "GPTNeoXAttention", "DiTBlock"}
AROUND = {"BertAttention", "T5LayerSelfAttention", "BertSdpaSelfAttention"}
GATES = ("LlamaMLP", "MistralMLP", "Qwen2MLP", "Qwen3MLP", "Gemma2MLP", "Gemma3MLP", "Phi3MLP", "T5DenseGatedActDense")
GROUPS = {"attention": ["attention"],
          "norm": ["rms_norm", "layer_norm", "add_norm", "norm_rope", "adaln_modulate"],
          "rope": ["rope", "norm_rope", "rope_append"], "gate": ["silu_gate"], "linear": ["linear"]}


def expected(model, args):
    """How often a forward pass calls each kind of module."""
    calls = []
    hooks = [m.register_forward_hook(lambda m, i, o: calls.append(type(m).__name__)) for m in model.modules()]
    model(*args)
    for hook in hooks:
        hook.remove()
    c = collections.Counter()
    for name in calls:
        # Conv2d: embeddings of patches, whose stride is their size.
        c["linear"] += name in ("Linear", "Conv1D", "Conv2d", "NonDynamicallyQuantizableLinear")
        c["norm"] += name.endswith("RMSNorm") or name in ("T5LayerNorm", "LayerNorm")
        c["gate"] += name in GATES
        c["attention"] += name in ATTENTION or name.endswith("Attention") and name not in AROUND | ATTENTION
    if any(n.endswith("RotaryEmbedding") for n in calls) or "GPTJAttention" in calls:
        c["rope"] = 2 * c["attention"]
    return c


def made(name, attention=None):
    """(module, arguments, dynamic shapes) with weights that are not all ones and zeros. `attention`: transformers'
    implementation."""
    torch.manual_seed(7)
    model, args, shapes = {**MODELS, **MIXTURES}[name]()
    for part in model.modules():
        if attention and isinstance(part, tf.PreTrainedModel):
            part.set_attn_implementation(attention)
    return spread(model), args, shapes


def spread(model):
    """The model with weights that are not all ones and zeros."""
    model = model.eval().float()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * (0.1 if p.dim() == 1 else 0.05))
    return model


def error(got, want):
    """The largest, relative to the largest value."""
    return ((got - want).abs().max() / want.abs().max()).item()
