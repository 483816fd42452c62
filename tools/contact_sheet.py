#!/usr/bin/env python3
"""Lays pictures out in a sheet.

    python tools/contact_sheet.py OUT.png COLUMNS PICTURE...

    ./sfumato --prompts-file tools/train_emoji/prompts.txt -s 0 -o /tmp/p-%02d.png
    python tools/contact_sheet.py docs/images/emoji.png 12 /tmp/p-??.png
"""
import sys

from PIL import Image


def main(out, columns, paths):
    pictures = [Image.open(path).convert("RGB") for path in paths]
    width, height = pictures[0].size
    sheet = Image.new("RGB", (columns * width, -(-len(pictures) // columns) * height), "white")
    for i, picture in enumerate(pictures):
        sheet.paste(picture, (i % columns * width, i // columns * height))
    sheet.save(out, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
