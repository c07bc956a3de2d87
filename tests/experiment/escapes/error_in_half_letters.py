# fate: failed
# why: Exception
raise Exception('\ud800\x00\x1b[2J' * 50)
