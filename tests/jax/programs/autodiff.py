import jax
import jax.numpy as jnp
from meshes import mesh, normal, on, put


def _mlp(w, x):
    return jnp.mean((jnp.tanh(x @ w["a"]) @ w["b"]) ** 2)


def gradient_with_sharded_weights():
    m = mesh(data=4, model=2)
    w = {"a": put(normal(16, 32), m, "data", "model"), "b": put(normal(32, 16, seed=1), m, "model", "data")}
    x = put(normal(8, 16, seed=2), m, "data")
    places = {"a": on(m, "data", "model"), "b": on(m, "model", "data")}
    return jax.jit(jax.value_and_grad(_mlp), out_shardings=(on(m), places))(w, x)


def vmap_of_a_gradient():
    m = mesh(x=8)
    w, x = put(normal(4), m), put(normal(16, 4, seed=1), m, "x")
    f = jax.vmap(jax.grad(lambda w, x: jnp.sin(w @ x) ** 2), (None, 0))
    return jax.jit(f, out_shardings=on(m, "x"))(w, x)


def hessian():
    m = mesh(x=8)
    return jax.jit(jax.hessian(lambda x: jnp.sum(jnp.sin(x) * x[::-1] ** 2)), out_shardings=on(m))(
        put(normal(8), m, "x")
    )


def jvp_and_jacobians():
    m = mesh(x=8)
    x = put(normal(8), m, "x")

    def f(x):
        g = lambda x: jnp.cumsum(x) * x  # noqa: E731
        return jax.jvp(g, (x,), (jnp.ones_like(x),)), jax.jacfwd(g)(x), jax.jacrev(g)(x)

    return jax.jit(f, out_shardings=on(m))(x)


def own_vjp():
    @jax.custom_vjp
    def clipped(x):
        return x * 3

    clipped.defvjp(lambda x: (x * 3, x), lambda x, g: (jnp.clip(g, -1, 1) * jnp.sign(x),))
    m = mesh(x=8)
    return jax.jit(jax.grad(lambda x: (clipped(x) ** 2).sum()), out_shardings=on(m, "x"))(put(normal(16), m, "x"))


def rematerialised():
    m = mesh(data=4, model=2)
    x, w = put(normal(8, 16), m, "data"), put(normal(2, 16, 16, seed=1) * 0.3, m, None, "data", "model")

    def f(w, x):
        step = jax.checkpoint(lambda x, w: (jnp.sin(x @ w) @ w.T, None))
        return jax.lax.scan(step, x, w)[0].sum()

    return jax.jit(jax.grad(f), out_shardings=on(m, None, "data", "model"))(w, x)


def stopped_gradient():
    m = mesh(x=8)
    f = jax.grad(lambda x: (x * jax.lax.stop_gradient(jnp.exp(x))).sum())
    return jax.jit(f, out_shardings=on(m, "x"))(put(normal(16), m, "x"))


def cross_entropy_over_a_sharded_vocabulary():
    m = mesh(data=4, model=2)
    x, w = put(normal(8, 16), m, "data"), put(normal(16, 32, seed=1), m, None, "model")
    label = put((normal(8, seed=2) > 0).astype("int32") * 17 + 3, m, "data")

    def f(w, x, label):
        logits = x @ w
        return (jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, label[:, None], 1)[:, 0]).mean()

    return jax.jit(jax.value_and_grad(f), out_shardings=(on(m), on(m, None, "model")))(w, x, label)
