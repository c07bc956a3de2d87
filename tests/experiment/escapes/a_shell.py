# fate: failed
# why: PermissionError
import subprocess

subprocess.run(['/bin/sh', '-c', 'true'], check=True)
