"""What the training scripts share: the three networks, the training set, mixed-precision training with checkpoints."""

import json
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as workers
from diffusers import AutoencoderKL, UNet2DConditionModel
from diffusers.models.attention_processor import AttnProcessor
from torch import nn
from torch.nn import functional as F
from transformers import CLIPTextConfig, CLIPTextModel

VOCABULARY, POSITIONS, START, END = 49408, 77, 49406, 49407
TEXT_WIDTH = 64


def autoencoder():
    """8x, 4 latent channels, 2.7 M parameters."""
    return AutoencoderKL(
        sample_size=128,
        block_out_channels=(16, 32, 64, 128),
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        layers_per_block=1,
        latent_channels=4,
        norm_num_groups=8,
    )


def unet():
    """5.6 M parameters, 0.59 GMAC an image: plain blocks at 16x16, text at 8x8, where attention is cheap.

    128 channels in 8 groups, because bfloat16 group norm in channels-last is slow below 16 channels a group.
    """
    return UNet2DConditionModel(
        sample_size=16,
        in_channels=4,
        out_channels=4,
        block_out_channels=(128, 128),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=TEXT_WIDTH,
        attention_head_dim=4,  # diffusers takes this for the number of heads
        layers_per_block=1,
        norm_num_groups=8,
    )


def text_encoder(vocabulary=VOCABULARY):
    config = CLIPTextConfig(
        vocab_size=vocabulary,
        hidden_size=TEXT_WIDTH,
        projection_dim=TEXT_WIDTH,
        intermediate_size=4 * TEXT_WIDTH,
        num_hidden_layers=4,
        num_attention_heads=4,
        max_position_embeddings=POSITIONS,
        hidden_act="quick_gelu",
        bos_token_id=START,
        eos_token_id=END,
        pad_token_id=END if vocabulary == VOCABULARY else None,
    )
    config._attn_implementation = "eager"
    return CLIPTextModel(config)


def load_images(work):
    """uint8 [N,3,128,128], channels last in memory."""
    return torch.from_numpy(np.load(Path(work) / "images.npy")).permute(0, 3, 1, 2)


def to_network(images):
    """uint8 0..255 to float -1..1."""
    return images.float() / 127.5 - 1


def to_image(pixels):
    """float -1..1 to uint8 0..255."""
    return ((pixels.float().clamp(-1, 1) + 1) * 127.5).round().byte()


def load_captions(work):
    return json.loads((Path(work) / "captions.json").read_text())


class PlanarGroupNorm(nn.GroupNorm):
    """Group norm on planar memory: in bfloat16 that is several times faster where a group has few channels."""

    def forward(self, x):
        return F.group_norm(x.contiguous(), self.num_groups, self.weight, self.bias, self.eps)


def speed_up(model, planar_norms=False):
    """Picks the operators that are fast in bfloat16 on a CPU; the mathematics stays."""
    if hasattr(model, "set_attn_processor"):
        model.set_attn_processor(AttnProcessor())  # the fused attention is slow backwards
    if planar_norms:
        for module in model.modules():
            if type(module) is nn.GroupNorm:
                module.__class__ = PlanarGroupNorm
    return model.to(memory_format=torch.channels_last) if hasattr(model, "conv_in") else model


def join_workers():
    """This process' number among the workers torchrun (or RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT) tells of."""
    if "RANK" not in os.environ:
        return 0
    workers.init_process_group("gloo")
    return workers.get_rank()


def over_workers(values):
    """The mean of a flat float32 tensor over the workers, in place."""
    if workers.is_initialized():
        workers.all_reduce(values)
        values /= workers.get_world_size()
    return values


def orthogonal(matrices):
    """The nearest matrices with orthonormal rows or columns, roughly: five Newton-Schulz steps with Jordan's quintic.

    matrices: [count,rows,columns] of any scale, in bfloat16.
    """
    x = matrices if matrices.shape[1] <= matrices.shape[2] else matrices.mT
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=-4.7750, alpha=2.0315), x, beta=3.4445)
    return x if matrices.shape[1] <= matrices.shape[2] else x.mT


class Muon:
    """Momentum made orthogonal (Jordan 2024), for weights that are matrices; scaled so that an update's root mean
    square is 0.2 of the learning rate, as AdamW's is about (Liu et al. 2025). It learns in fewer steps than AdamW.

    weights: {key: float32 tensor [rows, ...]}.
    """

    MOMENTUM = 0.95

    def __init__(self, weights):
        self.weights, alike = weights, {}
        for key, w in weights.items():
            alike.setdefault(w.flatten(1).shape, []).append(key)
        self.alike = {f"{rows}x{columns}": keys for (rows, columns), keys in alike.items()}  # treated in one go
        self.momentum = {
            shape: torch.stack([torch.zeros_like(weights[key]).flatten(1) for key in keys])
            for shape, keys in self.alike.items()
        }

    def step(self, rate):
        for shape, keys in self.alike.items():
            gradients, momentum = torch.stack([self.weights[key].grad.flatten(1) for key in keys]), self.momentum[shape]
            momentum.lerp_(gradients, 1 - self.MOMENTUM)
            updates = orthogonal(gradients.lerp_(momentum, self.MOMENTUM).bfloat16())
            scale = -0.2 * rate * max(updates.shape[1:]) ** 0.5
            for key, update in zip(keys, updates):
                self.weights[key].add_(update.view_as(self.weights[key]), alpha=scale)


class Trainer:
    """Muon and AdamW on float32 weights for networks that compute in another type; a moving average, checkpoints.

    networks: {name: module}; they compute in `dtype`, every parameter is mirrored in float32, and those that get a
    gradient are trained: matrices outside the token tables by Muon (at `muon_rate`, 0 for never), the rest by AdamW.
    Several workers each bring the gradient of their own batch and take the same step.
    """

    def __init__(self, networks, checkpoint, dtype, learning_rate, weight_decay, average, muon_rate=0.0):
        self.networks, self.checkpoint, self.average = networks, Path(checkpoint), average
        self.live = {f"{name}.{key}": p for name, net in networks.items() for key, p in net.named_parameters()}
        # Planar, as the gradients are handed over: the fused AdamW takes it for granted that their strides agree.
        planar = torch.contiguous_format
        self.master = {key: p.detach().float().clone(memory_format=planar) for key, p in self.live.items()}
        self.mean = {key: p.clone() for key, p in self.master.items()}
        for network in networks.values():
            network.to(dtype)
        matrices = {key: w for key, w in self.master.items() if w.dim() > 1 and "embedding.weight" not in key}
        self.muon = Muon(matrices if muon_rate else {})
        self.muon_rate = muon_rate
        self.optimizer = torch.optim.AdamW(
            [w for key, w in self.master.items() if key not in self.muon.weights],
            lr=learning_rate,
            betas=(0.9, 0.99),
            weight_decay=weight_decay,
            fused=True,
        )
        self.learning_rate, self.steps, self.seconds = learning_rate, 0, 0.0
        if self.checkpoint.exists():
            self.resume()

    def resume(self):
        state = torch.load(self.checkpoint, weights_only=True)
        for key in self.master:
            self.master[key].copy_(state["master"][key])
            self.mean[key].copy_(state["mean"][key])
        self.optimizer.load_state_dict(state["optimizer"])
        self.muon.momentum |= state["momentum"]
        for moments in self.optimizer.state.values():
            moments.update({key: value.contiguous() for key, value in moments.items()})
        self.steps, self.seconds = state["steps"], state["seconds"]
        self.spread()

    def save(self):
        state = {
            "master": self.master,
            "mean": self.mean,
            "optimizer": self.optimizer.state_dict(),
            "momentum": self.muon.momentum,
            "steps": self.steps,
            "seconds": self.seconds,
        }
        torch.save(state, self.checkpoint.with_suffix(".new"))
        self.checkpoint.with_suffix(".new").replace(self.checkpoint)

    @torch.no_grad()
    def spread(self):
        """Copies the float32 weights into the networks."""
        for key, p in self.live.items():
            p.copy_(self.master[key])

    def step(self, loss, rate):
        """One update at `rate` times the learning rate."""
        loss.backward()
        with torch.no_grad():
            trained = {key: p for key, p in self.live.items() if p.grad is not None}
            gradients = over_workers(torch.cat([p.grad.flatten().float() for p in trained.values()]))
            gradients *= (1 / (gradients.norm() + 1e-6)).clamp(max=1)
            for (key, p), part in zip(trained.items(), gradients.split([p.numel() for p in trained.values()])):
                self.master[key].grad = part.view_as(p)
                p.grad = None
            for group in self.optimizer.param_groups:
                group["lr"] = self.learning_rate * rate
            self.optimizer.step()
            self.muon.step(self.muon_rate * rate)
            self.spread()
            self.steps += 1
            decay = min(self.average, (1 + self.steps) / (10 + self.steps))
            torch._foreach_lerp_(list(self.mean.values()), list(self.master.values()), 1 - decay)

    def averaged(self, name):
        """The moving average of network `name`'s parameters, as a state dict."""
        return {key.removeprefix(name + "."): p for key, p in self.mean.items() if key.startswith(name + ".")}


def rate_at(step, total, warmup, cooldown):
    """Linear warm-up, a plateau, and a linear fall to 2 % over the last `cooldown` (a share) of the steps."""
    return min(1.0, (step + 1) / warmup, max(0.02, (total - step) / (cooldown * total)))
