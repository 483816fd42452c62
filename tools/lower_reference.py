#!/usr/bin/env python3
"""The reference JAX program of SDXL as StableHLO text, for `sfumato compile --stablehlo`.

    python tools/lower_reference.py [--batch 1,2,4] [--size 1024] -o FOLDER

Lowers diffusers' Flax U-Net (with guidance: twice the batch) and VAE decoder in bfloat16 from shapes alone: no weights
are made. Needs jax, flax, torch, diffusers 0.30.3 (the last versions with Flax) and transformers 4.44.2.
"""
import argparse
import pathlib

import jax
import jax.numpy as jnp
from diffusers import FlaxAutoencoderKL, FlaxUNet2DConditionModel

DTYPE = jnp.bfloat16


def shape(*dims, dtype=DTYPE):
    return jax.ShapeDtypeStruct(dims, dtype)


def parameters(model):
    """Their shapes, in the type that they are served in."""
    tree = jax.eval_shape(model.init_weights, jax.random.PRNGKey(0))
    return jax.tree.map(lambda leaf: shape(*leaf.shape), tree)


def unet(batch, side):
    model = FlaxUNet2DConditionModel(
        sample_size=side, block_out_channels=(320, 640, 1280), layers_per_block=2,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        transformer_layers_per_block=(1, 2, 10), attention_head_dim=(5, 10, 20), cross_attention_dim=2048,
        use_linear_projection=True, addition_embed_type="text_time", addition_time_embed_dim=256,
        projection_class_embeddings_input_dim=2816, dtype=DTYPE)

    def apply(params, sample, timestep, context, pooled, time_ids):
        added = {"text_embeds": pooled, "time_ids": time_ids}
        return model.apply({"params": params}, sample, timestep, context, added_cond_kwargs=added).sample

    return jax.jit(apply).lower(parameters(model), shape(batch, 4, side, side), shape(dtype=jnp.int32),
                                shape(batch, 77, 2048), shape(batch, 1280), shape(batch, 6, dtype=jnp.float32))


def vae_decoder(batch, side):
    model = FlaxAutoencoderKL(
        sample_size=8 * side, block_out_channels=(128, 256, 512, 512), layers_per_block=2,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, dtype=DTYPE)

    def apply(params, latents):
        return model.apply({"params": params}, latents, method=model.decode).sample

    return jax.jit(apply).lower(parameters(model), shape(batch, 4, side, side))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", default="1", help="pictures at once, a list")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    side = args.size // 8
    for batch in map(int, args.batch.split(",")):
        text = unet(2 * batch, side).as_text()
        (args.output / f"flax-unet-{batch}.mlir").write_text(text)
    (args.output / "flax-vae-decode.mlir").write_text(vae_decoder(1, side).as_text())


if __name__ == "__main__":
    main()
