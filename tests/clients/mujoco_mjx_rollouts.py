"""mujoco-mjx: a double pendulum and a falling ball, stepped from 16 starts over 8 devices."""

import jax
import mujoco
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from mujoco import mjx

LIBRARY = "mujoco-mjx"
STARTS, STEPS = 16, 12
SCENE = """
<mujoco><option timestep="0.01"/><worldbody>
  <geom type="plane" size="5 5 .1"/>
  <body pos="0 0 1"><joint type="hinge" axis="0 1 0"/><geom type="capsule" size=".05" fromto="0 0 0 0 0 .5"/>
    <body pos="0 0 .5"><joint name="elbow" type="hinge" axis="0 1 0"/>
      <geom type="capsule" size=".05" fromto="0 0 0 0 0 .5"/></body></body>
  <body pos="1 0 .11"><freejoint/><geom type="sphere" size=".1"/></body>
</worldbody><actuator><motor joint="elbow"/></actuator></mujoco>
"""


def run(mesh):
    scene = mujoco.MjModel.from_xml_string(SCENE)
    model, start = mjx.put_model(scene), mjx.make_data(scene)
    velocity = 0.1 * jax.random.normal(jax.random.key(0), (STARTS, scene.nv))

    def roll(velocity):
        def step(data, _):
            data = mjx.step(model, data.replace(ctrl=-data.qpos[1:2]))
            return data, data.qpos

        return jax.lax.scan(step, start.replace(qvel=velocity), None, length=STEPS)[1]

    return {"positions": jax.jit(jax.vmap(roll))(jax.device_put(velocity, NamedSharding(mesh, P("x"))))}
