"""What should not come in by a port: each a function that opens one connection, misbehaves on it and goes.

What the other end does with it, hanging up included, is its right: nothing is expected here.
"""

import contextlib
import socket
import ssl

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, HEADERS, DATA = 4, 1, 0
SESSIONS = (
    "/gangway.v1.Gangway/Session",
    "/xla.ifrt.proxy.GrpcIfrtService/IfrtSession",
    "/gangway.v1.Tunnel/Open",
    "/x",
)


def frame(content, kind, flags, stream):
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


def call(path):
    """The headers of a gRPC call on stream 1, none of them compressed."""
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "x", "te": "trailers"}
    fields |= {"content-type": "application/grpc"}
    block = b"".join(
        b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )
    return PREFACE + frame(b"", SETTINGS, 0, 0) + frame(block, HEADERS, 4, 1)


def noise(rng):
    return rng.randbytes(rng.choice([0, 1, 7, 64, 1000, 20_000]))


def garbage(rng):
    """Bytes that are nothing, or begin like what one of the ports speaks."""
    random = noise(rng)
    frames = b"".join(
        frame(rng.randbytes(rng.randrange(64)), rng.randrange(12), rng.randrange(256), rng.randrange(8))
        for _ in range(8)
    )
    return rng.choice(
        [
            random,
            PREFACE + random,
            PREFACE + frame(b"", SETTINGS, 0, 0) + frames,
            b"GWcalls2"[::-1] + random,
            b"GWcalls2" + random,
            b"GET /" + random + b" HTTP/1.1\r\n\r\n",
            b"GET /status.json?after=" + str(rng.getrandbits(200)).encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /trace.json?record=" + str(rng.getrandbits(40)).encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /explain?program=" + random.hex().encode() + b"&format=xml HTTP/1.1\r\nHost: x\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n" + random,
        ]
    )


def huge_request(rng):
    """A call whose message is said to have a gigabyte, the beginning of which comes."""
    begun = b"\x00" + (1 << 30).to_bytes(4, "big") + rng.randbytes(16_000)
    return call(rng.choice(SESSIONS)) + frame(begun, DATA, 0, 1) + frame(rng.randbytes(16_000), DATA, 0, 1)


def odd_message(rng):
    """A call whose message is no message."""
    content = noise(rng)[:16_000]
    return call(rng.choice(SESSIONS)) + frame(b"\x00" + len(content).to_bytes(4, "big") + content, DATA, 1, 1)


def client_hello():
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2"])
    sent = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="x").do_handshake()
    return sent.read()


def broken_tls(rng):
    """The beginning of a handshake: cut off, twisted, or followed by something else."""
    hello = bytearray(client_hello())
    kind = rng.randrange(3)
    if kind == 0:
        return bytes(hello[: rng.randrange(len(hello))])
    if kind == 1:
        for _ in range(rng.randrange(1, 8)):
            hello[rng.randrange(len(hello))] = rng.randrange(256)
        return bytes(hello)
    return bytes(hello) + noise(rng)


def anybody():
    """A context that believes everybody and shows no certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context


def throw(port, content, rng, context=None):
    """Connects, in `context` where there is one, and sends."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.settimeout(0.2)
        with contextlib.suppress(OSError, ValueError):
            if context is not None:
                connection = context.wrap_socket(connection)
            connection.sendall(content)
            if rng.random() < 0.2:
                connection.recv(100)
