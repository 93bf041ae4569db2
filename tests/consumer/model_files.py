# SPDX-License-Identifier: Apache-2.0
"""Files that the pages speak of and that nobody has to download: models of numbers that mean nothing."""
import json
import pathlib
import shutil
import struct

TOKENIZERS = pathlib.Path(__file__).resolve().parent.parent / "golden/tokenizer"
CHAT_TEMPLATE = ("{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}")


def write_safetensors(path, tensors):
    """`tensors`: name to shape; all elements are 0.01 in f32."""
    header, at = {}, 0
    for name, shape in tensors.items():
        size = 4
        for dim in shape:
            size *= dim
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + struct.pack("<f", 0.01) * (at // 4))


def write_folder(folder, config, weights_of, tokenizer=None):
    """A Hugging Face folder; `weights_of` tells the weights of a config.json, as `lathe inspect --json` does."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors",
                      {w["name"]: w["shape"] for w in weights_of(folder / "config.json")})
    if tokenizer:
        shutil.copy(TOKENIZERS / tokenizer, folder / "tokenizer.json")


def write_minilm(folder, weights_of):
    write_folder(folder, {
        "architectures": ["BertModel"], "model_type": "bert", "vocab_size": 8000, "hidden_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 16,
        "type_vocab_size": 2, "hidden_act": "gelu"}, weights_of)


def write_t5(folder, weights_of):
    words = json.loads((TOKENIZERS / "t5.json").read_text())
    size = 1 + max([i for i, _ in enumerate(words["model"]["vocab"])] + [t["id"] for t in words["added_tokens"]])
    write_folder(folder, {
        "architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "vocab_size": size, "d_model": 8,
        "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2, "feed_forward_proj": "relu",
        "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}, weights_of, "t5.json")


def write_chat_model(folder, stories):
    """The story model with a template, which it was not trained with."""
    shutil.copytree(stories, folder)
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "chat_template": CHAT_TEMPLATE}))


def write_ids(path, ids):
    """A .npy of i64 [1, len(ids)]."""
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': (1, {len(ids)}), }}".encode().ljust(117) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(ids)}q", *ids))


def write_onnx(path, vocabulary=16, width=8):
    """y = Softmax(Gather(table, input_ids)): one message after the other, as onnx.proto has them."""
    def varint(n):
        return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])

    def number(field, n):
        return varint(field << 3) + varint(n)

    def message(field, *parts):
        data = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
        return varint(field << 3 | 2) + varint(len(data)) + data

    def value(field, name, kind, *dims):  # a ValueInfoProto: a dim is a number or a name
        sizes = [message(1, number(1, d) if isinstance(d, int) else message(2, d)) for d in dims]
        return message(field, message(1, name), message(2, message(1, number(1, kind), message(2, *sizes))))

    def node(op, inputs, output):
        return message(1, *[message(1, i) for i in inputs], message(2, output), message(4, op))

    f32, i64 = 1, 7
    table = message(5, number(1, vocabulary), number(1, width), number(2, f32), message(8, "table"),
                    message(9, struct.pack("<f", 0.01) * (vocabulary * width)))
    graph = message(7, node("Gather", ["table", "input_ids"], "x"), node("Softmax", ["x"], "y"), message(2, "page"), table,
                    value(11, "input_ids", i64, 1, "seq"), value(12, "y", f32, 1, "seq", width))
    path.write_bytes(number(1, 8) + graph + message(8, number(2, 17)))
