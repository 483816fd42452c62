#!/usr/bin/env python3
"""Writes src/text/html_entities.inc: HTML5's named character references, as Python's html.unescape knows them.

    python tools/make_html_entities.py > src/text/html_entities.inc
"""
import html.entities

print("// Made by tools/make_html_entities.py: {name, UTF-8}; names with and without ';' are separate. Sorted by bytes.")
for name, value in sorted(html.entities.html5.items(), key=lambda item: item[0].encode()):
    text = "".join(f"\\x{byte:02x}" for byte in value.encode())
    print(f'{{"{name}", "{text}"}},')
