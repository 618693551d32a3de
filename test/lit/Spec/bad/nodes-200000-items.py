# error@9998: more than 10000 values and keys
print("x: [" + "1,\n" * 200000 + "]")
