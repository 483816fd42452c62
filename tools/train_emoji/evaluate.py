"""Measures a model folder with diffusers: autoencoder PSNR, text to image by nearest training image, contact sheets.

Text to image: for names drawn at random and each seed, the nearest training image in autoencoder latents either is the
named one (top 1), or is among the five nearest (top 5), or its name has the same head noun. Writes figures.json,
sheet.png and combinations.png to OUT.
"""

import argparse
import json
import random
import re
from pathlib import Path

import numpy as np
import torch
from diffusers import StableDiffusionPipeline, logging
from PIL import Image, ImageDraw

from common import load_captions, load_images
from train_autoencoder import encode, mean_psnr

HERE = Path(__file__).parent
TILE, LABEL = 128, 14
LINKS = r"\s+(?:with|without|of|in|on|at|over|behind|from|to|for|and|not)\s.*|,.*|:.*"


def head_noun(name):
    """'cat with wry smile' -> 'cat', 'red apple' -> 'apple'."""
    return re.sub(LINKS, "", name.lower()).split()[-1]


def load_pipeline(folder, dtype):
    pipeline = StableDiffusionPipeline.from_pretrained(folder, torch_dtype=dtype, safety_checker=None)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


class Artist:
    """Draws prompts with the folder's own defaults: steps and guidance from model_index.json, the first noise of a
    prompt from a generator with the seed."""

    def __init__(self, folder, dtype, guidance=None, steps=None):
        defaults = json.loads((folder / "model_index.json").read_text())["sfumato"]
        self.pipeline = load_pipeline(folder, dtype)
        self.guidance = defaults["guidance_scale"] if guidance is None else guidance
        self.steps = steps or defaults["steps"]

    def draw(self, prompts, seed, batch=16):
        """One PIL image for each prompt, all from the same noise."""
        images = []
        for i in range(0, len(prompts), batch):
            part = prompts[i : i + batch]
            generators = [torch.Generator().manual_seed(seed) for _ in part]
            images += self.pipeline(
                part, num_inference_steps=self.steps, guidance_scale=self.guidance, generator=generators
            ).images
        return images


def contact_sheet(images, labels, columns):
    rows = -(-len(images) // columns)
    sheet = Image.new("RGB", (columns * TILE, rows * (TILE + LABEL)), "white")
    pen = ImageDraw.Draw(sheet)
    for k, (image, label) in enumerate(zip(images, labels)):
        x, y = k % columns * TILE, k // columns * (TILE + LABEL)
        sheet.paste(image, (x, y))
        pen.text((x + TILE // 2, y + TILE), label[:24], fill="black", anchor="ma")
    return sheet


def to_tensor(images):
    return torch.stack([torch.from_numpy(np.asarray(image)) for image in images]).permute(0, 3, 1, 2)


def text_to_image(artist, vae, images, captions, count, seeds):
    """Shares of top 1, top 5 and of top 1 or same head noun, over `count` names times the seeds."""
    names = [c["name"] for c in captions]
    chosen = random.Random(0).sample(range(len(names)), count)
    gallery = encode(vae, images).flatten(1)
    hits = {"top1": 0, "top5": 0, "named_or_head_noun": 0}
    for seed in seeds:
        drawn = to_tensor(artist.draw([names[i] for i in chosen], seed))
        nearest = torch.cdist(encode(vae, drawn).flatten(1), gallery).topk(5, largest=False).indices.tolist()
        for i, best in zip(chosen, nearest):
            hits["top1"] += names[best[0]] == names[i]
            hits["top5"] += names[i] in [names[k] for k in best]
            hits["named_or_head_noun"] += head_noun(names[best[0]]) == head_noun(names[i])
    return {key: round(value / (count * len(seeds)), 4) for key, value in hits.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default="work")
    parser.add_argument("--model", type=Path, default="../../models/emoji")
    parser.add_argument("--out", type=Path, default="../../models/emoji/figures")
    parser.add_argument("--names", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--guidance", type=float)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--sheets-only", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    logging.set_verbosity_error()
    args.out.mkdir(parents=True, exist_ok=True)

    artist = Artist(args.model, getattr(torch, args.dtype), args.guidance, args.steps)
    for source, name, columns in (("prompts.txt", "sheet.png", 8), ("combinations.txt", "combinations.png", 5)):
        prompts = (HERE / source).read_text().splitlines()
        contact_sheet(artist.draw(prompts, 0), prompts, columns).save(args.out / name)
    if args.sheets_only:
        return
    images, captions = load_images(args.work), load_captions(args.work)
    vae = load_pipeline(args.model, torch.float32).vae
    figures = {"images": len(images), "autoencoder_psnr_db": round(mean_psnr(vae, images), 2)}
    figures |= {"names": args.names, "seeds": args.seeds, "steps": artist.steps, "guidance_scale": artist.guidance}
    figures |= text_to_image(artist, vae, images, captions, args.names, range(args.seeds))
    (args.out / "figures.json").write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
