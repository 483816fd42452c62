"""Tiny random-weight models of every family, and what diffusers draws with them.

Writes OUT/<family>/ (a diffusers folder without tokenizer), OUT/<case>.safetensors (networks: inputs and outputs;
pipelines: "latents" [N,4,h,w] and "image" uint8 [N,H,W,3]) and OUT/cases.json: a list of
{"name", "family", "request": {...}, "file"} whose request fields are those of the command line.
"""
import json
import pathlib
import tempfile

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

import diffusers as D
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VOCABULARY = ROOT / "third_party" / "clip" / "bpe_simple_vocab_16e6.txt.gz"
if not hasattr(CLIPTextModel, "text_model"):  # transformers 5 dropped it; diffusers' clip_skip still asks for it
    CLIPTextModel.text_model = property(lambda self: self)
WIDTH = 8  # of the text encoders: their token tables dominate the size of the files


def text_encoder(cls, act, layers, projection=WIDTH):
    model = cls(CLIPTextConfig(vocab_size=49408, hidden_size=WIDTH, intermediate_size=24, num_hidden_layers=layers,
                               num_attention_heads=2, max_position_embeddings=77, hidden_act=act,
                               projection_dim=projection, bos_token_id=49406, eos_token_id=49407))
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(0, 0.5 if "embedding" in name else 0.25)
            if "norm" in name and name.endswith("weight"):
                p.normal_(1, 0.1)
        table = model.get_input_embeddings().weight  # repeats, so that it packs well
        table.copy_(table[:61].repeat(811, 1)[:49408])
    return model


def spread(model, seed):
    """Random weights under which every layer matters: the library's own start leaves some at zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim > 1:
                p.copy_(torch.randn(p.shape, generator=generator) * (1.0 / np.sqrt(p[0].numel())))
            elif name.endswith("bias"):
                p.copy_(torch.randn(p.shape, generator=generator) * 0.1)
            else:
                p.copy_(1 + torch.randn(p.shape, generator=generator) * 0.1)
    return model


def vae(scaling):
    return D.AutoencoderKL(block_out_channels=(8, 8, 16, 16), down_block_types=("DownEncoderBlock2D",) * 4,
                           up_block_types=("UpDecoderBlock2D",) * 4, layers_per_block=1, latent_channels=4,
                           norm_num_groups=4, sample_size=64, scaling_factor=scaling)


CROSS = ("CrossAttnDownBlock2D", "DownBlock2D"), ("UpBlock2D", "CrossAttnUpBlock2D")
XL = ("DownBlock2D", "CrossAttnDownBlock2D"), ("CrossAttnUpBlock2D", "UpBlock2D")


def unet(blocks, **more):
    down, up = blocks
    return D.UNet2DConditionModel(sample_size=8, block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8,
                                  down_block_types=down, up_block_types=up, **more)


SCHEDULE = dict(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear")


def make_families():
    """name -> (pipeline class, components, pad token of each tokenizer, dtype on disk)"""
    torch.manual_seed(1)
    return {
        "sd1": (D.StableDiffusionPipeline, dict(
            unet=spread(unet(CROSS, cross_attention_dim=WIDTH, attention_head_dim=2), 1), vae=spread(vae(0.18215), 2),
            text_encoder=text_encoder(CLIPTextModel, "quick_gelu", 3),
            scheduler=D.PNDMScheduler(skip_prk_steps=True, steps_offset=1, set_alpha_to_one=False, **SCHEDULE)),
            ["<|endoftext|>"], torch.float16),
        "sd2": (D.StableDiffusionPipeline, dict(
            unet=spread(unet(CROSS, cross_attention_dim=WIDTH, attention_head_dim=[2, 4], use_linear_projection=True), 3),
            vae=spread(vae(0.18215), 4), text_encoder=text_encoder(CLIPTextModel, "gelu", 2),
            scheduler=D.DDIMScheduler(prediction_type="v_prediction", steps_offset=1, set_alpha_to_one=False,
                                      clip_sample=False, **SCHEDULE)),
            ["!"], torch.bfloat16),
        "sdxl": (D.StableDiffusionXLPipeline, dict(
            unet=spread(unet(XL, cross_attention_dim=2 * WIDTH, attention_head_dim=[2, 4], use_linear_projection=True,
                             transformer_layers_per_block=[1, 2], addition_embed_type="text_time",
                             addition_time_embed_dim=8, projection_class_embeddings_input_dim=6 * 8 + 12), 5),
            vae=spread(vae(0.13025), 6), text_encoder=text_encoder(CLIPTextModel, "quick_gelu", 3),
            text_encoder_2=text_encoder(CLIPTextModelWithProjection, "gelu", 3, 12),
            scheduler=D.EulerDiscreteScheduler(timestep_spacing="leading", steps_offset=1, **SCHEDULE)),
            ["<|endoftext|>", "!"], torch.float32),
    }


def tokenizer_script():
    import importlib.util
    spec = importlib.util.spec_from_file_location("make_tokenizer", ROOT / "tools" / "train_emoji" / "make_tokenizer.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_tokenizer(pad, folder):
    tokenizer_script().main(VOCABULARY, pathlib.Path(folder))
    return CLIPTokenizer.from_pretrained(folder, pad_token=pad)


SCHEDULERS = {
    "Euler": lambda c: D.EulerDiscreteScheduler.from_config(c),
    "Euler a": lambda c: D.EulerAncestralDiscreteScheduler.from_config(c),
    "DPM++ 2M Karras": lambda c: D.DPMSolverMultistepScheduler.from_config(c, use_karras_sigmas=True),
    "UniPC": lambda c: D.UniPCMultistepScheduler.from_config(c),
    "DDIM": lambda c: D.DDIMScheduler.from_config(c, clip_sample=False),  # as the published models' files say
    "Heun": lambda c: D.HeunDiscreteScheduler.from_config(c),
}

CASES = [  # family, name, request
    ("sd1", "default", dict(prompt="a red apple", steps=5, seed=42)),
    ("sd1", "negative", dict(prompt="a red apple", negative_prompt="blurry, dark", steps=4, seed=7, sampler="Euler")),
    ("sd1", "no_guidance", dict(prompt="a cat", guidance=1.0, steps=3, seed=1, sampler="Euler")),
    ("sd1", "odd_size", dict(prompt="a cat", width=72, height=40, steps=3, seed=3, sampler="Euler")),
    ("sd1", "batch", dict(prompt="two dogs", images=2, steps=4, seed=10, sampler="Euler a")),
    ("sd1", "karras", dict(prompt="a house", steps=6, seed=5, sampler="DPM++ 2M Karras")),
    ("sd1", "unipc", dict(prompt="a house", steps=6, seed=5, sampler="UniPC")),
    ("sd1", "heun", dict(prompt="a house", steps=3, seed=5, sampler="Heun")),
    ("sd1", "clip_skip", dict(prompt="a house", steps=3, seed=5, sampler="Euler", clip_skip=2)),
    ("sd1", "rescale", dict(prompt="a house", steps=3, seed=5, sampler="Euler", guidance_rescale=0.7)),
    ("sd1", "img2img", dict(prompt="a house", steps=5, seed=5, sampler="DDIM", strength=0.6, init="init.png")),
    ("sd1", "inpaint", dict(prompt="a house", steps=5, seed=5, sampler="DDIM", strength=0.8, init="init.png",
                            mask="mask.png")),
    ("sd2", "default", dict(prompt="a blue bird", steps=5, seed=42)),
    ("sd2", "euler", dict(prompt="a blue bird", negative_prompt="", steps=5, seed=2, sampler="Euler")),
    ("sdxl", "default", dict(prompt="a green car", steps=5, seed=42)),
    ("sdxl", "empty_negative", dict(prompt="a green car", negative_prompt="", steps=3, seed=42)),
    ("sdxl", "negative", dict(prompt="a green car", negative_prompt="red", steps=3, seed=42)),
    ("sdxl", "sizes", dict(prompt="a green car", steps=3, seed=4, original_size=[512, 768], target_size=[1024, 640],
                           crop_top=16, crop_left=8)),
    ("sdxl", "clip_skip", dict(prompt="a green car", steps=3, seed=4, clip_skip=2)),
    ("sdxl", "img2img", dict(prompt="a green car", steps=5, seed=6, strength=0.5, init="init.png")),
]
CLASSES = {
    ("sd1", "img2img"): D.StableDiffusionImg2ImgPipeline, ("sd1", "inpaint"): D.StableDiffusionInpaintPipeline,
    ("sdxl", "img2img"): D.StableDiffusionXLImg2ImgPipeline,
}


def run_case(pipe, family, name, r, out):
    cls = CLASSES.get((family, name))
    pipe = cls(**{k: v for k, v in pipe.components.items() if k != "image_encoder"},
               **({"requires_safety_checker": False} if family != "sdxl" else {})) if cls else pipe
    base = pipe.scheduler
    if "sampler" in r:
        pipe.scheduler = SCHEDULERS[r["sampler"]](base.config)
    n = r.get("images", 1)
    call = dict(prompt=[r["prompt"]] * n, num_inference_steps=r["steps"], guidance_scale=r.get("guidance", 7.5),
                generator=[torch.Generator().manual_seed(r["seed"] + i) for i in range(n)])
    if "negative_prompt" in r:
        call["negative_prompt"] = [r["negative_prompt"]] * n
    if "clip_skip" in r:
        call["clip_skip"] = r["clip_skip"] - 1
    if "guidance_rescale" in r:
        call["guidance_rescale"] = r["guidance_rescale"]
    if "init" in r:
        call |= dict(image=Image.open(out / r["init"]), strength=r["strength"])
    else:
        call |= dict(width=r.get("width", 64), height=r.get("height", 64))
    if "mask" in r:
        call |= dict(mask_image=Image.open(out / r["mask"]), width=64, height=64)
    if "original_size" in r:
        swap = lambda size: (size[1], size[0])  # requests say width, height
        call |= dict(original_size=swap(r["original_size"]), target_size=swap(r["target_size"]),
                     crops_coords_top_left=(r["crop_top"], r["crop_left"]))
    latents = pipe(output_type="latent", **call).images
    call["generator"] = [torch.Generator().manual_seed(r["seed"] + i) for i in range(n)]
    images = np.stack([np.asarray(image) for image in pipe(output_type="pil", **call).images])
    pipe.scheduler = base
    save_file({"latents": latents.float().contiguous(), "image": torch.from_numpy(images)},
              out / f"{family}_{name}.safetensors")


@torch.no_grad()
def network_cases(family, c, out):
    """Each network alone, on random inputs."""
    g = torch.Generator().manual_seed(9)
    u, v = c["unet"], c["vae"]
    ids = torch.randint(0, 49406, (2, 77), generator=g)
    ids[:, 0], ids[0, 20:], ids[1, 76] = 49406, 49407, 49407
    x, t = torch.randn(2, 4, 8, 6, generator=g), torch.tensor([17.0, 801.5])
    context = torch.randn(2, 77, u.config.cross_attention_dim, generator=g)
    picture = torch.rand(1, 3, 64, 48, generator=g) * 2 - 1
    tensors = {"ids": ids.int(), "sample": x, "timestep": t, "context": context, "picture": picture}
    extra = None
    if family == "sdxl":
        extra = {"text_embeds": torch.randn(2, 12, generator=g),
                 "time_ids": torch.tensor([[64.0, 48, 0, 0, 64, 48], [128, 96, 8, 16, 32, 40]])}
        tensors |= extra
    tensors["unet"] = u(x, t, context, added_cond_kwargs=extra).sample
    tensors["moments"] = v.encode(picture).latent_dist.parameters
    tensors["decoded"] = v.decode(x[:1]).sample
    for name in ("text_encoder", "text_encoder_2"):
        if name in c:
            result = c[name](ids, output_hidden_states=True)
            tensors[name + ".last"] = result.last_hidden_state
            tensors[name + ".penultimate"] = result.hidden_states[-2]
            if hasattr(result, "text_embeds"):
                tensors[name + ".pooled"] = result.text_embeds
    save_file({k: w.contiguous().clone() for k, w in tensors.items()}, out / f"{family}_networks.safetensors")


def make(out):
    out = pathlib.Path(out)
    rng = np.random.RandomState(3)
    small = Image.fromarray(rng.randint(0, 256, (8, 8, 3), np.uint8)).resize((64, 64), Image.BICUBIC)
    small.save(out / "init.png")
    mask = np.zeros((64, 64), np.uint8)
    mask[16:48, 24:56] = 255
    Image.fromarray(mask).save(out / "mask.png")
    cases = []
    for family, (cls, components, pads, dtype) in make_families().items():
        with tempfile.TemporaryDirectory() as folder:
            tokenizers = {f"tokenizer{'_2' if i else ''}": make_tokenizer(pad, f"{folder}/{i}")
                          for i, pad in enumerate(pads)}
            for model in components.values():  # what is stored is what runs
                if isinstance(model, torch.nn.Module):
                    model.to(dtype).float().eval()
            scheduler = components["scheduler"]  # as a user gets it: from the file, in which every key is given
            scheduler.save_pretrained(out / family / "scheduler")
            components["scheduler"] = type(scheduler).from_pretrained(out / family / "scheduler")
            more = {} if family == "sdxl" else dict(safety_checker=None, feature_extractor=None, requires_safety_checker=False)
            pipe = cls(**components, **tokenizers, **more)
            pipe.set_progress_bar_config(disable=True)
            network_cases(family, components, out)
            for case_family, name, request in CASES:
                if case_family == family:
                    run_case(pipe, family, name, request, out)
                    cases.append({"name": f"{family}_{name}", "family": family, "request": request,
                                  "file": f"{family}_{name}.safetensors"})
            for model in components.values():
                if isinstance(model, torch.nn.Module):
                    model.to(dtype)
            pipe.save_pretrained(out / family)
            for tokenizer in tokenizers:  # only the pad token matters to Sfumato
                for path in (out / family / tokenizer).iterdir():
                    path.unlink()
                (out / family / tokenizer / "special_tokens_map.json").write_text(
                    json.dumps({"pad_token": pads[tokenizer.endswith("_2")]}))
    (out / "cases.json").write_text(json.dumps(cases, indent=1))
