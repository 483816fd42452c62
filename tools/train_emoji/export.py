"""Writes the trained networks as a Stable Diffusion folder in diffusers' layout, float16.

The averaged weights of WORK/diffusion.pt and the autoencoder of WORK/vae go into MODEL, beside its tokenizer/.
"""

import argparse
import json

import torch
from diffusers import AutoencoderKL, EulerDiscreteScheduler, __version__
from safetensors.torch import load_file, save_file
from transformers import CLIPTokenizer

from common import load_captions, text_encoder, unet
from train import NOISE, CompactTokens, add_arguments, build_trainer

TOKEN_TABLE = "embeddings.token_embedding.weight"
# Read by sfumato, ignored by diffusers. latent_rgb: least squares from 96 latents to the pictures, R^2 0.91; last row: bias.
DEFAULTS = {"name": "emoji", "guidance_scale": 3.0, "steps": 20,
            "latent_rgb": [[0.0219, -0.2687, 0.0142], [0.2346, 0.1929, -0.0009], [0.3676, 0.0333, -0.0933],
                           [-0.3919, -0.9268, -0.6616], [0.2565, -0.0265, 0.1569]]}


def full_text_encoder(state, tokens):
    """The text encoder over all of CLIP's tokens, from one trained on the tokens that captions use."""
    table = next(key for key in state if key.endswith(TOKEN_TABLE))
    model = text_encoder()
    model.load_state_dict(state | {table: tokens.expand(state[table])})
    return model


def name_as_published(path):
    """Puts the names of the published text encoders, all in `text_model.`, in place of this transformers' own."""
    weights = load_file(path)
    save_file({f"text_model.{key}": w for key, w in weights.items()}, path, metadata={"format": "pt"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    args = parser.parse_args()
    torch.set_num_threads(1)
    tokens = CompactTokens(CLIPTokenizer.from_pretrained(args.model / "tokenizer"), load_captions(args.work))
    trainer = build_trainer(args, tokens)

    image_network = unet()
    image_network.load_state_dict(trainer.averaged("unet"))
    vae = AutoencoderKL.from_pretrained(args.vae or args.work / "vae")
    parts = {"unet": image_network, "vae": vae, "text_encoder": full_text_encoder(trainer.averaged("text"), tokens)}
    for name, network in parts.items():
        network.half().save_pretrained(args.model / name)
    name_as_published(args.model / "text_encoder" / "model.safetensors")
    sampler = {"prediction_type": "v_prediction", "timestep_spacing": "trailing", "steps_offset": 1}
    EulerDiscreteScheduler(**NOISE, **sampler).save_pretrained(args.model / "scheduler")
    index = {
        "_class_name": "StableDiffusionPipeline",
        "_diffusers_version": __version__,
        "feature_extractor": [None, None],
        "image_encoder": [None, None],
        "requires_safety_checker": False,
        "safety_checker": [None, None],
        "scheduler": ["diffusers", "EulerDiscreteScheduler"],
        "text_encoder": ["transformers", "CLIPTextModel"],
        "tokenizer": ["transformers", "CLIPTokenizer"],
        "unet": ["diffusers", "UNet2DConditionModel"],
        "vae": ["diffusers", "AutoencoderKL"],
        "sfumato": DEFAULTS,
    }
    (args.model / "model_index.json").write_text(json.dumps(index, indent=2) + "\n")
    size = sum(path.stat().st_size for path in args.model.rglob("*.safetensors"))
    print(f"step {trainer.steps}: {size / 1e6:.2f} MB of weights")


if __name__ == "__main__":
    main()
