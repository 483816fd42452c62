#!/usr/bin/env python3
"""Makes a full-size model folder of a real family with random fp16 weights: for memory, speed and comparison runs.

    python tools/make_random_models.py sd15|sd21|sdxl OUT             (2 to 6.5 GB; no network)
    python tools/make_random_models.py sd15|sd21|sdxl OUT --shapes    (a few KB: names and shapes only; models/synthetic)

The configurations are the published ones (tools/golden/keys.py), the tokenizer is CLIP's. What such a model draws is
noise, but every layer takes part in it. Needs tools/golden/requirements.txt.
"""
import argparse
import gc
import json
import pathlib
import sys

import torch

import diffusers as D
from golden import keys
from golden.pipelines import SCHEDULE, VOCABULARY, spread, tokenizer_script

SD = dict(safety_checker=[None, None], feature_extractor=[None, None], requires_safety_checker=False)
IDS = dict(bos_token_id=0, eos_token_id=2, pad_token_id=1)  # as published: of no tokenizer, so the end is sought by value
END, EXCLAMATION = "<|endoftext|>", "!"
K = keys.FAMILIES


def families():
    """name -> (fields of model_index.json, component configs, scheduler, pad token of each tokenizer)"""
    ends = dict(set_alpha_to_one=False, steps_offset=1, **SCHEDULE)
    return {
        "sd15": (dict(_class_name="StableDiffusionPipeline", **SD), K["sd15"],
                 D.PNDMScheduler(skip_prk_steps=True, **ends), [END]),
        "sd21": (dict(_class_name="StableDiffusionPipeline", **SD), K["sd21"] | {"vae": K["sd15"]["vae"]},
                 D.DDIMScheduler(prediction_type="v_prediction", clip_sample=False, **ends), [EXCLAMATION]),
        "sdxl": (dict(_class_name="StableDiffusionXLPipeline", force_zeros_for_empty_prompt=True),
                 K["sdxl"] | {"text_encoder": K["sd15"]["text_encoder"]},
                 D.EulerDiscreteScheduler(timestep_spacing="leading", steps_offset=1, **SCHEDULE), [END, EXCLAMATION]),
    }


def save_component(component, config, seed, folder):
    """Straight to fp16 memory: an SDXL U-Net is 10 GB in fp32. Returns the entry of model_index.json."""
    if component.startswith("text_encoder"):
        config = config | IDS
    with torch.device("meta"):
        model = keys.instantiate(component, config).half()
    spread(model.to_empty(device="cpu"), seed).save_pretrained(folder)
    print(f"{folder}: {sum(p.numel() for p in model.parameters()) / 1e6:.0f} M parameters", flush=True)
    return [type(model).__module__.split(".")[0], type(model).__name__]


def save_tokenizer(pad, folder, shapes_only):
    if shapes_only:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": pad}))
        return ["transformers", "CLIPTokenizer"]
    tokenizer_script().main(VOCABULARY, folder)
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        values = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(values | {"pad_token": pad}))
    return ["transformers", "CLIPTokenizer"]


def make(family, out, shapes_only):
    index, components, scheduler, pads = families()[family]
    index |= {"_diffusers_version": D.__version__, "scheduler": ["diffusers", type(scheduler).__name__]}
    scheduler.save_pretrained(out / "scheduler")
    for i, pad in enumerate(pads):
        name = f"tokenizer{'_2' if i else ''}"
        index[name] = save_tokenizer(pad, out / name, shapes_only)
    for seed, (component, config) in enumerate(sorted(components.items())):
        if shapes_only:
            index[component] = keys.write_shapes(component, config, out / component)
            continue
        index[component] = save_component(component, config, seed, out / component)
        gc.collect()  # the one before goes first
    (out / "model_index.json").write_text(json.dumps(index, indent=1))  # last: a folder without it is no model


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=families())
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--shapes", action="store_true", help="names and shapes instead of numbers")
    args = parser.parse_args()
    if args.out.exists() and any(args.out.iterdir()):
        sys.exit(f"make_random_models: {args.out} is not empty")
    make(args.family, args.out, args.shapes)
