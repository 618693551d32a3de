# error@1: the line has 100001 bytes
print("[" * 100000)
