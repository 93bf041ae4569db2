# SPDX-License-Identifier: Apache-2.0
"""Further public architectures, tiny and random: decoders, mixtures of experts, encoders, vision, audio,
encoder-decoders."""
import torch
import transformers as tf
from torch_models import BATCH, TOKENS, VOCAB, Call, Dim, config, decoder, encoder, ids, spread, wide

IDS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
IMAGE = {"x": {0: Dim("batch", min=1, max=8)}}


def picture(cls, cfg, field="last_hidden_state", **options):
    return lambda: (Call(cls(cfg, **options), field, ("pixel_values",)), (torch.randn(BATCH, 3, 32, 32),), IMAGE)


def sound(cls, cfg, shape, name="input_values"):
    return lambda: (Call(cls(cfg), "last_hidden_state", (name,)), (torch.randn(BATCH, *shape),), IMAGE)


class Both(torch.nn.Module):
    """An encoder-decoder on a text, or another input, and the beginning of another text."""

    def __init__(self, model, name="input_ids", field="logits"):
        super().__init__()
        self.model, self.name, self.field = model, name, field

    def forward(self, x, y):
        return getattr(self.model(**{self.name: x}, decoder_input_ids=y, use_cache=False), self.field)


def translator(cls, cfg):
    return lambda: (Both(cls(cfg)), (ids(), ids(s=7)), {**TOKENS, "y": {0: TOKENS["x"][0], 1: Dim("past", min=2, max=32)}})


SMALL_IMAGE = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, image_size=32,
                   patch_size=8)
SEQ2SEQ = dict(vocab_size=VOCAB, d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
               decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, max_position_embeddings=64,
               decoder_start_token_id=2, **IDS)
SPEECH = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, conv_dim=(16, 16),
              conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=8,
              num_conv_pos_embedding_groups=4, vocab_size=VOCAB)
MODELS = {
    # Decoders.
    "olmo2": decoder(tf.Olmo2ForCausalLM, config(tf.Olmo2Config)),
    "granite": decoder(tf.GraniteForCausalLM, config(tf.GraniteConfig, residual_multiplier=0.5, logits_scaling=2.0)),
    "cohere": decoder(tf.CohereForCausalLM, config(tf.CohereConfig, use_qk_norm=True)),
    "cohere2": decoder(tf.Cohere2ForCausalLM, config(tf.Cohere2Config, sliding_window=5, num_hidden_layers=4)),
    "stablelm": decoder(tf.StableLmForCausalLM, config(tf.StableLmConfig, partial_rotary_factor=0.5)),
    "falcon": decoder(tf.FalconForCausalLM, wide(tf.FalconConfig, **IDS)),
    "bloom": decoder(tf.BloomForCausalLM, tf.BloomConfig(vocab_size=VOCAB, hidden_size=48, n_layer=2, n_head=4)),
    "mpt": decoder(tf.MptForCausalLM, tf.MptConfig(vocab_size=VOCAB, d_model=48, n_layers=2, n_heads=4, max_seq_len=65)),
    "opt": decoder(tf.OPTForCausalLM, wide(tf.OPTConfig, ffn_dim=96, word_embed_proj_dim=48, **IDS)),
    "phi": decoder(tf.PhiForCausalLM, config(tf.PhiConfig)),
    "gpt-bigcode": decoder(tf.GPTBigCodeForCausalLM, tf.GPTBigCodeConfig(vocab_size=VOCAB, n_embd=48, n_layer=2, n_head=4,
                                                                        n_positions=64)),
    "starcoder2": decoder(tf.Starcoder2ForCausalLM, config(tf.Starcoder2Config)),
    "codegen": decoder(tf.CodeGenForCausalLM, tf.CodeGenConfig(vocab_size=VOCAB, n_embd=48, n_layer=2, n_head=4,
                                                               n_positions=64, n_ctx=64, rotary_dim=4)),
    "nemotron": decoder(tf.NemotronForCausalLM, config(tf.NemotronConfig)),
    "helium": decoder(tf.HeliumForCausalLM, config(tf.HeliumConfig, head_dim=12, **IDS)),
    "glm": decoder(tf.GlmForCausalLM, config(tf.GlmConfig, head_dim=12, pad_token_id=0)),
    "exaone4": decoder(tf.Exaone4ForCausalLM, config(tf.Exaone4Config, sliding_window=5, num_hidden_layers=4)),
    "persimmon": decoder(tf.PersimmonForCausalLM, wide(tf.PersimmonConfig)),
    # Mixtures of experts.
    "qwen2-moe": decoder(tf.Qwen2MoeForCausalLM, config(tf.Qwen2MoeConfig, num_experts=4, num_experts_per_tok=2,
                                                        moe_intermediate_size=32, shared_expert_intermediate_size=40)),
    "granite-moe": decoder(tf.GraniteMoeForCausalLM, config(tf.GraniteMoeConfig, num_local_experts=4,
                                                            num_experts_per_tok=2)),
    # Encoders of text.
    "roberta": encoder(tf.RobertaModel, wide(tf.RobertaConfig, **IDS), add_pooling_layer=False),
    "albert": encoder(tf.AlbertModel, wide(tf.AlbertConfig, embedding_size=16), add_pooling_layer=False),
    "electra": encoder(tf.ElectraModel, wide(tf.ElectraConfig, embedding_size=16)),
    "distilbert": encoder(tf.DistilBertModel, tf.DistilBertConfig(vocab_size=VOCAB, dim=48, hidden_dim=96, n_layers=2,
                                                                  n_heads=4, max_position_embeddings=64)),
    "mpnet": encoder(tf.MPNetModel, wide(tf.MPNetConfig), add_pooling_layer=False),
    "modernbert": encoder(tf.ModernBertModel, wide(tf.ModernBertConfig, local_attention=8, num_hidden_layers=4,
                                                   cls_token_id=1, sep_token_id=2, pad_token_id=0, bos_token_id=1,
                                                   eos_token_id=2)),
    "deberta-v2": encoder(tf.DebertaV2Model, wide(tf.DebertaV2Config, relative_attention=True, pos_att_type=["p2c", "c2p"],
                                                  position_biased_input=False)),
    "esm": encoder(tf.EsmModel, wide(tf.EsmConfig, pad_token_id=1, mask_token_id=3, position_embedding_type="rotary"),
                   add_pooling_layer=False),
    # Pictures.
    "deit": picture(tf.DeiTModel, tf.DeiTConfig(**SMALL_IMAGE), add_pooling_layer=False),
    "beit": picture(tf.BeitModel, tf.BeitConfig(**SMALL_IMAGE, use_relative_position_bias=True), add_pooling_layer=False),
    "dinov2": picture(tf.Dinov2Model, tf.Dinov2Config(**{**SMALL_IMAGE, "image_size": 32})),
    "siglip-vision": picture(tf.SiglipVisionModel, tf.SiglipVisionConfig(**SMALL_IMAGE)),
    "clip-vision": picture(tf.CLIPVisionModel, tf.CLIPVisionConfig(**SMALL_IMAGE)),
    "swin": picture(tf.SwinModel, tf.SwinConfig(image_size=32, patch_size=4, embed_dim=24, depths=[2, 2], num_heads=[2, 4],
                                                window_size=4), add_pooling_layer=False),
    "convnext": picture(tf.ConvNextModel, tf.ConvNextConfig(hidden_sizes=[16, 32], depths=[2, 2], num_stages=2)),
    "segformer": picture(tf.SegformerModel, tf.SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[4, 2], hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2],
        num_attention_heads=[1, 2], mlp_ratios=[2, 2])),
    "resnet": picture(tf.ResNetModel, tf.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1])),
    # Sound.
    "wav2vec2": sound(tf.Wav2Vec2Model, tf.Wav2Vec2Config(**SPEECH), (800,)),
    "hubert": sound(tf.HubertModel, tf.HubertConfig(**SPEECH), (800,)),
    "ast": sound(tf.ASTModel, tf.ASTConfig(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
                                           patch_size=8, frequency_stride=8, time_stride=8, max_length=64, num_mel_bins=32),
                 (64, 32)),
    # Encoder-decoders.
    "bart": translator(tf.BartForConditionalGeneration, tf.BartConfig(**SEQ2SEQ)),
    "marian": translator(tf.MarianMTModel, tf.MarianConfig(**SEQ2SEQ)),
    "pegasus": translator(tf.PegasusForConditionalGeneration, tf.PegasusConfig(**SEQ2SEQ)),
    "m2m100": translator(tf.M2M100ForConditionalGeneration, tf.M2M100Config(**SEQ2SEQ)),
    "t5": translator(tf.T5ForConditionalGeneration, tf.T5Config(
        vocab_size=VOCAB, d_model=48, d_kv=12, d_ff=96, num_layers=2, num_heads=4, dropout_rate=0.0,
        decoder_start_token_id=0)),
}


def made(name):
    """(module, arguments, dynamic shapes) with weights that are not all ones and zeros."""
    torch.manual_seed(7)
    model, args, shapes = MODELS[name]()
    return spread(model), args, shapes
