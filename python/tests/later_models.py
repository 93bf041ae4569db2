# SPDX-License-Identifier: Apache-2.0
"""Architectures of other kinds, tiny and random: state spaces, recurrences, sinks, routed experts, windows of encoders,
sounds, films and convolutions. Each with how many attentions it has."""
import torch
import transformers as tf
from further_models import IDS, IMAGE, SEQ2SEQ, SMALL_IMAGE, SPEECH, Both, picture, sound, translator
from torch_models import BATCH, VOCAB, Call, Dim, config, decoder, encoder, ids, spread, wide


def whisper():
    cfg = tf.WhisperConfig(d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                           encoder_ffn_dim=96, decoder_ffn_dim=96, num_mel_bins=20, max_source_positions=30,
                           max_target_positions=32, vocab_size=VOCAB, decoder_start_token_id=1, **IDS)
    return Both(tf.WhisperModel(cfg), "input_features", "last_hidden_state"), (torch.randn(BATCH, 20, 60), ids(s=7)), \
        {"x": IMAGE["x"], "y": {0: IMAGE["x"][0], 1: Dim("past", min=2, max=32)}}


def film():
    cfg = tf.VideoMAEConfig(image_size=16, patch_size=8, num_frames=4, tubelet_size=2, hidden_size=48, num_hidden_layers=2,
                            num_attention_heads=4, intermediate_size=96)
    return Call(tf.VideoMAEModel(cfg), "last_hidden_state", ("pixel_values",)), (torch.randn(BATCH, 4, 3, 16, 16),), IMAGE


def fixed(make):
    """For one length: PyTorch's export finds that another would take another way."""
    return lambda: (*make()[:2], None)


WITHOUT_SIZE = {k: v for k, v in SMALL_IMAGE.items() if k != "intermediate_size"}
EXPERTS = dict(num_experts_per_tok=2)
MODELS = {  # name to (maker, attentions)
    "mamba": (fixed(decoder(tf.MambaForCausalLM, tf.MambaConfig(vocab_size=VOCAB, hidden_size=48, state_size=8, num_hidden_layers=2))), 0),
    "mamba2": (fixed(decoder(tf.Mamba2ForCausalLM, tf.Mamba2Config(
        vocab_size=VOCAB, hidden_size=48, state_size=8, num_heads=6, head_dim=16, n_groups=2, num_hidden_layers=2, chunk_size=8))), 0),
    "rwkv": (fixed(decoder(tf.RwkvForCausalLM, tf.RwkvConfig(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, context_length=64))), 0),
    "recurrent-gemma": (fixed(decoder(tf.RecurrentGemmaForCausalLM, config(
        tf.RecurrentGemmaConfig, lru_width=48, attention_window_size=5, num_hidden_layers=3))), 1),
    "lfm2": (decoder(tf.Lfm2ForCausalLM, config(tf.Lfm2Config, layer_types=["conv", "full_attention"])), 1),
    "olmoe": (decoder(tf.OlmoeForCausalLM, config(tf.OlmoeConfig, num_experts=4, **EXPERTS)), 2),
    "deepseek-v3": (decoder(tf.DeepseekV3ForCausalLM, config(
        tf.DeepseekV3Config, num_key_value_heads=4, q_lora_rank=24, kv_lora_rank=16, qk_rope_head_dim=8, v_head_dim=12,
        qk_nope_head_dim=12, n_routed_experts=4, n_group=2, topk_group=1, moe_intermediate_size=32, first_k_dense_replace=1,
        **EXPERTS)), 2),
    "gpt-oss": (decoder(tf.GptOssForCausalLM, config(
        tf.GptOssConfig, head_dim=16, num_local_experts=4, sliding_window=5, **EXPERTS,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0})), 0),  # sinks stand in the way
    "modernbert": (encoder(tf.ModernBertModel, wide(tf.ModernBertConfig, local_attention=8, global_attn_every_n_layers=2,
                                                    cls_token_id=1, sep_token_id=2, **IDS)), 2),
    "esm": (encoder(tf.EsmModel, wide(tf.EsmConfig, position_embedding_type="rotary", pad_token_id=1, mask_token_id=3),
                    add_pooling_layer=False), 2),
    "xlnet": (fixed(encoder(tf.XLNetModel, tf.XLNetConfig(vocab_size=VOCAB, d_model=48, n_layer=2, n_head=4, d_inner=96))), 0),
    "blenderbot": (translator(tf.BlenderbotForConditionalGeneration, tf.BlenderbotConfig(**SEQ2SEQ)), 6),
    "whisper": (whisper, 6),
    "wavlm": (sound(tf.WavLMModel, tf.WavLMConfig(**SPEECH), (800,)), 2),
    "videomae": (film, 2),
    "dinov2": (picture(tf.Dinov2Model, tf.Dinov2Config(**WITHOUT_SIZE)), 2),
    "yolos": (picture(tf.YolosModel, tf.YolosConfig(**{**SMALL_IMAGE, "image_size": [32, 32], "num_detection_tokens": 5}),
                      add_pooling_layer=False), 2),
    "efficientnet": (picture(tf.EfficientNetModel, tf.EfficientNetConfig(
        image_size=32, width_coefficient=0.25, depth_coefficient=0.2, hidden_dim=320)), 0),
    "poolformer": (picture(tf.PoolFormerModel, tf.PoolFormerConfig(hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 1, 1])), 0),
}
# Ops that run in PyTorch under torch.compile: experts by sorted tokens, of which an export is asked to do without.
IN_PYTORCH = {"olmoe", "deepseek-v3", "gpt-oss"}


def made(name):
    """(module, arguments, dynamic shapes) with weights that are not all ones and zeros."""
    torch.manual_seed(7)
    model, args, shapes = MODELS[name][0]()
    return spread(model), args, shapes
