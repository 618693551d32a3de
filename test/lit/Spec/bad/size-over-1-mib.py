# error@1: the file has 1048577 bytes; at most 1048576 are read
print("#\n" * (1 << 19))
