"""The protobuf messages an installed jaxlib was built with, read from its shared library.

jaxlib carries its serialized FileDescriptorProtos: they are the wire format of the IFRT proxy, of HLO modules and of
compile options for exactly that jaxlib.
"""

import pathlib
import re

from google.protobuf import descriptor_pb2, message

# A FileDescriptorProto starts with its name (field 1, a string of one-byte length) and its package (field 2).
_START = re.compile(rb"\x0a([\x01-\x7f])([a-zA-Z0-9_/.\-]+\.proto)\x12")
_FIELDS = set(range(1, 13)) | {14, 15}


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _end(data, at):
    """Where the descriptor that starts at `at` ends: before the first byte that is none of its fields."""
    while at < len(data):
        tag, body = _varint(data, at)
        if tag >> 3 not in _FIELDS or tag & 7 not in (0, 2):
            return at
        size, body = _varint(data, body)
        at = body + size if tag & 7 == 2 else body
    return at


def read(library):
    """FileDescriptorProtos by file name."""
    data = pathlib.Path(library).read_bytes()
    found = {}
    for match in _START.finditer(data):
        name = match.group(2).decode()
        if len(name) != match.group(1)[0] or name in found:
            continue
        try:
            found[name] = descriptor_pb2.FileDescriptorProto.FromString(data[match.start() : _end(data, match.start())])
        except message.DecodeError:
            continue  # bytes that only look like one
    return found
