"""What diffusers draws from the embedded model: OUT/<seed>.png of each prompt, 20 steps, the model's own guidance, float32."""
import json
import pathlib

import torch
from diffusers import StableDiffusionPipeline

MODEL = pathlib.Path(__file__).parents[2] / "models" / "emoji"
PROMPTS = {42: "red apple", 7: "cat face", 3: "rocket"}


def make(out):
    defaults = json.loads((MODEL / "model_index.json").read_text())["sfumato"]
    pipeline = StableDiffusionPipeline.from_pretrained(MODEL, torch_dtype=torch.float32, safety_checker=None)
    for seed, prompt in PROMPTS.items():
        image = pipeline(prompt, num_inference_steps=defaults["steps"], guidance_scale=defaults["guidance_scale"],
                         generator=torch.Generator("cpu").manual_seed(seed)).images[0]
        image.save(pathlib.Path(out) / f"{seed}.png", optimize=True)
