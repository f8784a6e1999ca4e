"""What a client asks of the compiler: jax.jit(f, compiler_options=...), Lowered.compile(compiler_options=...).

Options are XLA's. Which there are and what they may be is checked by the local CPU's compiler, which reads them as the
one on the server would; what they ask for is left to the server, whose devices' compiler has settings of its own.
Passes of the client's own (jax.extend.xla) are refused: the compiler is in another process.
"""

import functools

from jax_plugins.gangway import dumps
from jax_plugins.gangway.replacement import replace

NOTHING = """
module @options {
  func.func public @main() -> tensor<i32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    return %0 : tensor<i32>
  }
}
"""


def install():
    """Idempotent. Does nothing where this JAX compiles in another way."""
    try:
        from jax._src import compiler
    except ImportError:
        return
    replace(compiler, "backend_compile_and_load", _checking)
    try:
        from jax._src.xla_transform import _xla
    except ImportError:
        return
    for name in ("register_xla_transform", "register_xla_transform_c_api"):
        replace(_xla, name, _refusing)


def _refusing(original):
    def register(*arguments):
        clients = [x.runtime_type for x in arguments if hasattr(x, "runtime_type")]
        if clients and "proxy" not in clients[0]:
            return original(*arguments)
        raise ValueError(  # JAX passes over errors of the runtime here
            "programs are compiled by the Gangway server: a pass of the client's own "
            "(jax.extend.xla.register_hlo_module_transformation) cannot run there"
        )

    return register


def _checking(original):
    @functools.lru_cache(maxsize=256)
    def check(overrides):
        from jax._src import compiler, xla_bridge
        from jax._src.interpreters import mlir
        from jax._src.lib import xla_client
        from jaxlib.mlir import ir

        device = xla_bridge.local_devices(backend="cpu")[0]
        options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
        overrides = dict(overrides)
        overrides |= {name: value for name, value in dumps.NOWHERE.items() if isinstance(overrides.get(name, ""), str)}
        options.env_option_overrides = list(overrides.items())
        with mlir.make_ir_context():
            original(device.client, ir.Module.parse(NOTHING), xla_client.DeviceList((device,)), options, [])

    def backend_compile_and_load(backend, module, executable_devices, options, host_callbacks):
        if "proxy" not in backend.runtime_type:
            return original(backend, module, executable_devices, options, host_callbacks)
        if options.env_option_overrides:
            check(tuple(options.env_option_overrides))
        executable = original(backend, module, executable_devices, options, host_callbacks)
        dumps.write(executable, dumps.wanted(options))
        return executable

    return backend_compile_and_load
