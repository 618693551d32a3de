# error@1: bytes; at most 1048576 are read
import sys
for _ in range(100):
    sys.stdout.write("a: 1\n" * (1 << 18))
