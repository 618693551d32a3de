# error@1: the file has more than 33554432 bytes; larger ones are not read
import sys
for _ in range(100):
    sys.stdout.write("a: 1\n" * (1 << 18))
