# fate: ended
while True:
    pass
