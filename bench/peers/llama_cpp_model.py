# SPDX-License-Identifier: Apache-2.0
"""Writes a Llama configuration with random weights as a GGUF file, which llama.cpp runs.

Usage: llama_cpp_model.py CONFIG.json FORMAT FILE.gguf

`bf16` and `f32` are stored as they are, `int8` as Q8_0, `int4` as Q4_0 with an embedding and head of
Q8_0: a scale for 32 elements in both. The tokenizer has a word for every id.
"""

import argparse
import json
from pathlib import Path

import gguf
import numpy as np

import peer

KINDS = {
    "bf16": gguf.GGMLQuantizationType.BF16,
    "f32": gguf.GGMLQuantizationType.F32,
    "int8": gguf.GGMLQuantizationType.Q8_0,
    "int4": gguf.GGMLQuantizationType.Q4_0,
}
NAMES = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output"}
NAMES |= {name: f"ffn_{name}" for name in ("gate", "up", "down")}
SOME = 1 << 20  # random elements, repeated


def add_weight(writer, name, n, k, kind):
    some = gguf.quants.quantize(peer.random_f32(SOME // k, k), kind)
    rows = np.resize(some, (n, some.shape[1]))
    writer.add_tensor(name, rows, raw_dtype=kind)


def add_gain(writer, name, size):
    writer.add_tensor(name, np.ones(size, np.float32))


def write(model, form, path):
    writer = gguf.GGUFWriter(path, "llama")
    hidden, vocab = model["hidden_size"], model["vocab_size"]
    layer, size = peer.sizes(model)
    writer.add_context_length(model["max_position_embeddings"])
    writer.add_embedding_length(hidden)
    writer.add_block_count(model["num_hidden_layers"])
    writer.add_feed_forward_length(model["intermediate_size"])
    writer.add_head_count(model["num_attention_heads"])
    writer.add_head_count_kv(model["num_key_value_heads"])
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_rope_dimension_count(size)
    writer.add_rope_freq_base(model["rope_theta"])
    writer.add_layer_norm_rms_eps(model["rms_norm_eps"])
    writer.add_vocab_size(vocab)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([f"▁w{index}" for index in range(vocab)])
    writer.add_token_scores([0.0] * vocab)
    writer.add_token_types([gguf.TokenType.NORMAL] * vocab)
    kind = KINDS[form]
    head = KINDS["int8"] if form == "int4" else kind
    add_weight(writer, "token_embd.weight", vocab, hidden, head)
    if not model.get("tie_word_embeddings"):
        add_weight(writer, "output.weight", vocab, hidden, head)
    add_gain(writer, "output_norm.weight", hidden)
    for index in range(model["num_hidden_layers"]):
        for name, (n, k) in layer.items():
            add_weight(writer, f"blk.{index}.{NAMES[name]}.weight", n, k, kind)
        for name in ("attn_norm", "ffn_norm"):
            add_gain(writer, f"blk.{index}.{name}.weight", hidden)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("format", choices=KINDS)
    parser.add_argument("file")
    arguments = parser.parse_args()
    write(json.loads(Path(arguments.config).read_text()), arguments.format, arguments.file)


if __name__ == "__main__":
    main()
