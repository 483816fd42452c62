"""A tiny random-weight AutoencoderTiny, and what diffusers decodes with it.

Writes OUT/model (its folder) and OUT/decoded.safetensors: "latent" [1,4,h,w], "image" [1,3,8h,8w] in about -1..1.
"""
import torch
from diffusers import AutoencoderTiny
from safetensors.torch import save_file

from golden.pipelines import spread


def make(out):
    # (Its constructor takes encoder_block_out_channels of equal entries alone.)
    model = AutoencoderTiny(encoder_block_out_channels=(8,) * 4, decoder_block_out_channels=(8,) * 4,
                            num_encoder_blocks=(1, 1, 1, 1), num_decoder_blocks=(2, 1, 1, 1))
    spread(model, 3).eval().save_pretrained(out / "model")
    latent = torch.randn(1, 4, 6, 5, generator=torch.Generator().manual_seed(4)) * 2
    with torch.no_grad():
        image = model.decode(latent).sample
    save_file({"latent": latent, "image": image.contiguous()}, out / "decoded.safetensors")
