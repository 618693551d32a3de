"""Prints the fields of each matrix descriptor that a PTX file builds (PTX ISA 9.7.15.5.1.2.2): LBO in bits 16 to 29, SBO in
32 to 45, both without their low four bits, the swizzle in 62 and 63."""
import re
import sys

SWIZZLES = ["none", "128B", "64B", "32B"]
seen = set()
for name, bits in re.findall(r"or\.b64\s+%desc_(\w)\w*, %\w+, (-?\w+);", open(sys.argv[1]).read()):
    bits = int(bits, 0)
    line = f"{name}: LBO {(bits >> 16 & 0x3fff) << 4}, SBO {(bits >> 32 & 0x3fff) << 4}, swizzle {SWIZZLES[bits >> 62 & 3]}"
    if line not in seen:
        print(line)
    seen.add(line)
