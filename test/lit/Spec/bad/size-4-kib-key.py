# error@2: unknown key `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...`
print("problem: {m: 1, n: 1, k: 1}\n" + "x" * 4000 + ": 1")
