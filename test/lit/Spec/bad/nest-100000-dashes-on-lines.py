# error@17: nested deeper than 16 levels
for depth in range(700):
    print(" " * depth + "-")
