# error@5001: more than 10000 values and keys
for i in range(100000):
    print(f"k{i}:")
