"""What deploy/package and cmake/GangwayInstall.cmake make, installed as a user installs it and used from there."""

import contextlib
import os
import pathlib
import re
import shutil
import sys

import clusters
import pytest
import yaml

ROOT = clusters.ROOT
PACKAGE = ROOT / "deploy" / "package"
INSTALL = ROOT / "docs" / "install.md"
FIRST_RUN = ROOT / "docs" / "first_run" / "train.py"
# The runtimes of C and C++, and what is no library.
OF_THE_SYSTEM = re.compile(
    r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+)[.-].*|.*\.(cache|mo)|locale-.*)"
)

pytestmark = [
    pytest.mark.skipif(not (ROOT / "build" / "CPackConfig.cmake").exists(), reason="build/ is not configured"),
    pytest.mark.skipif(not clusters.GANGWAY.exists(), reason="build/gangway is not built"),
]


def checked(command, timeout=300, **options):
    done = clusters.run([*map(str, command)], timeout, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def alone(*folders, **extra):
    """An environment in which nothing of this checkout is found."""
    path = ":".join([*map(str, folders), "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"])
    return {"PATH": path, "HOME": str(pathlib.Path.home()), **extra}


def block(title):
    """The commands of docs/install.md that have that title."""
    return re.search(rf'^```sh title="{title}"\n(.*?)^```$', INSTALL.read_text(), re.DOTALL | re.MULTILINE)[1]


def installed(folder, prefix):
    checked(
        ["cmake", "--install", ROOT / "build", "--component", "gangway", "--prefix", prefix],
        env=dict(os.environ, DESTDIR=str(folder)),
    )
    return pathlib.Path(f"{folder}{prefix}")


def test_an_installation_below_a_prefix(tmp_path):
    commands = block("prefix").replace("build/root", str(tmp_path / "root"))
    checked(["bash", "-euc", commands], 600, cwd=ROOT)
    where = tmp_path / "root" / "opt" / "gangway"
    assert {path.name for path in (tmp_path / "root").iterdir()} == {"opt"}
    shown = checked([where / "bin" / "gangway", "doctor"], env=alone(pathlib.Path(sys.executable).parent))
    assert f"JAX finds us in {where}/share/gangway/python" in shown
    assert not list(where.rglob("*_test.py")) and not list(where.rglob("__pycache__"))
    out = checked(
        [where / "bin" / "gangway", "run", "--devices", "2", "--", sys.executable, FIRST_RUN],
        env=alone(pathlib.Path(sys.executable).parent),
    )
    assert out == "2 devices: 7232.0\n"


@pytest.mark.skipif(shutil.which("dpkg-shlibdeps") is None, reason="no dpkg-shlibdeps: apt-get install dpkg-dev")
class TestDebianPackage:
    @pytest.fixture(scope="class")
    def package(self, tmp_path_factory):
        folder = tmp_path_factory.mktemp("deb")
        checked(["cpack", "-G", "DEB", "--config", ROOT / "build" / "CPackConfig.cmake", "-B", folder])
        (package,) = folder.glob("*.deb")
        return package

    def test_it_says_what_it_needs(self, package):
        fields = checked(["dpkg-deb", "--field", package])
        version = re.search(r"project\(gangway VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
        assert re.search(rf"^Version: {re.escape(version)}", fields, re.MULTILINE), fields
        needs = re.search(r"^Depends: (.*)", fields, re.MULTILINE)[1]
        for library in ("libc6", "libgrpc++1", "libucx0", "libprotobuf"):
            assert library in needs, needs

    @pytest.mark.skipif(os.geteuid() != 0, reason="dpkg installs as root only")
    def test_it_is_installed_works_and_goes(self, package, tmp_path):
        root = tmp_path / "root"
        (root / "var/lib/dpkg/updates").mkdir(parents=True)
        (root / "var/lib/dpkg/info").mkdir()
        (root / "var/lib/dpkg/status").touch()
        # Its libraries are this machine's: only what is new is put below the root.
        dpkg = ["dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless", "--log=/dev/null"]
        checked([*dpkg, "--install", package])
        listed = checked(["dpkg", f"--root={root}", "--listfiles", "gangway"]).splitlines()
        assert {"/usr/bin/gangway", "/usr/share/doc/gangway/copyright"} <= set(listed)
        environment = alone(root / "usr/bin", pathlib.Path(sys.executable).parent)
        assert f"JAX finds us in {root}/usr/share/gangway/python" in checked(["gangway", "doctor"], env=environment)
        out = checked(["gangway", "run", "--devices", "2", "--", sys.executable, FIRST_RUN], env=environment)
        assert out == "2 devices: 7232.0\n"
        shutil.rmtree(root / "tmp", ignore_errors=True)
        for cache in root.rglob("__pycache__"):  # Python's, as everywhere
            shutil.rmtree(cache)
        checked([*dpkg, "--purge", "gangway"])
        left = [path for path in root.rglob("*") if path.is_file() and "var/lib/dpkg" not in str(path)]
        assert left == []


class TestWheel:
    @pytest.fixture(scope="class")
    def wheel(self, tmp_path_factory):
        folder = tmp_path_factory.mktemp("wheel")
        checked([sys.executable, "-m", "venv", folder / "tools"])
        tools = folder / "tools" / "bin"
        done = clusters.run([tools / "pip", "install", "-q", "--no-deps", "-r", PACKAGE / "requirements.txt"], 300)
        if done.returncode != 0:
            pytest.skip(f"no tools to make a wheel: {done.stderr.splitlines()[-1:]}")
        stage = installed(folder / "stage", "/")
        # As `make wheel` does: the interpreter is named, its folder is not in PATH.
        checked([tools / "python", PACKAGE / "wheel.py", stage, folder / "out"], env=alone())
        (wheel,) = (folder / "out").glob("*.whl")
        shown = checked([tools / "python", "-m", "auditwheel", "show", wheel], env=alone(tools))
        assert re.search(r"manylinux_\d+_\d+", wheel.name)[0] in shown
        return wheel

    @pytest.fixture(scope="class")
    def environment(self, wheel, tmp_path_factory):
        """A virtual environment that has nothing but the wheel and what it asks for."""
        folder = tmp_path_factory.mktemp("clean")
        checked([sys.executable, "-m", "venv", folder])
        (folder / "build" / "packages").mkdir(parents=True)
        shutil.copy(wheel, folder / "build" / "packages")
        checked(["bash", "-euc", block("wheel")], 500, env=alone(folder / "bin"), cwd=folder)
        return folder

    def test_stock_jax_finds_it(self, environment, tmp_path):
        alone_there = alone(environment / "bin")
        run = ["gangway", "run", "--devices", "4", "--workers", "2", "--", "python", FIRST_RUN]
        assert checked(run, env=alone_there, cwd=tmp_path) == "4 devices: 7232.0\n"
        shown = checked(["gangway", "doctor"], env=alone_there, cwd=tmp_path)
        assert f"JAX finds us in {environment}" in shown and "FAIL" not in shown
        program = "import gangway; print(gangway.shardings(lambda x: x + 1, 1.0).devices)"
        assert checked(["python", "-c", program], env=alone_there, cwd=tmp_path) == "1\n"

    def test_it_carries_its_libraries(self, environment, tmp_path):
        """Looked at from inside: what the two processes of a cluster have mapped."""
        script = (
            "import os, glob, jax; jax.jit(lambda x: x + 1)(1.0).block_until_ready()\n"
            "for maps in glob.glob('/proc/[0-9]*/maps'):\n"
            "    try: text = open(maps).read()\n"
            "    except OSError: continue\n"
            f"    if '{environment}' in text and 'gangway.scripts/gangway' in text: print(text)\n"
        )
        run = ["gangway", "run", "--devices", "2", "--workers", "2", "--", "python", "-c", script]
        shown = checked(run, env=alone(environment / "bin"), cwd=tmp_path)
        mapped = set(re.findall(r"(/\S+)$", shown, re.MULTILINE))
        assert any("gangway.libs/libgrpc" in path for path in mapped)
        assert any("gangway.libs/libucp" in path for path in mapped)
        strange = {path for path in mapped if path.startswith(("/usr/lib", "/lib"))}
        assert [path for path in sorted(strange) if not OF_THE_SYSTEM.fullmatch(path.rpartition("/")[2])] == []

    def test_it_says_whose_work_it_holds(self, environment):
        said = {path.name for path in environment.glob("lib/python*/site-packages/gangway-*.dist-info/licenses/*")}
        assert {"LICENSE", "libucx0.copyright", "libjemalloc-dev.copyright"} <= said


@contextlib.contextmanager
def kernel_folders(root):
    """What a container has of them below `root`: devices, with a /dev/shm for all users, processes and interfaces."""
    mounts = {
        "proc": ["-t", "proc", "proc"],
        "sys": ["-t", "sysfs", "-o", "ro", "sysfs"],
        "dev": ["--rbind", "--make-rslave", "/dev"],
    }
    with contextlib.ExitStack() as mounted:
        for folder, options in mounts.items():
            checked(["mount", *options, root / folder])
            # At once, whoever still looks at it: it must not be there when the folder above is deleted.
            mounted.callback(checked, ["umount", "--recursive", "--lazy", root / folder])
        yield


class TestContainer:
    """No container runtime is asked for: the file is read, and its last stage can be run below a folder."""

    @staticmethod
    def steps():
        """[(instruction, rest)] of the Containerfile, stage by stage."""
        stages, text = [], (PACKAGE / "Containerfile").read_text()
        for line in re.sub(r"\\\n", " ", text).splitlines():
            if line and not line.startswith("#"):
                instruction, _, rest = line.partition(" ")
                if instruction == "FROM":
                    stages.append([])
                stages[-1].append((instruction, rest.strip()))
        return stages

    def test_what_it_names_is_there(self):
        build, last = self.steps()
        assert all(step in {"FROM", "RUN", "COPY", "WORKDIR", "USER", "CMD", "ENV"} for step, _ in build + last)
        assert build[0][1].endswith(" AS build")
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        made = [rest.split()[1] for step, rest in build if step == "RUN" and rest.startswith("make ")]
        assert made and set(made) <= targets
        ignored = (ROOT / ".dockerignore").read_text().split()
        assert {".git", "build*", ".venv*"} <= set(ignored)
        assert ("USER", "gangway") in last

    def test_its_name_is_that_of_the_manifests(self):
        version = re.search(r"project\(gangway VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
        jobset = yaml.safe_load((ROOT / "deploy/kubernetes/jobset.yaml").read_text())
        pods = [job["template"]["spec"]["template"]["spec"] for job in jobset["spec"]["replicatedJobs"]]
        images = {container["image"] for pod in pods for container in pod["containers"]}
        assert images == {f"gangway:{version}"}
        assert f"-t gangway:{version}" in (PACKAGE / "Containerfile").read_text()

    @pytest.mark.skipif("GANGWAY_CHROOT" not in os.environ, reason="GANGWAY_CHROOT: a Debian with Python to copy")
    def test_its_last_stage_below_a_folder(self, tmp_path):
        root = tmp_path / "root"
        checked(["cp", "-a", os.environ["GANGWAY_CHROOT"], root])
        for file in ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt"):  # how this machine reaches PyPI
            shutil.copy(f"/{file}", root / file)
        shutil.copytree(ROOT / "build" / "packages", root / "gangway/build/packages")
        user, folder = "root", "/"
        # Debian's own Python asks for the first; the image's does not.
        variables = [
            "PIP_BREAK_SYSTEM_PACKAGES=1",
            "PIP_CERT=/etc/ssl/certs/ca-certificates.crt",
            "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin",
        ]
        with kernel_folders(root):
            for step, rest in self.steps()[-1]:
                if step == "COPY":
                    source, target = rest.split()[1:]
                    shutil.copytree(f"{root}{source}", f"{root}{target}")
                elif step == "USER":
                    user = rest
                elif step == "WORKDIR":
                    folder = rest
                elif step == "RUN":
                    within = f"cd {folder} && {rest}"
                    checked(["chroot", f"--userspec={user}:{user}", root, "env", *variables, "sh", "-c", within], 500)
            shutil.copy(FIRST_RUN, root / "tmp")
            script = "gangway run --devices 4 -- python3 /tmp/train.py"
            chroot = ["chroot", f"--userspec={user}:{user}", root, "env", *variables, "HOME=/tmp", "sh", "-c", script]
            assert checked(chroot) == "4 devices: 7232.0\n"
