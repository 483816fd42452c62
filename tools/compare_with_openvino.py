#!/usr/bin/env python3
"""Times Sfumato beside OpenVINO on the same model folder, in one run.

    python tools/compare_with_openvino.py MODEL [--size 512] [--rounds 2] [--precision auto|fp32] [--no-guidance]

Needs `pip install openvino torch diffusers`. Per round, in turn: OpenVINO's U-Net (static shapes; batch 2, or 1 without
guidance) and autoencoder, each alone in a process; then `sfumato --steps 4`, whose fastest step and decoding are taken
from its --json events. With --precision fp32 both compute in float. Prints seconds (the least of the rounds), the
ratio OpenVINO / Sfumato, and the peak resident memory of both.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def openvino_seconds(args):
    """Runs in its own process: one network, converted once into args.cache, timed."""
    import numpy as np
    import openvino as ov
    import torch
    from diffusers import AutoencoderKL, UNet2DConditionModel

    torch.set_grad_enabled(False)
    batch, side = (1 if args.no_guidance else 2), args.size // 8
    xml = pathlib.Path(args.cache) / f"{pathlib.Path(args.model).name}-{args.network}-{batch}-{side}.xml"
    if args.network == "unet":
        config = json.loads((pathlib.Path(args.model) / "unet/config.json").read_text())
        inputs = [torch.randn(batch, 4, side, side), torch.tensor(500.0),
                  torch.randn(batch, 77, config["cross_attention_dim"])]
        is_xl = config.get("addition_embed_type") == "text_time"
        if is_xl:
            inputs += [torch.randn(batch, 1280), torch.tensor([[args.size, args.size, 0, 0, args.size, args.size]] * batch).float()]
    else:
        inputs = [torch.randn(1, 4, side, side)]
    if not xml.exists():
        from openvino.frontend.pytorch.patch_model import __make_16bit_traceable as make_traceable

        class UNet(torch.nn.Module):
            def __init__(self, net):
                super().__init__()
                self.net = net

            def forward(self, x, t, context, text_embeds=None, time_ids=None):
                more = None if text_embeds is None else {"text_embeds": text_embeds, "time_ids": time_ids}
                return self.net(x, t, context, added_cond_kwargs=more, return_dict=False)[0]

        class Decoder(torch.nn.Module):
            def __init__(self, net):
                super().__init__()
                self.net = net

            def forward(self, z):
                return self.net.decode(z, return_dict=False)[0]

        cls, wrap = (UNet2DConditionModel, UNet) if args.network == "unet" else (AutoencoderKL, Decoder)
        folder = pathlib.Path(args.model) / args.network
        net = cls.from_pretrained(folder, torch_dtype=torch.float16).eval()
        make_traceable(net)
        model = ov.convert_model(wrap(net), example_input=tuple(inputs), input=[tuple(x.shape) for x in inputs])
        ov.save_model(model, xml, compress_to_fp16=True)
    core = ov.Core()
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": args.threads}
    if args.precision == "fp32":
        settings["INFERENCE_PRECISION_HINT"] = "f32"
    compiled = core.compile_model(xml, "CPU", settings)
    request, data = compiled.create_infer_request(), [x.numpy() for x in inputs]
    request.infer(data)
    seconds = []
    for _ in range(args.repeats):
        begin = time.time()
        request.infer(data)
        seconds.append(time.time() - begin)
    print(json.dumps({"seconds": min(seconds), "precision": str(compiled.get_property("INFERENCE_PRECISION_HINT")),
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def sfumato_seconds(args):
    command = [args.binary, "-m", args.model, "a cat", "-s", "1", "--steps", str(2 + args.repeats), "--json", "-t",
               str(args.threads), "--size", f"{args.size}x{args.size}", "--precision", args.precision, "-o",
               str(pathlib.Path(args.cache) / "out.png"), "--cfg-scale", "1" if args.no_guidance else "7.5"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    events = [json.loads(line) for line in child.stdout]
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    steps = [e["seconds"] for e in events if e.get("stage") == "sample"]
    decode = next(e["seconds"] for e in events if e.get("stage") == "decode")
    picture = next(e["seconds"] for e in events if e["event"] == "picture")
    return {"unet": min(b - a for a, b in zip(steps, steps[1:])), "vae": picture - decode, "peak": usage.ru_maxrss * 1024,
            "precision": events[0]["precision"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", default="auto", choices=["auto", "fp32"])
    parser.add_argument("--no-guidance", action="store_true")
    parser.add_argument("--binary", default=str(ROOT / "build/apps/sfumato"))
    parser.add_argument("--cache", default=str(pathlib.Path(tempfile.gettempdir()) / "sfumato-openvino"))
    parser.add_argument("--network", choices=["unet", "vae"], help="time this network in OpenVINO and print JSON")
    args = parser.parse_args()
    pathlib.Path(args.cache).mkdir(exist_ok=True)
    if args.network:
        return openvino_seconds(args)
    best = {}
    for _ in range(args.rounds):
        ours = sfumato_seconds(args)
        for network in ("unet", "vae"):
            child = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--network", network], capture_output=True,
                                   text=True)
            if child.returncode:
                sys.exit(child.stderr[-2000:])
            theirs = json.loads(child.stdout.splitlines()[-1])
            row = best.setdefault(network, {"sfumato": 1e9, "openvino": 1e9})
            row["sfumato"] = min(row["sfumato"], ours[network])
            row["openvino"] = min(row["openvino"], theirs["seconds"])
            row["openvino_precision"], row["openvino_peak_gb"] = theirs["precision"], theirs["peak"] / 1e9
            row["sfumato_precision"], row["sfumato_peak_gb"] = ours["precision"], ours["peak"] / 1e9
    for network, row in best.items():
        print(f"{network}: sfumato {row['sfumato']:.2f} s ({row['sfumato_precision']}, whole run {row['sfumato_peak_gb']:.1f} GB), "
              f"OpenVINO {row['openvino']:.2f} s ({row['openvino_precision']}, {row['openvino_peak_gb']:.1f} GB), "
              f"ratio {row['openvino'] / row['sfumato']:.2f}")


if __name__ == "__main__":
    main()
