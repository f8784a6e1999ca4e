"""How long a function would take on devices that need not be there."""

from gangway.executable import ask, export_program


def simulate(f, *args, machine="tpu-v5p", format="text", options=(), **kwargs):
    """What `gangway simulate` says about f(*args, **kwargs): "text" or "json"; `options` are its other flags.

    Nothing is run and no device is needed: arguments may be jax.ShapeDtypeStruct with shardings over a
    jax.sharding.AbstractMesh of thousands of devices.
    """
    flags = [f"--machine={machine}", f"--format={format}", *options]
    return ask("simulate", export_program(f, args, kwargs), flags)
