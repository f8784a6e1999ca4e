"""orbax: asynchronous saves of split arrays, restored as they were, on other meshes and on one device."""

import pathlib
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "orbax-checkpoint"


def run(mesh):
    devices = mesh.devices.reshape(-1)
    other = Mesh(devices.reshape(4, 2)[::-1], ("a", "b"))
    part = Mesh(devices[:2], ("x",))

    def put(x, m, *spec):
        return jax.device_put(x, NamedSharding(m, P(*spec)))

    state = {
        "weights": put(jax.random.normal(jax.random.key(0), (64, 32)), mesh, "x"),
        "low": put(jnp.arange(64.0).reshape(8, 8).astype(jnp.bfloat16), mesh, None, "x"),
        "step": jnp.int32(7),
        "mean": put(jnp.ones(5), mesh),
        "name": {"tuple": (np.arange(3), 4)},
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=True)
        with ocp.CheckpointManager(pathlib.Path(folder) / "run", options=options) as manager:
            for step in range(3):
                now = {**state, "step": jnp.int32(step), "weights": jax.jit(lambda w, s=step: w + s)(state["weights"])}
                manager.save(step, args=ocp.args.StandardSave(now))
                now["weights"].delete()  # the save has its own copy
            manager.wait_until_finished()
            found["steps"] = np.array(manager.all_steps())

            def like(m, spec):
                def one(x):
                    x = jnp.asarray(x)
                    sharding = NamedSharding(m, P(*spec[: x.ndim]) if x.ndim == 2 else P())
                    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)

                return jax.tree.map(
                    one, {k: v for k, v in state.items() if k != "name"} | {"name": {"tuple": (np.arange(3), 4)}}
                )

            wanted = {"same": (mesh, ("x",)), "other": (other, ("b", "a")), "part": (part, ("x",))}
            for name, (m, spec) in wanted.items():
                back = manager.restore(2, args=ocp.args.StandardRestore(like(m, spec)))
                assert back["weights"].sharding.mesh.devices.size == m.devices.size
                found[name] = jax.jit(lambda w: w * 2)(back["weights"])
                found[f"{name} low"] = back["low"].astype(jnp.float32)
                found[f"{name} step"] = back["step"]
        checkpointer = ocp.StandardCheckpointer()
        checkpointer.save(pathlib.Path(folder) / "one", state)
        checkpointer.wait_until_finished()
        found["mean"] = checkpointer.restore(pathlib.Path(folder) / "one", state)["mean"]
        checkpointer.close()
    return found
