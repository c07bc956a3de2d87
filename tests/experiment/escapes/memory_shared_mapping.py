# fate: failed
# why: OSError
import mmap

hoard = [mmap.mmap(-1, 2**20) for _ in range(2000)]
