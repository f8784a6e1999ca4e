"""Collectives that a program starts in one place and waits for in another (jax.lax.parallel's psum_start and the like).

They are a wish about when, not about what, and jaxlib's client of a proxy cannot send them. For our backend they are
done where they are started; where they overlap with what is the partitioner's business.
"""

from jax_plugins.gangway.replacement import replace

START, DONE = "stablehlo.async_start", "stablehlo.async_done"
ORDER = "control_dep"  # jax.experimental.control_deps


def install():
    """Idempotent. Does nothing where this JAX compiles in another way."""
    try:
        from jax._src import compiler
    except ImportError:
        return
    replace(compiler, "compile_or_get_cached", _done_where_they_start)


def _done_where_they_start(original):
    def compile_or_get_cached(backend, module, *rest, **options):
        from jax.errors import JaxRuntimeError

        try:
            return original(backend, module, *rest, **options)
        except JaxRuntimeError as error:
            # The client's own words; most programs have no such operation and are not searched for it.
            if START.partition(".")[2] not in str(error) or "proxy" not in backend.runtime_type:
                raise
            return original(backend, _without_futures(module), *rest, **options)

    return compile_or_get_cached


def _without_futures(module):
    """A copy of the module: whoever lowered it may want to read it."""
    copy = type(module).parse(module.operation.get_asm(binary=True), module.context)
    for start in _starts(copy):
        _unwrap(start)
    return copy


def _starts(module):
    """Those whose futures are waited for, and put in order, in the same computation: others stay, and are refused."""
    from jaxlib.mlir import ir

    def is_known(operation):
        return (
            operation.name == DONE
            or "call_target_name" in operation.attributes
            and (ir.StringAttr(operation.attributes["call_target_name"]).value == ORDER)
        )

    found = []

    def note(operation):
        if operation.name == START and all(is_known(use.owner) for use in operation.results[0].uses):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(note)
    return found


def _unwrap(start):
    """The operations inside stand where it stood, and who waits for it takes their result."""
    (block,) = start.regions[0].blocks
    for argument, operand in zip(block.arguments, start.operands):
        argument.replace_all_uses_with(operand)
    *inside, last = [operation.operation for operation in block.operations]
    for operation in inside:
        operation.move_before(start)
    while (use := next(iter(start.results[0].uses), None)) is not None:
        if use.owner.name == DONE:
            use.owner.results[0].replace_all_uses_with(last.operands[0])
        use.owner.erase()  # a wish for an order goes too: the server has its own
    start.erase()
