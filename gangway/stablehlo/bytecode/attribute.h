// Attribute: the attributes of the builtin, vhlo and sdy dialects as plain values, one vocabulary for all three.
//
// An attribute refers to others by AttributeId, so decoding one never recurses. Text and data are views into the file's
// bytes. Layouts: MLIR's bytecode documentation, StableHLO's VHLO dialect, Shardy's bytecode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "gangway/stablehlo/bytecode/type.h"

namespace gangway::bytecode {

struct UnitAttr {};
struct BoolAttr {
  bool value;
};
// Low bits of the value; sign-extended where the type is signed.
struct IntegerAttr {
  TypeId type;
  int64_t value;
};
struct FloatAttr {
  TypeId type;
  uint64_t bits;
};
struct StringAttr {
  absl::string_view value;  // may hold any bytes
};
struct SymbolAttr {
  absl::string_view name;
};
struct TypeAttr {
  TypeId type;
};
struct ArrayAttr {
  std::vector<AttributeId> elements;
};
struct DictionaryAttr {
  std::vector<std::pair<absl::string_view, AttributeId>> entries;
};
// Numbers without a shape: array<i32: 1, 2>.
struct DenseArrayAttr {
  TypeId element;
  uint64_t count;
  absl::string_view data;
};
// Little-endian row-major elements, or one element for all of them; i1 may be packed (see Artifact::Elements...).
struct DenseAttr {
  TypeId type;
  absl::string_view data;
};

// An enum of the vhlo dialect.
enum class EnumKind : uint8_t {
  kComparisonDirection,
  kComparisonType,
  kApiVersion,
  kFftType,
  kPrecision,
  kRngAlgorithm,
  kRngDistribution,
  kTranspose,
  kAccuracyMode,
};
struct EnumAttr {
  EnumKind kind;
  uint64_t value;
};
struct ResultAccuracyAttr {
  AttributeId mode;
};
struct OutputOperandAliasAttr {
  std::vector<int64_t> output_tuple_indices;
  int64_t operand_index;
  std::vector<int64_t> operand_tuple_indices;
};
struct TypeExtensionsAttr {
  std::vector<int64_t> bounds;  // kDynamic: no bound
};

// Locations.
struct UnknownLocation {};
struct FileLocation {
  absl::string_view file;
  int64_t line = 0;
  int64_t column = 0;
  int64_t end_line = 0;  // equal to line for a location in one line
  int64_t end_column = 0;
};
struct NameLocation {
  absl::string_view name;
  AttributeId child;
};
struct CallSiteLocation {
  AttributeId callee;
  AttributeId caller;
};
struct FusedLocation {
  std::vector<AttributeId> parts;
};

// Meshes and shardings, of vhlo (from StableHLO 1.16) and of sdy.
struct SubAxisAttr {
  int64_t pre_size;
  int64_t size;
};
struct AxisRefAttr {
  absl::string_view name;
  std::optional<AttributeId> sub_axis;
};
struct MeshAxisAttr {
  absl::string_view name;
  int64_t size;
};
struct MeshAttr {
  std::vector<AttributeId> axes;
  std::vector<int64_t> device_ids;  // empty: 0, 1, 2...
};
struct VhloMeshAttr {
  AttributeId axes;                       // array of mesh axes
  std::optional<AttributeId> device_ids;  // a dense tensor
};
struct ReplicaGroupMeshAxesAttr {
  AttributeId mesh;  // a string (the symbol of a mesh op) or a mesh
  AttributeId axes;  // array of axis refs
};
struct ManualAxesAttr {
  std::vector<absl::string_view> axes;
};
struct DimensionShardingAttr {
  std::vector<AttributeId> axes;
  bool closed;
  std::optional<uint64_t> priority;
};
enum class ReductionOp : uint8_t { kSum = 0, kMax = 1, kMin = 2 };
struct TensorShardingAttr {
  AttributeId mesh;  // symbol or mesh
  std::vector<AttributeId> dimensions;
  std::vector<AttributeId> replicated;
  std::vector<AttributeId> unreduced;
  ReductionOp reduction = ReductionOp::kSum;
};
struct TensorShardingPerValueAttr {
  std::vector<AttributeId> shardings;
};
struct ShardingRuleAttr {
  std::vector<int64_t> factor_sizes;
  // Per operand or result, per dimension: its factors, major to minor; empty for a dimension without factor.
  std::vector<AttributeId> operands;
  std::vector<AttributeId> results;
  std::vector<int64_t> reduction;
  std::vector<int64_t> need_replication;
  std::vector<int64_t> permutation;
  std::vector<int64_t> blocked_propagation;
  bool is_custom;
};
struct TensorMappingAttr {
  std::vector<AttributeId> dimensions;
};
struct DimensionMappingAttr {
  std::vector<int64_t> factors;
};

// An attribute this reader does not take apart; the name is for messages.
struct OtherAttr {
  std::string name;
};

using Attribute =
    std::variant<UnitAttr, BoolAttr, IntegerAttr, FloatAttr, StringAttr, SymbolAttr, TypeAttr, ArrayAttr,
                 DictionaryAttr, DenseArrayAttr, DenseAttr, EnumAttr, ResultAccuracyAttr, OutputOperandAliasAttr,
                 TypeExtensionsAttr, UnknownLocation, FileLocation, NameLocation, CallSiteLocation, FusedLocation,
                 SubAxisAttr, AxisRefAttr, MeshAxisAttr, MeshAttr, VhloMeshAttr, ReplicaGroupMeshAxesAttr,
                 ManualAxesAttr, DimensionShardingAttr, TensorShardingAttr, TensorShardingPerValueAttr,
                 ShardingRuleAttr, TensorMappingAttr, DimensionMappingAttr, OtherAttr>;

// "a string", "an array"..., for messages.
std::string AttributeKind(const Attribute& attribute);

}  // namespace gangway::bytecode
