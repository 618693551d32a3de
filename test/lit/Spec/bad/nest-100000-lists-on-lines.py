# error@17: nested deeper than 16 levels
print("[\n" * 100000)
