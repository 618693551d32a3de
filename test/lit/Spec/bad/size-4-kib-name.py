# error@2: kernel name `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...`
print("problem: {m: 1, n: 1, k: 1}\nname: " + "x" * 4096)
