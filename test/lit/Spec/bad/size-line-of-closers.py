# error@1: bytes; at most 16384 are read
print("]" * 900000)
