# SPDX-License-Identifier: Apache-2.0
"""Tiny random models of the real classes, with what their modules promise: one fused op per call of each."""
import collections
import dataclasses

import torch
import transformers as tf

Dim = torch.export.Dim
TOKENS = {"x": {0: Dim("batch", min=1, max=8), 1: Dim("seq", min=2, max=64)}}


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the models are; the tests' unless said otherwise."""
    width: int = 48
    inner: int = 96
    layers: int = 2
    heads: int = 4
    groups: int = 2  # of heads that share keys and values
    head: int = 16  # of models whose heads are not width / heads wide
    rotary: int = 8  # of models that turn a part of a head
    vocab: int = 131
    positions: int = 64
    window: int = 5
    batch: int = 2
    seq: int = 19
    image: int = 16
    mels: int = 20
    frames: int = 60


TINY = Size()
VOCAB, BATCH, SEQ = TINY.vocab, TINY.batch, TINY.seq


def wide(cls, size=TINY, **changed):
    """Configs without grouped heads."""
    base = dict(vocab_size=size.vocab, hidden_size=size.width, intermediate_size=size.inner, num_hidden_layers=size.layers,
                num_attention_heads=size.heads, max_position_embeddings=size.positions)
    return cls(**{**base, **changed})


def config(cls, size=TINY, **changed):
    return wide(cls, size, **{"num_key_value_heads": size.groups, **changed})


class Call(torch.nn.Module):
    """One field of what a model returns, with inputs by position."""

    def __init__(self, model, field, names=("input_ids",), **fixed):
        super().__init__()
        self.model, self.field, self.names, self.fixed = model, field, names, fixed

    def forward(self, x, mask=None):
        given = dict(zip(self.names, (x, mask) if mask is not None else (x,)))
        return getattr(self.model(**given, **self.fixed), self.field)


class Step(torch.nn.Module):
    """Tokens at given positions on transformers' StaticCache, whose tensors are buffers of the module."""

    def __init__(self, model, length):
        super().__init__()
        self.model, self.layers = model, model.config.num_hidden_layers
        heads, width = model.config.num_key_value_heads, model.config.head_dim
        for i in range(self.layers):
            for kind in ("keys", "values"):
                self.register_buffer(f"{kind}_{i}", torch.zeros(1, heads, length, width, dtype=model.dtype))
            self.register_buffer(f"length_{i}", torch.zeros((), dtype=torch.int64))
        self.cache = tf.StaticCache(config=model.config, max_cache_len=length)
        self.cache.early_initialization(1, heads, width, model.dtype, torch.device("cpu"))

    def forward(self, x):
        for i, layer in enumerate(self.cache.layers):
            layer.keys, layer.values = getattr(self, f"keys_{i}"), getattr(self, f"values_{i}")
            layer.cumulative_length = getattr(self, f"length_{i}")
        return self.model(input_ids=x, past_key_values=self.cache, use_cache=True).logits[:, -1]


def ids(n=BATCH, s=SEQ, vocab=VOCAB):
    return torch.randint(2, vocab, (n, s))


def decoder(cls, cfg, size=TINY):
    return lambda: (Call(cls(cfg), "logits", use_cache=False), (ids(size.batch, size.seq, size.vocab),), TOKENS)


def encoder(cls, cfg, size=TINY, masked=True, **options):
    def make():
        model, x = cls(cfg, **options), ids(size.batch, size.seq, size.vocab)
        if not masked:
            return Call(model, "last_hidden_state"), (x,), TOKENS
        mask = torch.ones(size.batch, size.seq, dtype=torch.int64)
        mask[0, -5:] = 0
        return Call(model, "last_hidden_state", ("input_ids", "attention_mask")), (x, mask), {**TOKENS, "mask": TOKENS["x"]}
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
    def __init__(self, width, depth, heads, image):
        super().__init__()
        self.side = image // 2
        self.patch = torch.nn.Conv2d(4, width, 2, 2)
        self.positions = torch.nn.Parameter(torch.randn(1, self.side**2, width) * 0.02)
        self.time = torch.nn.Sequential(torch.nn.Linear(32, width), torch.nn.SiLU(), torch.nn.Linear(width, width))
        self.label = torch.nn.Embedding(10, width)
        self.blocks = torch.nn.ModuleList([DiTBlock(width, heads) for _ in range(depth)])
        self.norm = torch.nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.ada = torch.nn.Sequential(torch.nn.SiLU(), torch.nn.Linear(width, 2 * width))
        self.out = torch.nn.Linear(width, 2 * 2 * 8)

    def forward(self, x, t, y):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.positions
        angles = t[:, None].float() * torch.exp(-9.21034 * torch.arange(16, dtype=torch.float32) / 16)[None]
        c = self.time(torch.cat([torch.cos(angles), torch.sin(angles)], -1).to(x.dtype)) + self.label(y)
        for block in self.blocks:
            x = block(x, c)
        shift, scale = self.ada(c).chunk(2, dim=1)
        x = self.out(self.norm(x) * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1))
        n, s = x.shape[0], self.side
        return torch.einsum("nhwpqc->nchpwq", x.reshape(n, s, s, 2, 2, 8)).reshape(n, 8, 2 * s, 2 * s)


def dit(size):
    return DiT(size.width, size.layers, size.heads, size.image), \
        (torch.randn(size.batch, 4, size.image, size.image), torch.arange(size.batch) * 697 + 3,
         torch.arange(size.batch) * 4 + 1), None


def vit(size):
    cfg = tf.ViTConfig(hidden_size=size.width, num_hidden_layers=size.layers, num_attention_heads=size.heads,
                       intermediate_size=size.inner, image_size=size.image, patch_size=4)
    return Call(tf.ViTModel(cfg, add_pooling_layer=False), "last_hidden_state", ("pixel_values",)), \
        (torch.randn(size.batch, 3, size.image, size.image),), {"x": {0: Dim("batch", min=1, max=8)}}


def whisper(size):
    cfg = tf.WhisperConfig(d_model=size.width, encoder_layers=size.layers, decoder_layers=size.layers,
                           encoder_attention_heads=size.heads, decoder_attention_heads=size.heads,
                           encoder_ffn_dim=size.inner, decoder_ffn_dim=size.inner, num_mel_bins=size.mels,
                           max_source_positions=size.frames // 2, max_target_positions=32, vocab_size=size.vocab,
                           pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    return Call(tf.WhisperModel(cfg).encoder, "last_hidden_state", ("input_features",)), \
        (torch.randn(size.batch, size.mels, size.frames),), {"x": {0: Dim("batch", min=1, max=8)}}


def models_of(size):
    """What makes each model: a function without arguments that gives (module, arguments, dynamic shapes)."""
    gpt = dict(vocab_size=size.vocab, n_embd=size.width, n_layer=size.layers, n_head=size.heads, n_positions=size.positions)
    window, head = dict(sliding_window=size.window), dict(head_dim=size.head)
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": size.positions // 2}

    def decodes(cls, cfg, **changed):
        return decoder(cls, config(cfg, size, **changed), size)

    return {
        "llama": decodes(tf.LlamaForCausalLM, tf.LlamaConfig),
        "llama-mqa-tied": decodes(tf.LlamaForCausalLM, tf.LlamaConfig, num_key_value_heads=1, tie_word_embeddings=True),
        "llama3-rope": decodes(tf.LlamaForCausalLM, tf.LlamaConfig, rope_scaling=llama3),
        "mistral": decodes(tf.MistralForCausalLM, tf.MistralConfig, **window),
        "qwen2": decodes(tf.Qwen2ForCausalLM, tf.Qwen2Config),
        "qwen3": decodes(tf.Qwen3ForCausalLM, tf.Qwen3Config, **head),
        "gemma2": decodes(tf.Gemma2ForCausalLM, tf.Gemma2Config, query_pre_attn_scalar=size.head, **head, **window),
        "gemma3": decodes(tf.Gemma3ForCausalLM, tf.Gemma3TextConfig, query_pre_attn_scalar=size.head,
                          num_hidden_layers=6, **head, **window),
        "phi3": decodes(tf.Phi3ForCausalLM, tf.Phi3Config, pad_token_id=0, bos_token_id=1, eos_token_id=2),
        "gpt2": decoder(tf.GPT2LMHeadModel, tf.GPT2Config(**gpt), size),
        "gpt-neox": decoder(tf.GPTNeoXForCausalLM, wide(tf.GPTNeoXConfig, size), size),
        "gpt-j": decoder(tf.GPTJForCausalLM, tf.GPTJConfig(rotary_dim=size.rotary, **gpt), size),
        "bert": encoder(tf.BertModel, wide(tf.BertConfig, size), size, add_pooling_layer=False),
        "t5-encoder": encoder(tf.T5EncoderModel, tf.T5Config(
            vocab_size=size.vocab, d_model=size.width, d_kv=size.width // size.heads, d_ff=size.inner,
            num_layers=size.layers, num_heads=size.heads, feed_forward_proj="gated-gelu", dropout_rate=0.0), size),
        "clip-text": encoder(tf.CLIPTextModel, wide(tf.CLIPTextConfig, size, pad_token_id=1, bos_token_id=0,
                                                    eos_token_id=2), size, masked=False),
        "vit": lambda: vit(size), "whisper-encoder": lambda: whisper(size), "dit": lambda: dit(size),
    }


MODELS = models_of(TINY)
# Those whose modules are not called once a layer.
MIXTURES = {"mixtral": decoder(tf.MixtralForCausalLM,
                               config(tf.MixtralConfig, num_local_experts=4, num_experts_per_tok=2))}

ATTENTION = {"BertSelfAttention", "T5Attention", "GPT2Attention", "GPTNeoXAttention", "DiTBlock"}
AROUND = {"BertAttention", "T5LayerSelfAttention", "BertSdpaSelfAttention"}
GATES = ("LlamaMLP", "MistralMLP", "Qwen2MLP", "Qwen3MLP", "Gemma2MLP", "Gemma3MLP", "Phi3MLP", "T5DenseGatedActDense")
# Of what a linear op gives: Whisper's GELUs of convolutions are functions.
EPILOGUES = ("NewGELUActivation", "GELUActivation", "GELU")
GROUPS = {"attention": ["attention"],
          "norm": ["rms_norm", "layer_norm", "add_norm", "norm_rope", "adaln_modulate"],
          "rope": ["rope", "norm_rope", "rope_append"], "gate": ["glu"], "linear": ["linear"]}


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
    c["epilogue"] = sum(calls.count(n) for n in EPILOGUES) - calls.count("T5DenseGatedActDense")  # a gate's
    if any(n.endswith("RotaryEmbedding") for n in calls) or "GPTJAttention" in calls:
        c["rope"] = 2 * c["attention"]
    return c


def made(name, attention=None, size=TINY):
    """(module, arguments, dynamic shapes) with weights that are not all ones and zeros. `attention`: transformers'
    implementation."""
    torch.manual_seed(7)
    model, args, shapes = {**models_of(size), **MIXTURES}[name]()
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
