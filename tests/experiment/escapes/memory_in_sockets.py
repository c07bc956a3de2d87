# fate: failed
# why: PermissionError
import socket

pairs = [socket.socketpair() for _ in range(6)]
