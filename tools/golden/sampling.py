"""Schedules, samplers and noise: reference values from diffusers and, for what it lacks, k-diffusion.

Writes sampling.safetensors (tensors; every fourth value of a latent) and cases.json (what they are). Every sampler draws
one 4x8x8 latent with a small rational function in place of the network, so that the values do not depend on anybody's exp().
"""
import inspect
import itertools
import json
import sys
import types

import diffusers
import torch
from diffusers.schedulers import AysSchedules
from safetensors.torch import save_file

SHAPE = (1, 4, 8, 8)
SEED = 7
STEPS = (1, 2, 5, 20)
SD15 = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear", "num_train_timesteps": 1000}
LEADING = {"timestep_spacing": "leading", "steps_offset": 1}
TRAILING_V = {"timestep_spacing": "trailing", "prediction_type": "v_prediction"}

# Our name: diffusers' class and the settings that make it the same sampler.
DIFFUSERS = {
    "Euler": ("EulerDiscreteScheduler", {}),
    "Euler a": ("EulerAncestralDiscreteScheduler", {}),
    "Heun": ("HeunDiscreteScheduler", {}),
    "DPM2": ("KDPM2DiscreteScheduler", {}),
    "DPM2 a": ("KDPM2AncestralDiscreteScheduler", {}),
    "DPM++ 2M": ("DPMSolverMultistepScheduler", {}),
    "DPM++ 2M SDE": ("DPMSolverMultistepScheduler", {"algorithm_type": "sde-dpmsolver++"}),
    "UniPC": ("UniPCMultistepScheduler", {}),
    "DDIM": ("DDIMScheduler", {"clip_sample": False}),
    "DDPM": ("DDPMScheduler", {"clip_sample": False}),
    "PLMS": ("PNDMScheduler", {"skip_prk_steps": True}),
    "LMS": ("LMSDiscreteScheduler", {}),
    "LCM": ("LCMScheduler", {}),
    "TCD": ("TCDScheduler", {}),
}
K_DIFFUSION = {
    "DPM++ SDE": "sample_dpmpp_sde",
    "DPM++ 2S a": "sample_dpmpp_2s_ancestral",
    "DPM++ 3M SDE": "sample_dpmpp_3m_sde",
}
TWO_PASSES = ("Heun", "DPM2", "DPM2 a")
OWN_TIMESTEPS = ("LCM", "TCD")
SPREADS = {"Karras": "use_karras_sigmas", "Exponential": "use_exponential_sigmas", "Beta": "use_beta_sigmas"}


def network(x, t):
    z = x * 0.7 + float(t) * 0.001 - 0.3
    return z / (1.0 + z * z * 0.25) * 0.8 + x * 0.2


def cases():
    """(sampler, config, steps, begin): what to draw."""
    for name in DIFFUSERS:
        _, extra = DIFFUSERS[name]
        spacings = [{}] if name in OWN_TIMESTEPS else [LEADING]
        variants = [s | {"prediction_type": p} for s, p in itertools.product(spacings, ("epsilon", "v_prediction"))]
        variants += [] if name in OWN_TIMESTEPS else [TRAILING_V | {"prediction_type": "epsilon"}]
        for variant, steps in itertools.product(variants, STEPS):
            yield name, SD15 | extra | variant, steps, 0
    # Linspace and the spreads, where the class has them. (DDIM's own linspace steps to the wrong level.)
    for name in ("Euler", "Heun", "DPM2", "DPM2 a", "DPM++ 2M", "DPM++ 2M SDE", "UniPC", "LMS"):
        _, extra = DIFFUSERS[name]
        yield name, SD15 | extra | {"timestep_spacing": "linspace"}, 5, 0
        for key in SPREADS.values():
            yield name, SD15 | extra | LEADING | {key: True}, 7, 0
    yield "Euler a", SD15 | {"timestep_spacing": "linspace"}, 5, 0
    # Zero terminal SNR.
    for name in ("Euler", "Euler a", "DPM++ 2M", "DPM++ 2M SDE", "UniPC", "DDIM", "DDPM", "LCM", "TCD"):
        _, extra = DIFFUSERS[name]
        spacing = {} if name in OWN_TIMESTEPS else {"timestep_spacing": "trailing"}
        zero = {"rescale_betas_zero_snr": True, "prediction_type": "v_prediction"}
        for steps in (2, 5):
            yield name, SD15 | extra | spacing | zero, steps, 0
    # Sample prediction.
    for name in ("Euler", "Heun", "DPM++ 2M", "UniPC", "DDIM", "DDPM", "LMS", "LCM", "TCD"):
        _, extra = DIFFUSERS[name]
        yield name, SD15 | extra | {"prediction_type": "sample"}, 5, 0
    # Image to image: the first steps left out.
    for name, begin in itertools.product(("Euler", "Heun", "DPM2 a", "DPM++ 2M", "UniPC", "DDIM", "DDPM", "PLMS"), (1, 2, 4)):
        _, extra = DIFFUSERS[name]
        yield name, SD15 | extra | LEADING, 6, begin
    # Settings of single classes, and other betas.
    singles = [
        ("Euler", {"final_sigmas_type": "sigma_min"}),
        ("Euler", {"interpolation_type": "log_linear"}),
        ("Euler", {"beta_schedule": "linear"}),
        ("Euler", {"beta_schedule": "squaredcos_cap_v2"}),
        ("DPM++ 2M", {"beta_schedule": "squaredcos_cap_v2", "use_karras_sigmas": True}),
        ("DPM++ 2M", {"beta_schedule": "squaredcos_cap_v2", "lambda_min_clipped": -5.1}),
        ("DPM++ 2M", {"final_sigmas_type": "sigma_min"}),
        ("DPM++ 2M", {"solver_order": 3}),
        ("DPM++ 2M", {"solver_order": 3, "final_sigmas_type": "sigma_min", "lower_order_final": False}),
        ("DPM++ 2M", {"solver_order": 1}),
        ("DPM++ 2M", {"solver_type": "heun"}),
        ("DPM++ 2M", {"euler_at_final": True}),
        ("DPM++ 2M SDE", {"solver_type": "heun", "algorithm_type": "sde-dpmsolver++"}),
        ("UniPC", {"solver_order": 3}),
        ("UniPC", {"solver_order": 3, "solver_type": "bh1", "final_sigmas_type": "sigma_min"}),
        ("UniPC", {"solver_order": 1}),
        ("UniPC", {"disable_corrector": [0, 2]}),
        ("UniPC", {"final_sigmas_type": "sigma_min", "lower_order_final": False}),
        ("DDIM", {"set_alpha_to_one": False}),
        ("DDPM", {"variance_type": "fixed_large"}),
        ("PLMS", {"set_alpha_to_one": True}),
        ("PLMS", {"skip_prk_steps": False, "prediction_type": "v_prediction"}),
        ("PLMS", {"skip_prk_steps": False}),
        ("LCM", {"original_inference_steps": 100, "timestep_scaling": 5.0}),
    ]
    for name, setting in singles:
        _, extra = DIFFUSERS[name]
        for steps in (8, 16):
            yield name, SD15 | extra | ({} if name in OWN_TIMESTEPS else LEADING) | setting, steps, 0
    for eta in (0.0, 0.5, 1.0):
        yield "DDIM", SD15 | DIFFUSERS["DDIM"][1] | LEADING | {"eta": eta}, 5, 0
        yield "TCD", SD15 | {"eta": eta}, 5, 0
    for name in K_DIFFUSION:
        for variant, steps in itertools.product((LEADING, LEADING | {"prediction_type": "v_prediction"},
                                                 TRAILING_V | {"prediction_type": "epsilon"}), STEPS):
            if name == "DPM++ 3M SDE" and steps == 1:
                continue  # k-diffusion trips over its own h; the step is Euler's to zero
            yield name, SD15 | variant, steps, 0


def start(scheduler, generator, begin, timesteps):
    noise = torch.randn(SHAPE, generator=generator)
    if begin == 0:
        return noise * scheduler.init_noise_sigma
    return scheduler.add_noise(torch.ones(SHAPE) * 0.5, noise, timesteps[:1])


class DoublePrecision:
    """Stands in for the module torch inside a scheduler: what it casts to float32 stays double."""
    float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


def draw_diffusers(name, config, steps, begin):
    config = dict(config)
    eta = {"eta": config.pop("eta")} if "eta" in config else {}
    scheduler = getattr(diffusers, DIFFUSERS[name][0])(**config)
    scheduler.set_timesteps(steps)
    passes = 2 if name in TWO_PASSES else 1
    timesteps = scheduler.timesteps[begin * passes:]
    if begin and hasattr(scheduler, "set_begin_index"):
        scheduler.set_begin_index(begin * passes)
    generator = torch.Generator().manual_seed(SEED)
    x = start(scheduler, generator, begin, timesteps)
    precise = config.get("rescale_betas_zero_snr") and name in ("Euler", "Euler a")
    if precise:
        # Latents start 4096 large: in single precision the step's own rounding would be 1e-4 of the image.
        scheduler.sigmas = scheduler.sigmas.double()
        sys.modules[type(scheduler).__module__].torch = DoublePrecision()
    takes_generator = "generator" in inspect.signature(scheduler.step).parameters
    for t in timesteps:
        prediction = network(scheduler.scale_model_input(x, t).float(), t)
        sample = x.double() if precise else x
        x = scheduler.step(prediction, t, sample, **eta, **({"generator": generator} if takes_generator else {})).prev_sample
    sys.modules[type(scheduler).__module__].torch = torch
    levels = scheduler.timesteps[::passes].double()
    if name == "PLMS":  # one line a level: the passes list the second twice, Runge-Kutta steps four times
        levels = torch.tensor(scheduler._timesteps[::-1].copy()).double()
    if hasattr(scheduler, "sigmas"):
        sigmas = scheduler.sigmas.double()
        sigmas = torch.cat([sigmas[:2 * steps - 1:2], sigmas[-1:]]) if passes == 2 else sigmas
    else:
        alphas = scheduler.alphas_cumprod[levels.long()].double()
        sigmas = ((1 - alphas) / alphas) ** 0.5
    return x, levels, sigmas


def k_diffusion():
    """k_diffusion without its evaluation tools, whose imports are heavy and old."""
    for module in ("clip", "cleanfid", "cleanfid.inception_torchscript"):
        sys.modules.setdefault(module, types.ModuleType(module))
    sys.modules["cleanfid.inception_torchscript"].InceptionV3W = None
    import k_diffusion
    return k_diffusion


def draw_k_diffusion(name, config, steps):
    k = k_diffusion()
    scheduler = diffusers.EulerDiscreteScheduler(**config)
    scheduler.set_timesteps(steps)
    kind = "DiscreteEpsDDPMDenoiser" if config.get("prediction_type", "epsilon") == "epsilon" else "DiscreteVDDPMDenoiser"
    model = getattr(k.external, kind)(network, scheduler.alphas_cumprod, quantize=False).double()
    generator = torch.Generator().manual_seed(SEED)
    x = start(scheduler, generator, 0, None).double()
    draw = getattr(k.sampling, K_DIFFUSION[name])
    x = draw(model, x, scheduler.sigmas.double(), disable=True, noise_sampler=lambda *_: torch.randn(SHAPE, generator=generator))
    return x, scheduler.timesteps.double(), scheduler.sigmas.double()


def noise_cases(tensors):
    """Calls of torch.randn on one generator, of both paths and with lengths that are no multiple of 16."""
    for seed, shapes in ((0, [16]), (42, [4 * 16 * 16]), (43, [8, 3, 15, 17, 2, 31, 5]), (2**32 + 5, [100, 1]),
                         (2**63 - 1, [7, 16, 7])):
        generator = torch.Generator().manual_seed(seed)
        tensors[f"noise.{seed}.{'-'.join(map(str, shapes))}"] = torch.cat(
            [torch.randn(n, generator=generator) for n in shapes])
    # Of a whole latent, too large to store: the bits of all values, summed.
    for shape in (4 * 64 * 64, 4 * 128 * 128, 3 * 37 * 41):
        bits = torch.randn(shape, generator=torch.Generator().manual_seed(42)).view(torch.int32)
        tensors[f"noise_sum.42.{shape}"] = bits.long().sum().reshape(1)


def schedule_cases(tensors):
    """Timesteps and sigmas alone: spacings at every step count of a few, and the align-your-steps tables."""
    for spacing, steps in itertools.product(("leading", "linspace", "trailing"), (3, 4, 9, 13, 30, 50, 100, 500)):
        for name in ("Euler", "DPM++ 2M", "DDIM"):
            config = SD15 | DIFFUSERS[name][1] | {"timestep_spacing": spacing, "steps_offset": 1}
            scheduler = getattr(diffusers, DIFFUSERS[name][0])(**config)
            scheduler.set_timesteps(steps)
            tensors[f"timesteps.{name}.{spacing}.{steps}"] = scheduler.timesteps.double().float()
    for family in ("StableDiffusion", "StableDiffusionXL"):
        sigmas = AysSchedules[f"{family}Sigmas"]
        scheduler = diffusers.EulerDiscreteScheduler(**SD15)
        scheduler.set_timesteps(sigmas=sigmas)
        tensors[f"ays.{family}.sigmas"] = scheduler.sigmas
        tensors[f"ays.{family}.timesteps"] = scheduler.timesteps


def guidance_cases(tensors):
    from diffusers.pipelines.stable_diffusion.pipeline_stable_diffusion import rescale_noise_cfg
    generator = torch.Generator().manual_seed(SEED)
    cond, uncond = torch.randn((2, 4, 4, 4), generator=generator), torch.randn((2, 4, 4, 4), generator=generator) * 0.5
    guided = uncond + 7.5 * (cond - uncond)
    tensors |= {"guidance.cond": cond, "guidance.uncond": uncond, "guidance.plain": guided,
                "guidance.rescaled": rescale_noise_cfg(guided, cond, guidance_rescale=0.7)}


def make(out_dir):
    tensors, listed = {}, []
    for name, config, steps, begin in cases():
        draw = draw_diffusers(name, config, steps, begin) if name in DIFFUSERS else draw_k_diffusion(name, config, steps)
        key = str(len(listed))
        x, timesteps, sigmas = draw
        assert torch.isfinite(x).all(), (name, config, steps)
        for part, value in (("x", x.flatten()[::4]), ("timesteps", timesteps), ("sigmas", sigmas)):
            tensors[f"{key}.{part}"] = value.float().contiguous()
        listed.append({"key": key, "sampler": name, "config": config, "steps": steps, "begin": begin})
    noise_cases(tensors)
    schedule_cases(tensors)
    guidance_cases(tensors)
    save_file(tensors, out_dir / "sampling.safetensors")
    (out_dir / "sampling.safetensors").chmod(0o644)
    (out_dir / "cases.json").write_text("[\n" + ",\n".join(json.dumps(c) for c in listed) + "\n]\n")
