# SPDX-License-Identifier: Apache-2.0
"""Small random configs and inputs of the encoder families."""

import torch

BATCH = 2


def sizes(r):
    heads = r.choice([1, 2, 3])
    return {
        "vocab_size": r.randint(11, 16),
        "hidden_size": heads * r.choice([3, 4, 8]),
        "intermediate_size": r.choice([12, 20]),
        "num_hidden_layers": r.randint(1, 3),
        "num_attention_heads": heads,
        "max_position_embeddings": r.choice([16, 24]),
        "hidden_act": r.choice(["gelu", "gelu", "gelu_new", "relu", "silu"]),
        "layer_norm_eps": r.choice([1e-12, 1e-5, 1e-2]),
        "type_vocab_size": r.choice([1, 2, 3]),
    }


def padded_ids(r, vocab, pad):
    """ids and their mask; texts end in padding."""
    length = r.randint(4, 6)
    ids = torch.full((BATCH, length), pad)
    mask = torch.zeros((BATCH, length), dtype=torch.long)
    for b in range(BATCH):
        count = length if b == 0 else r.randint(1, length)
        ids[b, :count] = torch.tensor([r.choice([i for i in range(vocab) if i != pad]) for _ in range(count)])
        mask[b, :count] = 1
    return ids, mask


def bert(r):
    f = sizes(r)
    ids, mask = padded_ids(r, f["vocab_size"], 0)
    types = torch.tensor([[r.randrange(f["type_vocab_size"]) for _ in row] for row in ids])
    return f, {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def roberta(r):
    f = sizes(r)
    f.update(pad_token_id=r.choice([0, 1, 1, 3]), bos_token_id=0, eos_token_id=2)
    ids, mask = padded_ids(r, f["vocab_size"], f["pad_token_id"])
    return f, {"input_ids": ids, "attention_mask": mask}


def t5(r):
    heads = r.choice([1, 2, 3])
    f = {
        "vocab_size": r.randint(11, 16),
        "d_model": r.choice([8, 12]),
        "d_kv": r.choice([4, 5]),
        "d_ff": r.choice([12, 20]),
        "num_layers": r.randint(1, 2),
        "num_decoder_layers": r.randint(1, 2),
        "num_heads": heads,
        "relative_attention_num_buckets": r.choice([4, 8, 32]),
        "relative_attention_max_distance": r.choice([20, 128]),
        "layer_norm_epsilon": r.choice([1e-6, 1e-2]),
        "feed_forward_proj": r.choice(["relu", "gated-gelu", "gated-silu", "gelu"]),
        "tie_word_embeddings": r.random() < 0.5,
        "decoder_start_token_id": 0,
    }
    ids, mask = padded_ids(r, f["vocab_size"], 0)
    target = torch.tensor([[r.randrange(f["vocab_size"]) for _ in range(5)] for _ in range(BATCH)])
    return f, {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": target}


def bart(r):
    side = lambda: {"layers": r.randint(1, 2), "attention_heads": r.choice([1, 2, 4]),
                    "ffn_dim": r.choice([12, 20])}  # fmt: skip
    f = {f"{name}_{key}": n for name in ("encoder", "decoder") for key, n in side().items()}
    f.update(
        vocab_size=r.randint(11, 16),
        d_model=r.choice([8, 16]),
        max_position_embeddings=r.choice([8, 16]),
        activation_function=r.choice(["gelu", "gelu", "relu", "gelu_new"]),
        scale_embedding=r.random() < 0.5,
    )
    ids, mask = padded_ids(r, f["vocab_size"], 1)
    target = torch.tensor([[r.randrange(f["vocab_size"]) for _ in range(5)] for _ in range(BATCH)])
    return f, {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": target}


def vit(r):
    heads = r.choice([1, 2, 3])
    channels, patch = r.choice([1, 3]), r.choice([2, 3])
    f = {
        "hidden_size": heads * r.choice([4, 8]),
        "intermediate_size": r.choice([12, 20]),
        "num_hidden_layers": r.randint(1, 2),
        "num_attention_heads": heads,
        "hidden_act": r.choice(["gelu", "gelu_new", "relu"]),
        "layer_norm_eps": r.choice([1e-12, 1e-2]),
        "qkv_bias": r.random() < 0.6,
        "image_size": patch * r.choice([2, 3]),
        "patch_size": patch,
        "num_channels": channels,
        "num_labels": r.randint(2, 5),
    }
    generator = torch.Generator().manual_seed(r.randrange(1 << 30))
    size = (BATCH, channels, f["image_size"], f["image_size"])
    return f, {"pixel_values": torch.randn(size, generator=generator)}


# architecture: how its config and inputs are drawn
ENCODERS = {
    "BertModel": bert,
    "BertForMaskedLM": bert,
    "RobertaModel": roberta,
    "RobertaForMaskedLM": roberta,
    "T5ForConditionalGeneration": t5,
    "BartForConditionalGeneration": bart,
    "ViTModel": vit,
    "ViTForImageClassification": vit,
}
