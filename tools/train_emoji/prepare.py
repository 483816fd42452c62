"""Turns the emoji packages into the training set, and CLIP's vocabulary into a tokenizer folder.

Writes to WORK:
  images.npy     uint8 [N,128,128,3], each emoji drawn on white
  captions.json  one {"hex", "name", "tags", "group"} for each image, in the same order
and to MODEL/tokenizer the four files CLIPTokenizer opens.
"""

import argparse
import gzip
import json
from pathlib import Path

import numpy as np
from PIL import Image

SIZE = 128
# emojibase groups: smileys, animals and nature, food and drink, travel and places, activities, objects.
# People (1), components (2), symbols (8) and flags (9) are left out.
GROUPS = (0, 3, 4, 5, 6, 7)
SKIN_TONES = {"1f3fb", "1f3fc", "1f3fd", "1f3fe", "1f3ff"}
VOCABULARY = 49408
MERGES = VOCABULARY - 2 * 256 - 2


def plain(hexcode):
    """An emoji's code without the variation selector, which the two packages do not write alike."""
    return "-".join(part for part in hexcode.lower().split("-") if part != "fe0f")


def load_captions(emojibase):
    """{plain code: (name, tags, group)} for every emoji emojibase names."""
    entries = json.loads((emojibase / "en" / "data.json").read_text())
    return {plain(e["hexcode"]): (e["label"], e.get("tags", []), e.get("group")) for e in entries}


def draw_on_white(path):
    image = Image.open(path).convert("RGBA")
    page = Image.new("RGBA", image.size, "white")
    page.alpha_composite(image)
    return np.asarray(page.convert("RGB").resize((SIZE, SIZE), Image.LANCZOS))


def prepare_images(modules, work):
    known = load_captions(modules / "emojibase-data")
    images, captions = [], []
    for path in sorted((modules / "@lobehub" / "fluent-emoji-3d" / "assets").glob("*.webp")):
        code = plain(path.stem)
        if SKIN_TONES.intersection(code.split("-")) or code not in known:
            continue
        name, tags, group = known[code]
        if group in GROUPS:
            images.append(draw_on_white(path))
            captions.append({"hex": code, "name": name, "tags": tags, "group": group})
    work.mkdir(parents=True, exist_ok=True)
    np.save(work / "images.npy", np.stack(images))
    (work / "captions.json").write_text(json.dumps(captions, indent=0, ensure_ascii=False))
    print(f"{len(images)} images")


def byte_symbols():
    """The printable character byte-level BPE writes for each byte, in the order of CLIP's vocabulary.

    Printable Latin-1 bytes stand for themselves and come first; the others follow as U+0100 and up.
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    rest = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(rest))]


def prepare_tokenizer(bpe, folder):
    """CLIP's bpe_simple_vocab_16e6.txt.gz: a version line, then more merges than the vocabulary uses."""
    lines = gzip.open(bpe, "rt", encoding="utf-8").read().split("\n")
    merges = lines[1 : MERGES + 1]
    symbols = byte_symbols()
    tokens = symbols + [s + "</w>" for s in symbols] + ["".join(m.split()) for m in merges]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    assert len(tokens) == len(set(tokens)) == VOCABULARY
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {token: i for i, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False, separators=(",", ":")))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    special = {"bos_token": tokens[-2], "eos_token": tokens[-1], "unk_token": tokens[-1], "pad_token": tokens[-1]}
    (folder / "special_tokens_map.json").write_text(json.dumps(special, indent=2) + "\n")
    config = {"tokenizer_class": "CLIPTokenizer", "model_max_length": 77, "do_lower_case": True, "errors": "replace"}
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, **special}, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", type=Path, default="node_modules", help="the folder npm installed into")
    parser.add_argument("--bpe", type=Path, required=True, help="CLIP's bpe_simple_vocab_16e6.txt.gz")
    parser.add_argument("--work", type=Path, default="work", help="folder for the training set and checkpoints")
    parser.add_argument("--model", type=Path, default="../../models/emoji", help="the model folder")
    args = parser.parse_args()
    prepare_images(args.modules, args.work)
    prepare_tokenizer(args.bpe, args.model / "tokenizer")


if __name__ == "__main__":
    main()
