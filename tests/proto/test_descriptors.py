"""Every field of our .proto files is, by number, name and type, a field of the installed jaxlib's messages."""

import pathlib
import subprocess

import jaxlib
import jaxlib_descriptors
import pytest
from google.protobuf import descriptor_pb2

ROOT = pathlib.Path(__file__).parents[2]
PROTO = ROOT / "proto"
FILES = sorted(str(path.relative_to(PROTO)) for path in (PROTO / "xla").rglob("*.proto"))
# Newer than the pinned jaxlib: clients of jaxlib 0.12 send them. Everything else must be there, and be the same.
NEWER = (
    "xla.BlockScalingConfig",
    "xla.DebugAttribute",
    "xla.HloComputationProto.backend_config",
    "xla.HloInstructionProto.block_scaling_config",
    "xla.HloInstructionProto.comparison_order",
    "xla.HloInstructionProto.has_dynamic_root",
    "xla.HloInstructionProto.shuffle_mode",
    "xla.HloModuleProto.backend_config",
    "xla.HloModuleProto.debug_attributes",
    "xla.NamedShardingProto.ReductionOpProto",
    "xla.NamedShardingProto.reduction_op",
    "xla.OriginalValueProto.call_hierarchy",
    "xla.PrecisionConfig.Algorithm.ALG_DOT_BF16_BF16_FP8X",
    "xla.ShuffleMode",
    "xla.SparsityConfig.TensorSparsityConfig.idx",
    "xla.X64ConfigProto",
    "xla.ifrt.DTypeProto.Kind.KIND_F6E",
)


@pytest.fixture(scope="session")
def theirs():
    return jaxlib_descriptors.read(pathlib.Path(jaxlib.__file__).parent / "libjax_common.so")


@pytest.fixture(scope="session")
def ours(tmp_path_factory):
    out = tmp_path_factory.mktemp("descriptors") / "set.pb"
    subprocess.run(["protoc", f"--proto_path={PROTO}", f"--descriptor_set_out={out}", *FILES], check=True)
    return {file.name: file for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file}


def entries(file):
    """Full name -> what the wire sees: field number, label and type, enum number, method types."""
    found = {}

    def enum(prefix, proto):
        for value in proto.value:
            found[f"{prefix}.{proto.name}.{value.name}"] = value.number

    def message(prefix, proto):
        name = f"{prefix}.{proto.name}"
        found[name] = "message"
        for field in proto.field:
            found[f"{name}.{field.name}"] = (field.number, field.label, field.type, field.type_name)
        for nested in proto.nested_type:
            message(name, nested)
        for nested in proto.enum_type:
            enum(name, nested)

    for proto in file.enum_type:
        enum(file.package, proto)
    for proto in file.message_type:
        message(file.package, proto)
    for service in file.service:
        for method in service.method:
            found[f"{file.package}.{service.name}.{method.name}"] = (
                method.input_type,
                method.output_type,
                method.client_streaming,
                method.server_streaming,
            )
    return found


@pytest.mark.parametrize("name", FILES)
def test_file_matches_jaxlib(name, ours, theirs):
    assert name in theirs, f"jaxlib {jaxlib.__version__} has no {name}"
    expected = entries(theirs[name])
    wrong = {
        key: (value, expected.get(key))
        for key, value in entries(ours[name]).items()
        if expected.get(key) != value and not (key not in expected and key.startswith(NEWER))
    }
    assert not wrong, f"ours, jaxlib {jaxlib.__version__}'s: {wrong}"


def test_a_wrong_number_would_be_noticed(theirs):
    name = "xla/python/ifrt_proxy/common/ifrt_service.proto"
    changed = descriptor_pb2.FileDescriptorProto()
    changed.CopyFrom(theirs[name])
    changed.message_type[0].field[0].number += 1
    assert entries(changed) != entries(theirs[name])
