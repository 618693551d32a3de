# error@1: a value of 16000 bytes; at most 4096 are read
print("name: " + "x" * 16000)
