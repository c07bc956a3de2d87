# fate: failed
class Silent(Exception):
    def __str__(self):
        raise self


raise Silent
