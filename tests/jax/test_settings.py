"""Options from flags, a file and the environment; `gangway config` and `gangway doctor`."""

import pathlib
import re
import sys

import clusters


def config(*arguments, **environment):
    shown = clusters.run([clusters.GANGWAY, "config", *arguments], 60, env=clusters.clean_environment(**environment))
    rows = re.findall(r"^--(\S+) +(\S*) +(\S+)$", shown.stdout, re.MULTILINE)
    return shown, {name: (value, source) for name, value, source in rows}


def test_flags_beat_files_beat_the_environment(tmp_path):
    file = tmp_path / "gangway.toml"
    file.write_text("[serve]\ndevices = 4\nport = 1\n")
    environment = {"GANGWAY_SERVE_DEVICES": "2", "GANGWAY_SERVE_WORKERS": "2", "GANGWAY_CONFIG": str(file)}
    _, settings = config("serve", "--port=7", **environment)
    assert settings["port"] == ("7", "flag")
    assert settings["devices"] == ("4", "file")
    assert settings["workers"] == ("2", "GANGWAY_SERVE_WORKERS")
    assert settings["log-level"] == ("warn", "default")


def test_a_short_flag_is_one():
    _, settings = config("trace", "-o", "x.json", "127.0.0.1:1")
    assert settings["output"] == ("x.json", "flag")


def test_a_command_that_there_is_not():
    for arguments, why in [((), "Usage"), (("serv",), "serv"), (("config", "serv"), "serv"), (("config",), "COMMAND")]:
        shown = clusters.run([clusters.GANGWAY, *arguments], 60)
        assert shown.returncode == 2 and why in shown.stderr, (arguments, shown)


def test_options_before_the_command_that_is_run():
    _, settings = config("run", "--devices=3", "python", "--devices=5")
    assert settings["devices"] == ("3", "flag")


def test_a_misspelled_key_is_an_error(tmp_path):
    file = tmp_path / "gangway.toml"
    file.write_text("[serve]\ndevcies = 4\n")
    shown, _ = config("serve", GANGWAY_CONFIG=str(file))
    assert shown.returncode == 2 and "serve.devcies" in shown.stderr


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    shown, _ = config("serve", GANGWAY_CONFIG=str(tmp_path / "none.toml"))
    assert shown.returncode == 2 and "none.toml" in shown.stderr


def test_a_value_out_of_range_is_an_error():
    shown, _ = config("serve", GANGWAY_SERVE_DEVICES="0")
    assert shown.returncode == 2 and "devices" in shown.stderr


def doctor(path, *options):
    return clusters.run([clusters.GANGWAY, "doctor", *options], 60, env=clusters.clean_environment(PATH=path))


def test_this_host_can_run_gangway():
    found = doctor(f"{pathlib.Path(sys.executable).parent}:/usr/bin:/bin")
    assert found.returncode == 0, found.stdout
    assert re.search(r"^ok +plugin +\d+ cpu devices", found.stdout, re.MULTILINE), found.stdout
    assert re.search(r"^ok +versions +gangway [0-9.]+, protocol \d+; python3 has JAX \d", found.stdout, re.MULTILINE)


def test_a_host_without_jax_can_run_workers(tmp_path):
    found = doctor(str(tmp_path))
    assert found.returncode == 0, found.stdout
    assert re.search(r"^warn +versions .*python3 has no JAX, which clients need", found.stdout, re.MULTILINE)


def test_a_missing_plugin_is_told(tmp_path):
    found = clusters.run([clusters.GANGWAY, "doctor", f"--plugin={tmp_path / 'none.so'}"], 60)
    assert found.returncode == 1
    assert re.search(r"^FAIL +plugin .*none\.so", found.stdout, re.MULTILINE), found.stdout
