#!/bin/sh
# Objects built for an instruction set must export no weak symbols: the linker keeps the copy it meets first, and
# baseline code would run it on any machine.
#   weak_symbols_test.sh NM LIBRARY
objects=$("$1" -A "$2" 2>/dev/null | grep -cE '_(avx2|avx512|avx512fp16|amx)\.cc\.o:')
[ "$objects" -gt 0 ] || { echo "no objects for an instruction set in $2"; exit 1; }
weak=$("$1" -A -C "$2" 2>/dev/null | grep -E '_(avx2|avx512|avx512fp16|amx)\.cc\.o:.* [WVu] ')
[ -z "$weak" ] || { echo "weak symbols:"; echo "$weak"; exit 1; }
