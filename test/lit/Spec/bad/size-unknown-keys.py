# error@2: unknown key
# error@3: unknown key
# error@4: unknown key
# error@5: unknown key
# error@6: unknown key
# error@7: unknown key
# error@8: unknown key
# error@9: unknown key
# error@10: unknown key
# error@11: unknown key
# error@12: unknown key
# error@13: unknown key
# error@14: unknown key
# error@15: unknown key
# error@16: unknown key
# error@17: unknown key
# error@18: unknown key
# error@19: unknown key
# error@20: unknown key
# error@21: unknown key
# error@22: more than 20 problems; the rest is not read
print("problem: {m: 1, n: 1, k: 1}")
for i in range(4000):
    print(f"unknown_key_{i}: {i}")
