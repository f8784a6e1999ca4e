"""One stream of gangway.v1 (proto/gangway/v1/program_service.proto): requests out, answers by number."""

import concurrent.futures
import itertools
import queue
import threading

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2

OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


class GangwayError(RuntimeError):
    """The server's answer to a request that failed; the text names the program, function, device or worker."""


class Connection:
    """Thread-safe."""

    def __init__(self, address, timeout):
        self._channel = grpc.insecure_channel(address.removeprefix("grpc://"), options=OPTIONS)
        self.messages = self._messages(timeout)
        self._numbers = itertools.count(1)
        self._waiting = {}
        self._lock = threading.Lock()
        self._outbox = queue.SimpleQueue()
        self._closed = None
        call = self._channel.stream_stream(
            "/gangway.v1.Gangway/Session",
            request_serializer=self.messages["Request"].SerializeToString,
            response_deserializer=self.messages["Response"].FromString,
        )
        self._stream = call(iter(self._outbox.get, None))
        threading.Thread(target=self._receive, name="gangway", daemon=True).start()

    def _messages(self, timeout):
        """Message classes by name, built from the server's own description."""
        describe = self._channel.unary_unary("/gangway.v1.Gangway/Describe")
        try:
            answer = describe(b"", timeout=timeout, wait_for_ready=True)
        except grpc.RpcError as error:
            raise GangwayError(f"cannot reach a Gangway server: {error.details()}") from error
        # DescribeResponse is one field of bytes, number 1; so is BytesValue.
        files = descriptor_pb2.FileDescriptorSet.FromString(wrappers_pb2.BytesValue.FromString(answer).value)
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        service = pool.FindFileByName("gangway/v1/program_service.proto")
        return {
            name: message_factory.GetMessageClass(described)
            for name, described in service.message_types_by_name.items()
        }

    def send(self, **kind):
        """Sends a request, given as its kind's field; a future of the response."""
        future = concurrent.futures.Future()
        with self._lock:
            if self._closed is not None:
                raise GangwayError(self._closed)
            number = next(self._numbers)
            self._waiting[number] = future
            self._outbox.put(self.messages["Request"](id=number, **kind))
        return future

    def ask(self, **kind):
        """Sends a request and waits for its answer."""
        return self.send(**kind).result()

    def _receive(self):
        reason = "the server closed the connection"
        try:
            for response in self._stream:
                with self._lock:
                    future = self._waiting.pop(response.id, None)
                if future is None:
                    continue
                if response.code:
                    future.set_exception(GangwayError(response.message.decode(errors="replace")))
                else:
                    future.set_result(response)
        except grpc.RpcError as error:
            reason = f"the connection to the server broke: {error.details()}"
        with self._lock:
            self._closed = reason
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for future in waiting:
            future.set_exception(GangwayError(reason))

    def close(self):
        self._outbox.put(None)
        self._channel.close()
