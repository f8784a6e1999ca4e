"""Children that a client forks, e.g. a data loader's, say nothing to its server.

Otherwise an array that Python forgets in the child, or the child's end, would tell the server over the parent's own
connection to drop what the parent still uses; or wait for threads and locks that are the parent's. So a child keeps
what there is until its process is gone, and its connections lead nowhere. Like on native JAX it cannot compute, and
shall not try.
"""

import contextlib
import ctypes
import os
import socket
import stat
import threading

_peers = set()  # (IP address, port) of the server; looked up in the parent, where that is safe


def install():
    """Idempotent."""
    if not hasattr(install, "done"):
        os.register_at_fork(before=_look_up, after_in_child=_let_go)
        install.done = True


def _look_up():
    from jax_plugins.gangway import host_callbacks, server_address

    _peers.clear()
    if not any("proxy" in backend.runtime_type for backend in _backends()):
        return
    host, _, port = server_address().partition("://")[2].rpartition(":")
    with contextlib.suppress(OSError, ValueError):
        _peers.update(info[4][:2] for info in socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM))
    for connection in list(host_callbacks._connections.values()):
        with contextlib.suppress(OSError):
            _peers.add(_peer_of(connection.socket))


def _backends():
    from jax._src import xla_bridge

    return list(xla_bridge._backends.values())


def _let_go():
    if not _peers:
        return
    # JAX's own clients too: to end, they wait for their threads.
    for backend in _backends():
        for kept in (backend, *backend.live_arrays(), *backend.live_executables()):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    # Writing must succeed: the library waits for it.
    nowhere, drain = socket.socketpair()
    threading.Thread(target=_forget, args=(drain,), name="gangway-forked", daemon=True).start()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError, ValueError):  # gone meanwhile; not of the Internet
            descriptor = int(name)
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as connection:
                peer = _peer_of(connection)
            if peer in _peers:
                os.dup2(nowhere.fileno(), descriptor)


def _forget(drain):
    while drain.recv(1 << 16):
        pass


def _peer_of(connection):
    address, port = connection.getpeername()[:2]
    return address.removeprefix("::ffff:"), port  # the library's sockets are of IPv6 for both
