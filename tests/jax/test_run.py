"""`gangway run`: passes everything through, takes everything down, and says in one line what went wrong."""

import signal
import socket
import subprocess
import sys
import uuid

import clusters
import pytest

SLEEPER = """
import jax, time
print(len(jax.devices()), flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise SystemExit(5)
"""


def gangway(*arguments, **options):
    return clusters.run([str(clusters.GANGWAY), *arguments], timeout=60, **options)


@pytest.fixture
def marked():
    """An environment with a mark, and the mark; nothing with it may be left at the end of the test."""
    mark = f"GANGWAY_TEST_MARK={uuid.uuid4()}"
    yield clusters.clean_environment(GANGWAY_TEST_MARK=mark.split("=")[1]), mark
    assert clusters.eventually(lambda: not clusters.marked_processes(mark)), clusters.marked_processes(mark)


def test_exit_code(marked):
    result = gangway("run", "--devices", "2", "--", sys.executable, "-c", "raise SystemExit(7)", env=marked[0])
    assert result.returncode == 7


def test_output_and_input(marked):
    script = "import sys; print(sys.stdin.read().upper()); print('err', file=sys.stderr); print(sys.argv[1:])"
    command = ["run", "--devices", "1", "--", sys.executable, "-c", script, "--steps", "3", "-x"]
    result = subprocess.run(
        [str(clusters.GANGWAY), *command], input="abc", env=marked[0], capture_output=True, text=True, timeout=60
    )
    assert (result.stdout, result.stderr) == ("ABC\n['--steps', '3', '-x']\n", "err\n")


def test_the_script_sees_our_devices(marked):
    script = "import jax; print([d.id for d in jax.devices()], jax.jit(lambda x: x + 1)(1))"
    result = gangway("run", "--devices", "4", "--", sys.executable, "-c", script, env=marked[0])
    assert result.stdout == "[0, 1, 2, 3] 2\n", result.stderr


def test_a_local_cpu_beside(marked):
    script = "import jax; print(len(jax.devices()), len(jax.devices('cpu')))"
    environment = marked[0] | {"JAX_PLATFORMS": "gangway,cpu"}
    result = gangway("run", "--devices", "4", "--", sys.executable, "-c", script, env=environment)
    assert result.stdout == "4 1\n", result.stderr


def test_the_name_proxy(marked):
    script = "import jax; print(len(jax.devices()))"
    environment = marked[0] | {"JAX_PLATFORMS": "proxy"}
    result = gangway("run", "--devices", "4", "--", sys.executable, "-c", script, env=environment)
    assert result.stdout == "4\n", result.stderr


@pytest.mark.parametrize("first", ["", "jax.devices()"])
def test_a_compiler_pass_of_the_client(marked, first):
    """It cannot run in the server; whether it is registered before or after the backend is there, it is refused."""
    script = f"""
import jax, jax.extend.xla
try:
    {first or "pass"}
    jax.extend.xla.register_hlo_module_transformation(lambda module: None, name="nothing")
    print(jax.jit(lambda x: x + 1)(1))
except Exception as error:
    print(error)
"""
    result = gangway("run", "--devices", "1", "--", sys.executable, "-c", script, env=marked[0])
    assert "a pass of the client's own" in result.stdout, result.stderr


def test_a_command_that_does_not_exist(marked):
    result = gangway("run", "--", "no-such-command", env=marked[0])
    assert result.returncode == 127
    assert "no-such-command" in result.stderr


def start_sleeper(environment):
    process = subprocess.Popen(
        clusters.gangway_run("-c", SLEEPER, devices=2),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "2\n"
    return process


def test_an_interrupt_reaches_the_script(marked):
    process = start_sleeper(marked[0])
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert (out, process.returncode) == ("interrupted\n", 5)


def test_termination_takes_all_down(marked):
    process = start_sleeper(marked[0])
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM


def test_being_killed_takes_all_down(marked):
    process = start_sleeper(marked[0])
    process.kill()
    process.communicate(timeout=30)


def assert_one_line(result, *words):
    assert result.returncode == 1
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    for word in words:
        assert word in result.stderr


def test_a_plugin_that_does_not_exist(marked):
    result = gangway("run", "--plugin", "/nowhere/plugin.so", "--", "true", env=marked[0])
    assert_one_line(result, "/nowhere/plugin.so")


def test_a_library_that_is_no_plugin(marked, tmp_path):
    junk = tmp_path / "junk.so"
    junk.write_text("not a library")
    assert_one_line(gangway("run", "--plugin", str(junk), "--", "true", env=marked[0]), "junk.so")


def test_a_port_in_use(marked):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert_one_line(gangway("run", "--port", port, "--", "true", env=marked[0]), port)


def test_unknown_options_and_help():
    result = gangway("run", "--no-such-option", "--", "true")
    assert result.returncode != 0
    assert "no-such-option" in result.stderr + result.stdout
    result = gangway("--help")
    assert result.returncode == 0
    for command in "run", "serve", "worker", "partition", "opt":
        assert command in result.stdout


def test_no_server_is_a_clear_error():
    script = "import jax; jax.devices()"
    environment = clusters.clean_environment(JAX_PLATFORMS="gangway", PYTHONPATH=str(clusters.ROOT / "python"))
    result = clusters.run([sys.executable, "-c", script], env=environment)
    assert "set GANGWAY_ADDRESS" in result.stderr
    environment |= {"GANGWAY_ADDRESS": "127.0.0.1:9", "GANGWAY_CONNECT_SECONDS": "2"}
    result = clusters.run([sys.executable, "-c", script], env=environment)
    assert "cannot reach the Gangway server at grpc://127.0.0.1:9" in result.stderr
