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


# architecture: how its config and inputs are drawn
ENCODERS = {
    "BertModel": bert,
    "BertForMaskedLM": bert,
    "RobertaModel": roberta,
    "RobertaForMaskedLM": roberta,
}
