# fate: failed
# why: OSError
for number in range(10_000):
    open(f'file{number}', 'w').close()
