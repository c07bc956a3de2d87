# fate: failed
# why: OSError
with open('large', 'wb') as file:
    while True:
        file.write(bytes(10**5))
