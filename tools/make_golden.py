#!/usr/bin/env python3
"""Makes the reference values under tests/golden with PyTorch, diffusers and k-diffusion.

    python tools/make_golden.py PART...     (no PART: all of them)

PART is a module of tools/golden with a function make(out_dir). The files are small and committed; the tests
read them and need no Python. Versions: tools/golden/requirements.txt.
"""
import importlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main(parts):
    known = sorted(p.stem for p in (ROOT / "tools" / "golden").glob("*.py") if not p.stem.startswith("_"))
    for part in parts or known:
        if part not in known:
            sys.exit(f"make_golden: expected one of {', '.join(known)}, got {part}")
        out_dir = ROOT / "tests" / "golden" / part
        out_dir.mkdir(parents=True, exist_ok=True)
        importlib.import_module(f"golden.{part}").make(out_dir)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tools"))
    main(sys.argv[1:])
