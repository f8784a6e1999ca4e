// Operation: the op tree of a file: operations with operands, results, attributes, nested regions.
//
// Plain data; values are numbered over the whole file, so an operand needs no scope to be looked up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gangway/base/strong_id.h"
#include "gangway/stablehlo/bytecode/container.h"
#include "gangway/stablehlo/bytecode/type.h"

namespace gangway::bytecode {

// A block argument or the result of an operation.
using ValueId = StrongId<struct ValueTag, uint32_t>;

// Values with consecutive ids.
struct ValueRange {
  uint32_t first = 0;
  uint32_t count = 0;
  ValueId operator[](uint32_t i) const { return ValueId(first + i); }
};

struct Region;

struct Operation {
  OpName name;
  size_t offset = 0;  // in the file, for messages
  AttributeId location;
  std::optional<AttributeId> dictionary;  // discardable attributes; before version 5 all of them
  std::optional<Entry> properties;        // inherent attributes of a registered op
  std::vector<ValueId> operands;
  ValueRange results;
  uint32_t successor_count = 0;
  std::vector<Region> regions;
  // Values defined inside the regions have ids from here on; smaller ones used in there come from outside.
  uint32_t first_inner_value = 0;
};

struct Block {
  ValueRange arguments;
  std::vector<std::optional<AttributeId>> argument_locations;
  std::vector<Operation> operations;
};

struct Region {
  std::vector<Block> blocks;
};

struct OpTree {
  Operation module;                 // the single top-level operation
  std::vector<TypeId> value_types;  // by ValueId
  uint32_t operation_count = 0;
};

}  // namespace gangway::bytecode
