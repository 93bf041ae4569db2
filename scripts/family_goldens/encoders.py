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


def sides(r):
    """Sizes of an encoder and of a decoder."""
    side = lambda: {"layers": r.randint(1, 2), "attention_heads": r.choice([1, 2, 4]),
                    "ffn_dim": r.choice([12, 20])}  # fmt: skip
    return {f"{name}_{key}": n for name in ("encoder", "decoder") for key, n in side().items()}


def targets(r, vocab):
    return torch.tensor([[r.randrange(vocab) for _ in range(5)] for _ in range(BATCH)])


def bart(r):
    f = sides(r)
    f.update(
        vocab_size=r.randint(11, 16),
        d_model=r.choice([8, 16]),
        max_position_embeddings=r.choice([16, 24]),
        activation_function=r.choice(["gelu", "gelu", "relu", "gelu_new"]),
        scale_embedding=r.random() < 0.5,
        forced_bos_token_id=r.choice([None, 0, 5]),
        forced_eos_token_id=None,
    )
    ids, mask = padded_ids(r, f["vocab_size"], 1)
    return f, {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": targets(r, f["vocab_size"])}


def marian(r):
    f = sides(r)
    vocab, own = r.randint(11, 16), r.random() < 0.4
    target = r.randint(vocab, 18) if own else vocab
    f.update(
        vocab_size=vocab,
        d_model=r.choice([8, 16]),
        max_position_embeddings=r.choice([16, 24]),
        activation_function=r.choice(["swish", "swish", "relu", "gelu"]),
        scale_embedding=r.random() < 0.5,
        share_encoder_decoder_embeddings=not own,
        tie_word_embeddings=not own or r.random() < 0.5,
        pad_token_id=vocab - 1,
        eos_token_id=0,
        decoder_start_token_id=vocab - 1,
        forced_eos_token_id=None,
    )
    if own:
        f["decoder_vocab_size"] = target
    ids, mask = padded_ids(r, vocab, vocab - 1)
    return f, {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": targets(r, target)}


def whisper(r):
    f = sides(r)
    f.update(
        vocab_size=r.randint(11, 16),
        d_model=r.choice([8, 16]),
        num_mel_bins=r.choice([3, 5]),
        max_source_positions=r.choice([4, 7]),
        max_target_positions=r.choice([16, 24]),
        activation_function=r.choice(["gelu", "gelu", "relu"]),
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
        begin_suppress_tokens=None,
    )
    generator = torch.Generator().manual_seed(r.randrange(1 << 30))
    size = (BATCH, f["num_mel_bins"], 2 * f["max_source_positions"])
    features = torch.randn(size, generator=generator)
    return f, {"input_features": features, "decoder_input_ids": targets(r, f["vocab_size"])}


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


def distilbert(r):
    heads = r.choice([1, 2, 3])
    f = {
        "vocab_size": r.randint(11, 16),
        "dim": heads * r.choice([3, 4, 8]),
        "hidden_dim": r.choice([12, 20]),
        "n_layers": r.randint(1, 3),
        "n_heads": heads,
        "max_position_embeddings": r.choice([16, 24]),
        "activation": r.choice(["gelu", "gelu", "relu"]),
    }
    ids, mask = padded_ids(r, f["vocab_size"], 0)
    return f, {"input_ids": ids, "attention_mask": mask}


def distilbert_classifier(r):
    f, inputs = distilbert(r)
    f["num_labels"] = r.randint(2, 5)
    return f, inputs


def tower(r):
    heads = r.choice([1, 2, 3])
    return {
        "hidden_size": heads * r.choice([4, 8]),
        "intermediate_size": r.choice([12, 20]),
        "num_hidden_layers": r.randint(1, 2),
        "num_attention_heads": heads,
        "hidden_act": r.choice(["quick_gelu", "quick_gelu", "gelu"]),
        "layer_norm_eps": r.choice([1e-5, 1e-2]),
    }


def clip_text(r):
    """Texts end in an end token, which is the largest id where the config names the old one, 2."""
    f = tower(r)
    vocab = r.randint(11, 16)
    f.update(vocab_size=vocab, max_position_embeddings=r.choice([12, 16]),
             eos_token_id=r.choice([2, vocab - 1, 5]), bos_token_id=0, pad_token_id=1)  # fmt: skip
    end = vocab - 1 if f["eos_token_id"] == 2 else f["eos_token_id"]
    ids, mask = padded_ids(r, vocab, 1)
    for row, kept in zip(ids, mask):
        count = int(kept.sum())
        for i in range(count):
            if int(row[i]) in (end, vocab - 1):
                row[i] = 3
        row[count - 1] = end
    return f, {"input_ids": ids, "attention_mask": mask}


def clip_vision(r):
    f = tower(r)
    channels, patch = r.choice([1, 3]), r.choice([2, 3])
    f.update(image_size=patch * r.choice([2, 3]), patch_size=patch, num_channels=channels)
    generator = torch.Generator().manual_seed(r.randrange(1 << 30))
    size = (r.choice([1, 3]), channels, f["image_size"], f["image_size"])
    return f, {"pixel_values": torch.randn(size, generator=generator)}


def clip(r):
    (text, texts), (vision, images) = clip_text(r), clip_vision(r)
    f = {"text_config": text, "vision_config": vision, "projection_dim": r.choice([6, 10])}
    return f, {**texts, **images}


def dit(r):
    """Of diffusers."""
    patch = r.choice([1, 2])
    f = {
        "num_layers": r.randint(1, 2),
        "num_attention_heads": r.choice([1, 2]),
        "attention_head_dim": r.choice([8, 12]),
        "in_channels": r.choice([3, 4]),
        "sample_size": patch * r.choice([2, 3]),
        "patch_size": patch,
        "num_embeds_ada_norm": r.randint(5, 9),
        "attention_bias": r.random() < 0.7,
        "norm_elementwise_affine": r.random() < 0.3,
        "norm_eps": r.choice([1e-5, 1e-2]),
    }
    if r.random() < 0.5:
        f["out_channels"] = 2 * f["in_channels"]
    generator = torch.Generator().manual_seed(r.randrange(1 << 30))
    size = (BATCH, f["in_channels"], f["sample_size"], f["sample_size"])
    return f, {
        "hidden_states": torch.randn(size, generator=generator),
        "timestep": torch.tensor([float(r.randrange(1000)) for _ in range(BATCH)]),
        "class_labels": torch.tensor([r.randrange(f["num_embeds_ada_norm"] + 1) for _ in range(BATCH)]),
    }


# architecture: how its config and inputs are drawn
ENCODERS = {
    "BertModel": bert,
    "BertForMaskedLM": bert,
    "RobertaModel": roberta,
    "RobertaForMaskedLM": roberta,
    "XLMRobertaModel": roberta,
    "XLMRobertaForMaskedLM": roberta,
    "T5ForConditionalGeneration": t5,
    "MT5ForConditionalGeneration": t5,
    "BartForConditionalGeneration": bart,
    "MarianMTModel": marian,
    "WhisperForConditionalGeneration": whisper,
    "DistilBertModel": distilbert,
    "DistilBertForMaskedLM": distilbert,
    "DistilBertForSequenceClassification": distilbert_classifier,
    "CLIPModel": clip,
    "CLIPTextModel": clip_text,
    "CLIPVisionModel": clip_vision,
    "DiTTransformer2DModel": dit,
    "ViTModel": vit,
    "ViTForImageClassification": vit,
}
