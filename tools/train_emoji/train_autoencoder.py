"""Trains the autoencoder: L1 + squared error + gradients + a small KL term. Resumes from WORK/autoencoder.pt.

First on random crops, then on whole images (--crop 128), which is how it will be used: group norm and attention see
the whole picture. With --freeze-encoder only the decoder goes on improving and the latents stay valid, so the UNet can
be trained at the same time.
"""

import argparse
import time
from pathlib import Path

import torch
from torch.nn import functional as F

from common import AutoencoderKL, Trainer, autoencoder, load_images, rate_at, speed_up, to_image, to_network


def psnr(images, decoded):
    """Decibels, one for each image; both uint8."""
    error = (images.float() - decoded.float()).square().mean((1, 2, 3))
    return 10 * torch.log10(255**2 / error)


@torch.no_grad()
def encode(model, images, batch=16):
    """Posterior means [N,4,16,16] in float32, not scaled."""
    means = [model.encode(to_network(part)).latent_dist.mean for part in images.split(batch)]
    return torch.cat(means)


@torch.no_grad()
def mean_psnr(model, images, batch=16):
    parts = [psnr(part, to_image(model.decode(encode(model, part)).sample)) for part in images.split(batch)]
    return torch.cat(parts).mean().item()


def random_crops(images, size):
    if size == images.shape[-1]:
        return images
    corners = torch.randint(0, images.shape[-1] + 1 - size, (len(images), 2))
    return torch.stack([x[:, i : i + size, j : j + size] for x, (i, j) in zip(images, corners.tolist())])


def gradients(x):
    return x[..., 1:, :] - x[..., :-1, :], x[..., 1:] - x[..., :-1]


def reconstruction_loss(output, target):
    sharp = sum((a - b).abs().mean() for a, b in zip(gradients(output), gradients(target)))
    coarse = (F.avg_pool2d(output, 4) - F.avg_pool2d(target, 4)).abs().mean()
    return F.l1_loss(output, target) + 4 * F.mse_loss(output, target) + 0.5 * sharp + 0.5 * coarse


def export(trainer, images, folder):
    """Writes the averaged weights (float32) with the scaling factor that gives the latents unit variance."""
    model = autoencoder()
    model.load_state_dict(trainer.averaged("vae"))
    model.eval()
    model.register_to_config(scaling_factor=round(1 / encode(model, images).std().item(), 4))
    model.save_pretrained(folder)
    print(f"mean PSNR {mean_psnr(model, images):.2f} dB, scaling factor {model.config.scaling_factor}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default="work")
    parser.add_argument("--start", help="a folder with an AutoencoderKL of this shape to start from")
    parser.add_argument("--steps", type=int, default=12000, help="in all, earlier sittings included")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--crop", type=int, default=128)
    parser.add_argument("--rate", type=float, default=4e-4)
    parser.add_argument("--cooldown", type=float, default=0.5)
    parser.add_argument("--freeze-encoder", action="store_true")
    parser.add_argument("--keep-latents", type=float, default=0.0, help="weight of the drift from the start's latents")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", default="bfloat16", help="bfloat16 where the CPU has AMX, else float32")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    dtype = getattr(torch, args.dtype)
    images = load_images(args.work)

    model = AutoencoderKL.from_pretrained(args.start, torch_dtype=torch.float32) if args.start else autoencoder()
    anchors = encode(model.eval(), images) if args.keep_latents else None
    for part in (model.encoder, model.quant_conv):
        part.requires_grad_(not args.freeze_encoder)
    speed_up(model, planar_norms=True)
    trainer = Trainer({"vae": model}, args.work / "autoencoder.pt", dtype, args.rate, 1e-4, 0.998)

    started, shown = time.process_time(), {}
    while trainer.steps < args.steps:
        rows = torch.randint(0, len(images), (args.batch,))
        target = to_network(random_crops(images[rows], args.crop)).contiguous(memory_format=torch.channels_last)
        with torch.set_grad_enabled(not args.freeze_encoder):
            posterior = model.encode(target.to(dtype)).latent_dist
        output = model.decode(posterior.sample()).sample.float()
        terms = {"l1": F.l1_loss(output, target), "loss": reconstruction_loss(output, target)}
        if not args.freeze_encoder:
            mean, logvar = posterior.mean.float(), posterior.logvar.float()
            terms["loss"] = terms["loss"] + 1e-3 * 0.5 * (mean.square() + logvar.exp() - 1 - logvar).mean()
            if anchors is not None and args.crop == 128:
                terms["drift"] = F.mse_loss(mean, anchors[rows])
                terms["loss"] = terms["loss"] + args.keep_latents * terms["drift"]
        trainer.step(terms["loss"], rate_at(trainer.steps, args.steps, 100, args.cooldown))
        for key, value in terms.items():
            shown[key] = 0.98 * shown.get(key, value.item()) + 0.02 * value.item()
        if trainer.steps % 100 == 0:
            trainer.seconds += time.process_time() - started
            started = time.process_time()
            figures = " ".join(f"{key} {value:.5f}" for key, value in shown.items())
            print(f"{trainer.steps} {trainer.seconds:.0f}s {figures}", flush=True)
        if trainer.steps % 500 == 0:
            trainer.save()
    trainer.save()
    export(trainer, images, args.work / "vae")


if __name__ == "__main__":
    main()
