"""Names and shapes of every tensor of the real families, made from the published configs without any weights.

Writes <model>/<component>/shapes.gz, a line a tensor: `name 320x4x3x3`, and the config beside it.
"""
import gzip
import json
import pathlib

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

CROSS_DOWN, CROSS_UP = "CrossAttnDownBlock2D", "CrossAttnUpBlock2D"
SD1_UNET = dict(sample_size=64, in_channels=4, out_channels=4, block_out_channels=[320, 640, 1280, 1280],
                down_block_types=[CROSS_DOWN] * 3 + ["DownBlock2D"], up_block_types=["UpBlock2D"] + [CROSS_UP] * 3,
                layers_per_block=2, cross_attention_dim=768, attention_head_dim=8)
SD2_UNET = SD1_UNET | dict(sample_size=96, cross_attention_dim=1024, attention_head_dim=[5, 10, 20, 20],
                           use_linear_projection=True)
SDXL_UNET = dict(sample_size=128, in_channels=4, out_channels=4, block_out_channels=[320, 640, 1280],
                 down_block_types=["DownBlock2D", CROSS_DOWN, CROSS_DOWN], up_block_types=[CROSS_UP, CROSS_UP, "UpBlock2D"],
                 layers_per_block=2, cross_attention_dim=2048, attention_head_dim=[5, 10, 20],
                 transformer_layers_per_block=[1, 2, 10], use_linear_projection=True, addition_embed_type="text_time",
                 addition_time_embed_dim=256, projection_class_embeddings_input_dim=2816)
VAE = dict(sample_size=512, block_out_channels=[128, 256, 512, 512], down_block_types=["DownEncoderBlock2D"] * 4,
           up_block_types=["UpDecoderBlock2D"] * 4, layers_per_block=2, latent_channels=4)
CLIP = dict(vocab_size=49408, max_position_embeddings=77)
CLIP_L = CLIP | dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
                     hidden_act="quick_gelu", projection_dim=768)
OPENCLIP_H = CLIP | dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=23, num_attention_heads=16,
                         hidden_act="gelu", projection_dim=512)
OPENCLIP_G = CLIP | dict(hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=20,
                         hidden_act="gelu", projection_dim=1280)

FAMILIES = {
    "sd15": {"unet": SD1_UNET, "vae": VAE, "text_encoder": CLIP_L},
    "sd15-inpainting": {"unet": SD1_UNET | dict(in_channels=9)},
    "sd21": {"unet": SD2_UNET, "text_encoder": OPENCLIP_H},
    "sdxl": {"unet": SDXL_UNET, "vae": VAE | dict(scaling_factor=0.13025, sample_size=1024), "text_encoder_2": OPENCLIP_G},
}


def instantiate(component, config):
    if component == "unet":
        return UNet2DConditionModel(**config)
    if component == "vae":
        return AutoencoderKL(**config)
    cls = CLIPTextModelWithProjection if component == "text_encoder_2" else CLIPTextModel
    return cls(CLIPTextConfig(**config))


def write_shapes(component, config, folder):
    """FOLDER/config.json and FOLDER/shapes.gz. Returns the entry of model_index.json."""
    with torch.device("meta"):
        model = instantiate(component, config)
    lines = [f"{name} {'x'.join(map(str, p.shape))}\n" for name, p in sorted(model.named_parameters())]
    if component == "text_encoder":  # as the published files have them
        lines = [line if line.startswith("text_model.") else "text_model." + line for line in lines]
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.GzipFile(folder / "shapes.gz", "wb", mtime=0) as packed:
        packed.write("".join(lines).encode())
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    return [type(model).__module__.split(".")[0], type(model).__name__]


def make(out):
    """The families that models/synthetic has not (tools/make_random_models.py --shapes)."""
    for component, config in FAMILIES["sd15-inpainting"].items():
        write_shapes(component, config, pathlib.Path(out) / "sd15-inpainting" / component)
