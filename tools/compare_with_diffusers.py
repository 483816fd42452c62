#!/usr/bin/env python3
"""Draws the same picture with diffusers (fp32, CPU) and with sfumato, and prints how far the final latents are apart.

    python tools/compare_with_diffusers.py MODEL [--binary build/apps/sfumato] [--steps 4] [--precision fp32] ...

MODEL is any folder that sfumato reads, also one of tests/golden/pipelines. Needs tools/golden/requirements.txt.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import torch
from safetensors.torch import load_file

from diffusers import DiffusionPipeline
from golden.pipelines import ROOT, SCHEDULERS, make_tokenizer


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--binary", default=ROOT / "build" / "apps" / "sfumato", type=pathlib.Path)
    parser.add_argument("--precision", default="fp32", help="of sfumato: fp32, bf16 or auto")
    parser.add_argument("--prompt", default="a red apple on a table, oil painting")
    parser.add_argument("--negative-prompt", help="default: absent")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--guidance", type=float, default=7.5)
    parser.add_argument("--size", metavar="WxH", help="default: the model's")
    parser.add_argument("--sampler", choices=SCHEDULERS, help="default: the model's")
    parser.add_argument("--limit", type=float, help="exit with 1 if the difference is larger")
    return parser.parse_args()


def load(model, scratch):
    """The pipeline in fp32, with tokenizers made where the folder has only their pad token, as sfumato needs no more."""
    index = json.loads((model / "model_index.json").read_text())
    given = {"safety_checker": None} if "safety_checker" in index else {}
    for name in ("tokenizer", "tokenizer_2"):
        if name in index and not any((model / name / file).exists() for file in ("vocab.json", "tokenizer.json")):
            pad = json.loads((model / name / "special_tokens_map.json").read_text())["pad_token"]
            pad = pad["content"] if isinstance(pad, dict) else pad
            given[name] = make_tokenizer(pad, scratch / name)
    pipe = DiffusionPipeline.from_pretrained(model, torch_dtype=torch.float32, local_files_only=True, **given)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def run_diffusers(args, scratch):
    pipe = load(args.model, scratch)
    if args.sampler:
        pipe.scheduler = SCHEDULERS[args.sampler](pipe.scheduler.config)
    more = dict(zip(("width", "height"), map(int, args.size.split("x")))) if args.size else {}
    start = time.time()
    result = pipe(args.prompt, negative_prompt=args.negative_prompt, num_inference_steps=args.steps,
                  guidance_scale=args.guidance, generator=torch.Generator().manual_seed(args.seed),
                  output_type="latent", **more)
    return result.images[0].double(), time.time() - start


def run_sfumato(args, scratch):
    out = scratch / "latents.safetensors"
    command = [args.binary, "-m", args.model, "--prompt", args.prompt, "--steps", args.steps, "--seed", args.seed,
               "--cfg-scale", args.guidance, "--precision", args.precision, "--quiet",
               "--output", scratch / "picture.png", "--latents-out", out]
    for flag, value in (("--negative-prompt", args.negative_prompt), ("--size", args.size), ("--sampler", args.sampler)):
        if value is not None:
            command += [flag, value]
    start = time.time()
    done = subprocess.run([str(word) for word in command])
    if done.returncode:
        sys.exit(f"compare_with_diffusers: sfumato ended with {done.returncode}")
    return load_file(out)["latents.0"].double(), time.time() - start


def main():
    args = parse_arguments()
    with tempfile.TemporaryDirectory() as scratch:
        got, own_seconds = run_sfumato(args, pathlib.Path(scratch))
        want, seconds = run_diffusers(args, pathlib.Path(scratch))
    if got.shape != want.shape:
        sys.exit(f"compare_with_diffusers: latents are {list(got.shape)} here, {list(want.shape)} in diffusers")
    scale, error = want.abs().max(), (got - want).abs()
    largest = (error.max() / scale).item()
    print(f"{args.model}: {list(got.shape)}, {args.steps} steps, {args.precision}: largest difference {largest:.3g}, "
          f"mean {(error.mean() / scale).item():.3g} of the largest value {scale.item():.4g} "
          f"(seconds: sfumato {own_seconds:.1f} with loading and decoding, diffusers {seconds:.1f} without)")
    if args.limit is not None and not largest <= args.limit:  # NaN fails too
        sys.exit(f"compare_with_diffusers: expected at most {args.limit}")


if __name__ == "__main__":
    main()
