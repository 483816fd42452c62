#!/usr/bin/env python3
"""A file may include only headers of strictly lower levels and of its own folder. Levels: layers.txt."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def levels():
    rows = (line.split("#")[0].split() for line in (ROOT / "layers.txt").read_text().splitlines())
    return {row[0]: int(row[1]) for row in rows if row}


def module_of(path):
    """The folder under src/, or "apps" for everything there."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "src" else parts[0]


def faults():
    level = levels()
    for path in sorted(p for top in ("src", "apps") for p in (ROOT / top).rglob("*") if p.suffix in (".h", ".cc")):
        own = module_of(path)
        if own not in level:
            yield f"{path.relative_to(ROOT)}: folder {own} is not in layers.txt"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            other = found.group(1).split("/")[0] if found and "/" in found.group(1) else own
            if other != own and level.get(other, 99) >= level[own]:
                yield f"{path.relative_to(ROOT)}:{number}: {own} (level {level[own]}) may not include {found.group(1)}"


if __name__ == "__main__":
    found = list(faults())
    print("\n".join(found) or "layers: ok")
    sys.exit(bool(found))
