#!/usr/bin/env python3
"""Writes CLIP's tokenizer as diffusers and transformers read it.

    python make_tokenizer.py bpe_simple_vocab_16e6.txt.gz OUT     # vocab.json, merges.txt, two small configs
"""
import gzip
import json
import pathlib
import sys


def byte_symbols():
    """The 256 printable characters that stand for bytes, in CLIP's order (openai/CLIP, simple_tokenizer.py)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    return [chr(b) for b in printable] + [chr(256 + i) for i in range(256 - len(printable))]


def main(source, out):
    out.mkdir(parents=True, exist_ok=True)
    merges = gzip.open(source, "rt", encoding="utf-8").read().split("\n")[1:49152 - 256 - 2 + 1]
    symbols = byte_symbols()
    words = symbols + [s + "</w>" for s in symbols] + ["".join(m.split()) for m in merges]
    words += ["<|startoftext|>", "<|endoftext|>"]
    special = {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>",
               "unk_token": "<|endoftext|>"}
    write = lambda name, value: (out / name).write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    write("vocab.json", {w: i for i, w in enumerate(words)})
    (out / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
    write("special_tokens_map.json", special)
    write("tokenizer_config.json", {"tokenizer_class": "CLIPTokenizer", "model_max_length": 77, "do_lower_case": True,
                                    "add_prefix_space": False, "errors": "replace", **special})


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
