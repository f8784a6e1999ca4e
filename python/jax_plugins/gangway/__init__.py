"""The JAX backend "gangway": stock JAX finds this package by itself and talks to a Gangway server.

    GANGWAY_ADDRESS=host:port JAX_PLATFORMS=gangway python script.py

GANGWAY_WEIGHT, a whole number, is this client's share of devices that others use too; GANGWAY_TENANT names it. A
cluster with tenants asks for GANGWAY_TOKEN instead, which says whose share it is.

`gangway run` sets these variables and PYTHONPATH. JAX's own client of the IFRT-proxy protocol does the talking; here
are the registration, and adaptations of what JAX would do in its own process. It runs host callbacks on a local CPU
device, so "cpu" is added to the platforms behind ours (JAX_PLATFORMS=gangway,cpu).

The name "proxy" is served as well where this JAX does not register it itself: libraries look for that word.
"""

import itertools
import os
import time

import jax
from jax.extend import backend
from jax_plugins.gangway import (
    async_collectives,
    buffer_callbacks,
    colocated_functions,
    compiler_options,
    cost_analysis,
    forks,
    host_callbacks,
    interchange,
    local_numbers,
    memory_stats,
    ordered_effects,
    partitioned_functions,
    serialization,
    sharding_inspection,
    transfers,
)

# How long a client waits for the server to answer before JAX reports that the backend cannot be initialized.
CONNECT_SECONDS = 30

# What a server answers that will not answer otherwise a second later.
REFUSALS = ("PERMISSION_DENIED", "UNAUTHENTICATED", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "UNIMPLEMENTED")

# What JAX does in its own process, done otherwise for arrays and programs of ours.
ADAPTATIONS = (
    host_callbacks,
    ordered_effects,
    buffer_callbacks,
    sharding_inspection,
    partitioned_functions,
    transfers,
    interchange,
    local_numbers,
    cost_analysis,
    memory_stats,
    compiler_options,
    async_collectives,
    colocated_functions,
    serialization,
    forks,
)


def server_address():
    """The server's address as grpc://host:port, from GANGWAY_ADDRESS or, as for JAX's proxy, JAX_BACKEND_TARGET."""
    address = os.environ.get("GANGWAY_ADDRESS") or os.environ.get("JAX_BACKEND_TARGET")
    if not address:
        raise RuntimeError(
            "no Gangway server is known: set GANGWAY_ADDRESS=host:port to the address that 'gangway serve' printed, "
            "or start the script by 'gangway run -- python script.py'"
        )
    return address if "://" in address else f"grpc://{address}"


def connect():
    """Opens a session on the server; JAX calls this once a process, when it first needs a device."""
    address = server_address()
    # Otherwise the client insists on credentials that exist only on Google's cloud; our servers listen on loopback or a
    # private network, or have TLS terminated beside the client.
    os.environ.setdefault("IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS", "true")
    options = backend.ifrt_proxy.ClientConnectionOptions()
    if share := _share():
        options.initialization_data = share
    deadline = time.monotonic() + float(os.environ.get("GANGWAY_CONNECT_SECONDS", CONNECT_SECONDS))
    # The client itself goes on whatever the answer is, until its time is up: so it gets little, and more the next time.
    for tries in itertools.count():
        options.connection_timeout_in_seconds = max(1, min(1 << min(tries, 10), int(deadline - time.monotonic())))
        try:
            return backend.ifrt_proxy.get_client(address, options)
        except Exception as error:
            if str(error).startswith(REFUSALS):
                raise RuntimeError(f"the Gangway server at {address} refuses: {error}") from error
            if time.monotonic() > deadline:
                raise RuntimeError(f"cannot reach the Gangway server at {address}: {error}") from error


def _share():
    """What this client is to get of devices that others use too, as the server reads it."""
    share = {}
    if tenant := os.environ.get("GANGWAY_TENANT"):
        share["tenant"] = tenant.encode()
    if token := os.environ.get("GANGWAY_TOKEN"):
        share["token"] = token.encode()
    if weight := os.environ.get("GANGWAY_WEIGHT"):
        share["weight"] = int(weight)
    return share


def initialize():
    """Called by JAX before it makes its first backend."""
    # Without JAX_PLATFORMS a server that is named wins over the local CPU, and none is no error.
    quietly = not os.environ.get("GANGWAY_ADDRESS")
    backend.register_backend_factory("gangway", connect, priority=500, fail_quietly=quietly)
    wanted = (jax.config.jax_platforms or "").split(",")
    if "proxy" in wanted and not _knows("proxy"):
        backend.register_backend_factory("proxy", connect, priority=500, fail_quietly=quietly)
    if {"gangway", "proxy"} & set(wanted) and "cpu" not in wanted:
        jax.config.update("jax_platforms", ",".join([*wanted, "cpu"]))
    if {"gangway", "proxy"} & set(wanted) or not quietly:
        for adaptation in ADAPTATIONS:
            adaptation.install()


def _knows(platform):
    from jax._src import xla_bridge  # JAX has no public list of its registered backends

    return platform in xla_bridge.known_platforms()
