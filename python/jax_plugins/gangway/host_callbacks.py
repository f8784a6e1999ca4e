"""Python functions that programs on a Gangway server call: jax.debug.print, pure_callback, io_callback and the like.

JAX lowers all of them by one function, jax._src.callback.emit_python_callback. For a CPU it emits a call that finds the
Python function by its index in a table of this process. Behind a proxy there is no such table: the client has to name
its functions to the server together with the program. That is all that is changed here, and only for programs that are
lowered for our backend.

jaxlib's client can name functions but not run them, so their calls come on a connection of our own (docs/decisions
0042): one thread reads calls, and one for each device that calls runs its calls in the order in which they came.
Functions of several devices may wait for one another, as natively.
"""

import itertools
import os
import queue
import socket
import struct
import threading
import traceback
import weakref

import numpy as np
from jax_plugins.gangway.replacement import replace

MAGIC = 0x32736C6C61635747
INTERNAL = 13  # absl::StatusCode
FUNCTION_BITS = 32  # two operands' channels of 16 bits
TELL_SHARDING = 0  # the function that no program names (sharding_inspection.py)


def install():
    """Idempotent. Does nothing where this JAX has no such function: its callbacks are then refused by its client."""
    try:
        from jax._src import callback
    except ImportError:
        return
    replace(callback, "emit_python_callback", _naming_the_function)


def _naming_the_function(original):
    from jax._src import core

    def emit_python_callback(ctx, function, token, operands, operand_avals, result_avals, **options):
        module = ctx.module_context
        if not is_ours(module):
            return original(ctx, function, token, operands, operand_avals, result_avals, **options)
        result = original(ctx, function, token, operands, operand_avals, result_avals, **options)
        in_process = module.host_callbacks.pop()
        arrays = [aval for aval in operand_avals if aval is not core.abstract_token]
        function = Function(in_process, bool(token), bool(result_avals), arrays, options.get("partitioned", False))
        module.add_host_callback(_register(module, function))
        return result

    return emit_python_callback


def is_ours(module):
    """Is this lowered for a Gangway server, and for nothing else?"""
    try:
        return tuple(module.platforms) == ("cpu",) and "proxy" in module.get_backend().runtime_type
    except Exception:  # lowered for no backend, e.g. for export
        return False


class Function:
    """JAX's function and the arrays it takes. The client's executable keeps it alive, nothing else does.

    A partitioned one is called with parts of the arrays, whose extents come before the bytes of each.
    """

    def __init__(self, call, has_token, has_results, avals, partitioned):
        self.call = call
        self.has_token = has_token
        self.has_results = has_results
        self.types = [(np.dtype(aval.dtype), tuple(aval.shape)) for aval in map(_physical, avals)]
        self.partitioned = partitioned

    def __call__(self, operands):
        """From the bytes of all operands to those of all results."""
        arrays, at = [], 0
        for dtype, shape in self.types:
            if self.partitioned:
                extents = np.frombuffer(operands, "<i8", len(shape), at)
                shape, at = tuple(map(int, extents)), at + extents.nbytes
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            arrays.append(np.frombuffer(operands, np.uint8, size, at).view(dtype).reshape(shape))
            at += size
        # JAX's function takes a token before its operands and returns it before its results.
        results = self.call(None, *arrays)[1:] if self.has_token else self.call(*arrays)
        return b"".join(np.ascontiguousarray(result).tobytes() for result in results)


def _physical(aval):
    from jax._src import core

    return core.physical_aval(aval)


_functions = weakref.WeakValueDictionary()
_numbers = itertools.count(1)
_untold = []


def take_untold():
    """Failures of ordered functions without results, since this was asked last: maybe nobody has heard of them."""
    untold = _untold[:]
    del _untold[: len(untold)]
    return untold


def _register(module, function):
    """A callback for the client to send along with the program: it says the function's number in its channels."""
    from jax._src.lib import xla_client

    backend = module.get_backend()
    connect(backend)
    number = next(_numbers) % (1 << FUNCTION_BITS)
    _functions[number] = function
    nothing = xla_client.Shape.array_shape(np.dtype(np.float32), ())
    return backend.make_python_callback_from_host_send_and_recv(
        function, [nothing, nothing], [], [number & 0xFFFF, number >> 16], [], _serialize
    )


def serve(number, function):
    """Lets the server call a function that belongs to no program. The caller keeps it alive."""
    _functions[number] = function


def _serialize(function):
    raise NotImplementedError("a host callback stays in its process")


class Connection:
    """To one session of the server; calls come, results go."""

    def __init__(self, address, session, secret):
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(struct.pack("<QQQ", MAGIC, session, secret))
        if struct.unpack("<Q", self._receive(8))[0] != MAGIC:
            raise RuntimeError(f"{address} is no Gangway server's door for host callbacks")
        self.calls = {}  # by device; the reader's
        self.sends = threading.Lock()
        _start(self._read)

    def _receive(self, size):
        data = bytearray(size)
        view = memoryview(data)
        while view:
            got = self.socket.recv_into(view)
            if got == 0:
                raise ConnectionError("the Gangway server closed its connection for host callbacks")
            view = view[got:]
        return data

    def _read(self):
        try:
            while True:
                execution, number, device, size = struct.unpack("<QQqQ", self._receive(32))
                if device not in self.calls:
                    self.calls[device] = queue.SimpleQueue()
                    _start(self._run, self.calls[device])
                self.calls[device].put((execution, number, self._receive(size)))
        except OSError:
            for calls in self.calls.values():
                calls.put(None)  # the session is over

    def _run(self, calls):
        while (call := calls.get()) is not None:
            execution, number, operands = call
            code = 0
            try:
                function = _functions.get(number)
                if function is None:
                    raise RuntimeError("the program that called has been dropped")
                result = function(operands)
            except BaseException as error:
                code = INTERNAL
                failure = f"CpuCallback error calling callback: {_words(error)}"
                if function is not None and function.has_token and not function.has_results:
                    _untold.append(failure)
                result = failure.encode()
            try:
                with self.sends:
                    self.socket.sendall(struct.pack("<QQQ", execution, code, len(result)) + result)
            except OSError:
                return


def _start(task, *arguments):
    threading.Thread(target=task, args=arguments, name="gangway-callbacks", daemon=True).start()


def _words(error):
    """As jaxlib's own client tells a function's failure: where it came from, from JAX's function on."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    places = [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}\n' for frame in frames]
    return f"Traceback (most recent call last):\n{''.join(places)}{type(error).__name__}: {error}"


_connections = {}
_lock = threading.Lock()


def _address(device):
    """Where the server takes such connections: at its own host, or where a tunnel to it begins."""
    from jax_plugins.gangway import server_address

    host, _, port = os.environ.get("GANGWAY_CALLBACK_ADDRESS", "").rpartition(":")
    if not host:
        host, port = server_address().removeprefix("grpc://").rpartition(":")[0], device.gangway_callback_port
    return host.strip("[]"), int(port)


def connect(backend):
    """The connection to the backend's session, opened when the first callback is lowered for it."""
    with _lock:
        if backend not in _connections:
            device = backend.devices()[0]
            _connections[backend] = Connection(_address(device), device.gangway_session, device.gangway_callback_secret)
        return _connections[backend]
