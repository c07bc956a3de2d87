# fate: failed
# why: TypeError
class Liar:
    __class__ = int

    def __index__(self):
        return 1548008755920


def f(x):
    return Liar()
