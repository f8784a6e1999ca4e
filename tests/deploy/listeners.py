"""What a process listens on."""

import os
import pathlib
import socket


def listeners(pid):
    """[(address, port)] on which a process listens."""
    inodes = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(entry)
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for table, size in (("tcp", 4), ("tcp6", 16)):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, port = fields[1].split(":")
                words = [bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, 2 * size, 8)]
                family = socket.AF_INET if size == 4 else socket.AF_INET6
                found.append((socket.inet_ntop(family, b"".join(words)), int(port, 16)))
    return found
