# error@1: the line has 1000001 bytes; at most 16384 are read
print("x" * 1000000)
