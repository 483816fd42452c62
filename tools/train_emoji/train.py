"""Trains the UNet and the text encoder together on the autoencoder's latents. Resumes from WORK/diffusion.pt.

Velocity prediction, min-SNR weights, time steps spread evenly over each batch. The learning rate stays level until the
last `--cooldown` of `--steps`; to go on longer, start again with more steps. SIGTERM saves and stops.

On cores that others use too, one single-threaded worker a core is faster than threads, which wait for each other all
the time:  torchrun --nproc-per-node 2 train.py --threads 1
"""

import argparse
import csv
import random
import signal
import time
from pathlib import Path

import torch
from diffusers import AutoencoderKL, DDPMScheduler
from transformers import CLIPTokenizer

from common import (
    END,
    POSITIONS,
    VOCABULARY,
    Trainer,
    join_workers,
    load_captions,
    load_images,
    over_workers,
    rate_at,
    speed_up,
    text_encoder,
    to_network,
    unet,
)

EMPTY, NAME_ONLY, TAGS_ONLY = 0.10, 0.75, 0.05  # the other 10 %: name and tags
ARTICLE = 0.15
HIDE_WORDS = 0.05  # captions in which words may be hidden
MAX_SNR = 5.0
NOISE = {"num_train_timesteps": 1000, "beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012}


def with_article(name):
    return random.choice(("the", "an" if name[:1] in "aeiou" else "a")) + " " + name


def draw_caption(caption):
    """One of the ways to ask for this image."""
    choice = random.random()
    if choice < EMPTY:
        return ""
    name = caption["name"] if random.random() >= ARTICLE else with_article(caption["name"])
    if choice < EMPTY + NAME_ONLY:
        return name
    tags = random.sample(caption["tags"], min(len(caption["tags"]), random.randint(1, 4)))
    return ", ".join(tags if tags and choice < EMPTY + NAME_ONLY + TAGS_ONLY else [name, *tags])


class CompactTokens:
    """CLIP's tokens renumbered to the few thousand that captions use.

    Row 0 stands for every other token: it is trained by hiding words, and `expand` gives it to all of them, so that an
    unknown word at inference is one the model has learnt to draw without.
    """

    def __init__(self, tokenizer, captions):
        words = [text for c in captions for text in (c["name"], f"a an the, {', '.join(c['tags'])}")]
        used = sorted({i for ids in tokenizer(words).input_ids for i in ids})
        self.tokenizer, self.size, self.known = tokenizer, 1 + len(used), {}
        self.number = torch.zeros(VOCABULARY, dtype=torch.long)
        self.number[used] = torch.arange(1, self.size)

    def encode(self, texts):
        """Numbers [N,77] as int64."""
        for text in set(texts).difference(self.known):
            ids = self.tokenizer(text, padding="max_length", max_length=POSITIONS, truncation=True).input_ids
            self.known[text] = self.number[torch.tensor(ids)]
        return torch.stack([self.known[text] for text in texts])

    def hide(self, numbers):
        """Replaces some of the words in some of the captions by the unknown token."""
        inside = (numbers != self.number[END]) & (torch.arange(POSITIONS) > 0)
        chosen = (torch.rand(len(numbers), 1) < HIDE_WORDS) & (torch.rand(numbers.shape) < 0.3)
        return numbers.masked_fill(inside & chosen, 0)

    def expand(self, table):
        """[size, width] to [49408, width]."""
        return table[self.number]


@torch.no_grad()
def latents_of(autoencoder, images, batch=16):
    """Scaled posterior means and deviations, each [N,4,16,16]."""
    parts = [autoencoder.encode(to_network(part)).latent_dist for part in images.split(batch)]
    mean, deviation = torch.cat([p.mean for p in parts]), torch.cat([p.std for p in parts])
    return mean * autoencoder.config.scaling_factor, deviation * autoencoder.config.scaling_factor


def shuffled_rows(count, batch):
    """Endless batches of row numbers, each row once an epoch."""
    while True:
        for rows in torch.randperm(count).split(batch):
            if len(rows) == batch:
                yield rows


def spread_timesteps(batch):
    """One step from each of `batch` equal stretches, in random order."""
    return ((torch.randperm(batch) + torch.rand(batch)) * 1000 / batch).long().clamp(0, 999)


def velocity_weights(snr):
    """Min-SNR for velocities: the squared error of the velocity is that of the image times SNR + 1, and that is held
    at MAX_SNR + 1. (Holding SNR instead takes the weight from the noisiest steps, where the text is learnt.)"""
    return (snr + 1).clamp(max=MAX_SNR + 1) / (snr + 1)


def build_trainer(args, tokens):
    networks = {"unet": speed_up(unet()), "text": speed_up(text_encoder(tokens.size))}
    dtype = getattr(torch, args.dtype)
    return Trainer(networks, args.work / "diffusion.pt", dtype, args.rate, 1e-3, args.average, args.muon_rate)


def add_arguments(parser):
    parser.add_argument("--work", type=Path, default="work")
    parser.add_argument("--model", type=Path, default="../../models/emoji", help="the folder with tokenizer/")
    parser.add_argument("--vae", type=Path, help="the autoencoder's folder; default WORK/vae")
    parser.add_argument("--rate", type=float, default=1e-3, help="AdamW's learning rate")
    parser.add_argument("--muon-rate", type=float, default=2e-3, help="Muon's learning rate")
    parser.add_argument("--average", type=float, default=0.999, help="decay of the moving average")
    parser.add_argument("--dtype", default="bfloat16", help="bfloat16 where the CPU has AMX, else float32")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--steps", type=int, default=16000, help="in all, earlier sittings included")
    parser.add_argument("--batch", type=int, default=32, help="for each worker")
    parser.add_argument("--cooldown", type=float, default=0.3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true", help="a fifth faster after some minutes of compiling")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    worker = join_workers()
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))

    captions = load_captions(args.work)
    tokens = CompactTokens(CLIPTokenizer.from_pretrained(args.model / "tokenizer"), captions)
    trainer = build_trainer(args, tokens)
    autoencoder = AutoencoderKL.from_pretrained(args.vae or args.work / "vae").eval()
    mean, deviation = latents_of(autoencoder, load_images(args.work))
    keep = DDPMScheduler(**NOISE).alphas_cumprod
    weights = velocity_weights(keep / (1 - keep))
    dtype = getattr(torch, args.dtype)
    text_network, image_network = trainer.networks["text"], trainer.networks["unet"]
    if args.compile:
        image_network = torch.compile(image_network)
    torch.manual_seed(1000 * trainer.steps + worker)
    random.seed(1000 * trainer.steps + worker)
    print(f"{len(mean)} latents, deviation {mean.std():.3f}; {tokens.size} tokens; step {trainer.steps}", flush=True)

    log = csv.writer(open(args.work / "log.csv", "a", newline="", buffering=1)) if worker == 0 else None
    if log and trainer.steps == 0:
        log.writerow(["step", "cpu_seconds", "loss", "rate"])
    started, losses = time.process_time(), []
    for rows in shuffled_rows(len(mean), args.batch):
        if trainer.steps >= args.steps:
            break
        latents = mean[rows] + deviation[rows] * torch.randn_like(mean[rows])
        noise, steps = torch.randn_like(latents), spread_timesteps(args.batch)
        share = keep[steps].view(-1, 1, 1, 1)
        noisy = share.sqrt() * latents + (1 - share).sqrt() * noise
        velocity = share.sqrt() * noise - (1 - share).sqrt() * latents
        numbers = tokens.hide(tokens.encode([draw_caption(captions[i]) for i in rows.tolist()]))

        text = text_network(numbers).last_hidden_state
        noisy = noisy.to(dtype).contiguous(memory_format=torch.channels_last)
        predicted = image_network(noisy, steps, text).sample.float()
        loss = (weights[steps].view(-1, 1, 1, 1) * (predicted - velocity).square()).mean()
        rate = rate_at(trainer.steps, args.steps, 200, args.cooldown)
        trainer.step(loss, rate)

        shared_loss, stopping = over_workers(torch.tensor([loss.item(), float(bool(stop))])).tolist()
        losses.append(shared_loss)
        if log and trainer.steps % 100 == 0:
            trainer.seconds += time.process_time() - started
            started = time.process_time()
            row = [trainer.steps, round(trainer.seconds), round(sum(losses) / len(losses), 5), round(rate, 3)]
            log.writerow(row)
            print(*row, time.strftime("%H:%M:%S"), flush=True)
            losses.clear()
        if log and trainer.steps % 250 == 0:
            trainer.save()
        if stopping:
            break
    if log:
        trainer.save()


if __name__ == "__main__":
    main()
