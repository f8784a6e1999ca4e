"""A Gangway cluster as actors of Ray: a placement group for each island, a worker actor in each of its bundles.

    import ray
    from gangway import ray_cluster

    ray.init()
    with ray_cluster.start(islands=[2, 2], devices=4) as cluster:     # two islands of two workers of four devices
        client = gangway.connect(cluster.address)

Ray places the processes and ends them; what they say to each other is Gangway's own. The controller's clients connect
on its host only: start() puts it on the node of the caller.
"""

import contextlib
import os
import shutil
import subprocess

import ray
from ray.util import placement_group, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=0)
class Process:
    """A process of ours on the actor's node. It ends with the actor."""

    def __init__(self, command, announces=False):
        read, write = os.pipe()
        options = [f"--announce-fd={write}"] if announces else []
        self._process = subprocess.Popen([*command, *options], pass_fds=[write] if announces else [])
        os.close(write)
        self._lines = os.fdopen(read)

    def next_line(self):
        """What it announces next; an error of it as an exception."""
        line = self._lines.readline().rstrip("\n")
        if not line or line.startswith("error: "):
            raise RuntimeError(line.removeprefix("error: ") or f"it ended with {self._process.wait()}")
        return line

    def alive(self):
        return self._process.poll() is None

    def stop(self, seconds=10):
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()


class Cluster:
    """What start() returns: `address` for clients, `workers`, a list of actors for each island; a context manager."""

    def __init__(self):
        self.address = None
        self.controller = None
        self.groups = []
        self.workers = []

    def stop(self):
        """Ends all processes and gives the placement groups back."""
        actors = [actor for island in self.workers for actor in island] + [self.controller]
        for actor in filter(None, actors):
            with contextlib.suppress(ray.exceptions.RayError):
                ray.get(actor.stop.remote(), timeout=20)
            ray.kill(actor)
        for group in self.groups:
            remove_placement_group(group)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def start(
    islands, devices, *, resources=None, strategy="SPREAD", host="127.0.0.1", options=(), worker_options=(), timeout=120
):
    """Starts a controller on this node, and for each island as many workers of `devices` devices as `islands` says.

    `resources`: what a worker takes of its node (default: {"CPU": 1}). `host`: this node's address as the others reach
    it; with others than loopback, `options` (of the controller) and `worker_options` hold the certificates.
    """
    gangway = shutil.which("gangway")
    if gangway is None:
        raise RuntimeError("no gangway on the PATH: pip install gangway, or put build/ there")
    cluster = Cluster()
    try:
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        command = [gangway, "controller", f"--listen-workers={host}:0", f"--expect-devices={sum(islands) * devices}"]
        cluster.controller = Process.options(scheduling_strategy=here).remote(
            [*command, f"--device-wait={timeout}", *options], announces=True
        )
        workers_address, cluster.address, *_ = ray.get(cluster.controller.next_line.remote(), timeout=timeout).split()
        for island, workers in enumerate(islands):
            group = placement_group(
                [resources or {"CPU": 1}] * workers, strategy=strategy, name=f"gangway island {island}"
            )
            cluster.groups.append(group)
            ray.get(group.ready(), timeout=timeout)
            command = [
                gangway,
                "worker",
                f"--controller={workers_address}",
                f"--island={island}",
                f"--devices={devices}",
            ]
            cluster.workers.append(
                [
                    Process.options(
                        scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=bundle)
                    ).remote([*command, f"--name=island{island}-{bundle}", *worker_options])
                    for bundle in range(workers)
                ]
            )
        ray.get(cluster.controller.next_line.remote(), timeout=timeout)  # ready
    except BaseException:
        cluster.stop()
        raise
    return cluster
