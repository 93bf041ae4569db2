# SPDX-License-Identifier: Apache-2.0
"""Decode and prefill of Hugging Face's Llama with random weights, eager and compiled."""

import time

import torch
import transformers
from models import config_of, decode_bytes, prefill_flops
from torch_measure import DEVICE, run_ms, synchronize, timed
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

SHAPE = ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"]
SHAPE += ["num_key_value_heads", "head_dim", "vocab_size", "tie_word_embeddings"]
SHAPE += ["max_position_embeddings", "rms_norm_eps"]


class Models:
    """One model at a time: the largest takes 16 GB."""

    def __init__(self, tiny):
        self.tiny, self.name, self.model = tiny, None, None

    def config(self, name):
        config = config_of(name)
        if self.tiny:  # tries the code where there is no GPU
            config.update(num_hidden_layers=2, vocab_size=512, intermediate_size=256)
        return config

    def get(self, name):
        if self.name != name:
            self.name = self.model = None
            if DEVICE == "cuda":
                torch.cuda.empty_cache()
            self.model = build(self.config(name))
            self.name = name
        return self.model


def build(shape):
    transformers.logging.set_verbosity_error()
    rope = {"rope_type": "default", "rope_theta": shape["rope_theta"]}
    config = LlamaConfig(attn_implementation="sdpa", **{key: shape[key] for key in SHAPE})
    if hasattr(config, "rope_parameters"):
        config.rope_parameters = rope
    else:
        config.rope_theta = rope["rope_theta"]
    torch.manual_seed(1)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(DEVICE):
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    if shape["tie_word_embeddings"]:
        model.lm_head.weight = model.model.embed_tokens.weight
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 1:
                weight.fill_(1.0)
            else:
                weight.normal_(0, 0.02)
    return model.eval()


def rewind(cache, length):
    """Newer caches count their tokens themselves; back to `length`, so that the context stays."""
    for layer in getattr(cache, "layers", []):
        counted = getattr(layer, "cumulative_length", None)
        if torch.is_tensor(counted):
            counted.fill_(length)
        elif isinstance(counted, int):
            layer.cumulative_length = length


def decode_one(book, models, name, compiled, context, key):
    model = models.get(name)
    torch._dynamo.reset()
    cache = StaticCache(config=model.config, max_cache_len=context + 64)
    vocabulary = models.config(name)["vocab_size"]
    ids = torch.randint(0, vocabulary, (1, context), device=DEVICE)

    def call(function, tokens, positions):
        return function(
            input_ids=tokens,
            past_key_values=cache,
            use_cache=True,
            position_ids=positions[None],
            logits_to_keep=1,
        )

    with torch.no_grad():
        call(model.forward, ids, torch.arange(context, device=DEVICE))
        token, position = ids[:, :1].clone(), torch.tensor([context], device=DEVICE)
        step = torch.compile(model.forward, mode="reduce-overhead") if compiled else model.forward

        def one():
            rewind(cache, context)
            torch.compiler.cudagraph_mark_step_begin()
            call(step, token, position)

        def twenty():
            for _ in range(20):
                one()

        begin = time.time()
        for _ in range(3):
            one()
        synchronize()
        first = time.time() - begin
        result = timed(one, repetitions=21)
        # As a user sees it: a run of tokens without waiting.
        begin = time.perf_counter()
        run_ms(twenty)
        result["wall_ms"] = (time.perf_counter() - begin) / 20 * 1e3
    read = decode_bytes(models.config(name), context)
    result["tokens_per_second"] = 1e3 / min(result["ms"], result["wall_ms"])
    result["streamed_bytes"] = read
    result["gbps"] = read / result["ms"] / 1e6
    result["first_calls_s"] = round(first, 1)
    book.put(key, result)


def decode(book, models, name, compiled):
    needed = (75 if name == "8B" else 40) if compiled else 10
    for context in (16, 32) if models.tiny else (128, 4096):
        key = f"decode_{name}_{'compiled' if compiled else 'eager'}_ctx{context}"
        book.run(key, needed, lambda: decode_one(book, models, name, compiled, context, key))


def prefill_one(book, models, name, function, tokens, key):
    ids = torch.randint(0, models.config(name)["vocab_size"], (1, tokens), device=DEVICE)
    with torch.no_grad():
        begin = time.time()
        function(input_ids=ids, use_cache=False, logits_to_keep=1)
        synchronize()
        first = time.time() - begin
        result = timed(
            lambda: function(input_ids=ids, use_cache=False, logits_to_keep=1), warm_up=2
        )
    result["tflops"] = prefill_flops(models.config(name), tokens) / result["ms"] / 1e9
    result["tokens_per_second"] = tokens / result["ms"] * 1e3
    result["first_call_s"] = round(first, 1)
    book.put(key, result)


def prefill(book, models, name, compiled):
    model = models.get(name)
    function = torch.compile(model.forward, dynamic=False) if compiled else model.forward
    needed = (60 if name == "8B" else 40) if compiled else 8
    for tokens in (16, 32) if models.tiny else (2048, 512, 8192):
        key = f"prefill_{name}_{'compiled' if compiled else 'eager'}_{tokens}"
        book.run(key, needed, lambda: prefill_one(book, models, name, function, tokens, key))
