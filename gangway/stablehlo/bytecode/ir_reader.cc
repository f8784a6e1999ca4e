#include "gangway/stablehlo/bytecode/ir_reader.h"

#include <utility>

#include "gangway/base/status.h"

namespace gangway::bytecode {
namespace {

// Bits of the byte after an op's name.
enum OpMask : uint8_t {
  kHasAttributes = 0x01,
  kHasResults = 0x02,
  kHasOperands = 0x04,
  kHasSuccessors = 0x08,
  kHasRegions = 0x10,
  kHasUseListOrders = 0x20,
  kHasProperties = 0x40,
};

// The values of one region. A region reserves `size` consecutive numbers of its scope, after those of the regions
// around it; `defined` grows as its block arguments and op results are read.
struct RegionValues {
  uint64_t base = 0;
  uint64_t size = 0;
  std::vector<ValueId> defined;
};

// The regions being read in one scope, outermost first. An op whose regions see nothing outside starts a new scope.
using Scope = std::vector<RegionValues>;

class IrReader {
 public:
  explicit IrReader(const Container& container) : container_(container) {}

  absl::StatusOr<OpTree> Read() {
    Cursor cursor = container_.ir;
    Scope scope(1);
    GW_ASSIGN_OR_RETURN(Block top, ReadBlock(cursor, scope, 0));
    GW_RETURN_IF_ERROR(cursor.ExpectDone("the IR"));
    if (top.operations.size() != 1) return cursor.Error("expected one top-level operation");
    tree_.module = std::move(top.operations.front());
    return std::move(tree_);
  }

 private:
  absl::StatusOr<AttributeId> ReadAttribute(Cursor& cursor) {
    GW_ASSIGN_OR_RETURN(uint64_t index, cursor.Index(container_.attributes.size(), "attribute"));
    return AttributeId(static_cast<uint32_t>(index));
  }

  absl::Status Define(Cursor& cursor, uint64_t type, RegionValues& region) {
    if (type >= container_.types.size()) return cursor.Error(absl::StrCat("type ", type, " does not exist"));
    if (region.defined.size() >= region.size) return cursor.Error("region defines more values than announced");
    region.defined.push_back(ValueId(static_cast<uint32_t>(tree_.value_types.size())));
    tree_.value_types.push_back(TypeId(static_cast<uint32_t>(type)));
    return absl::OkStatus();
  }

  static absl::StatusOr<ValueId> Lookup(Cursor& cursor, const Scope& scope) {
    GW_ASSIGN_OR_RETURN(uint64_t number, cursor.Varint());
    for (auto region = scope.rbegin(); region != scope.rend(); ++region) {
      if (number < region->base) continue;
      if (number - region->base < region->defined.size()) return region->defined[number - region->base];
      break;
    }
    return cursor.Error(absl::StrCat("value ", number, " is used before its definition"));
  }

  static absl::Status SkipUseListOrders(Cursor& cursor, uint64_t values) {
    uint64_t records = 1;
    if (values > 1) {
      GW_ASSIGN_OR_RETURN(records, cursor.Count("use-list orders"));
    }
    for (uint64_t i = 0; i < records; ++i) {
      if (values > 1) GW_RETURN_IF_ERROR(cursor.Varint().status());
      GW_ASSIGN_OR_RETURN(FlaggedVarint count, cursor.Flagged());
      if (count.value > cursor.remaining()) return cursor.Error("use-list order too long");
      for (uint64_t j = 0; j < count.value; ++j) GW_RETURN_IF_ERROR(cursor.Varint().status());
    }
    return absl::OkStatus();
  }

  absl::Status ReadArguments(Cursor& cursor, Scope& scope, Block& block) {
    GW_ASSIGN_OR_RETURN(size_t count, cursor.Count("block arguments"));
    block.arguments = {static_cast<uint32_t>(tree_.value_types.size()), static_cast<uint32_t>(count)};
    for (size_t i = 0; i < count; ++i) {
      GW_ASSIGN_OR_RETURN(uint64_t type, cursor.Varint());
      bool has_location = true;
      if (container_.version >= 4) {
        has_location = (type & 1) != 0;
        type >>= 1;
      }
      GW_RETURN_IF_ERROR(Define(cursor, type, scope.back()));
      std::optional<AttributeId>& location = block.argument_locations.emplace_back();
      if (has_location) {
        GW_ASSIGN_OR_RETURN(location, ReadAttribute(cursor));
      }
    }
    if (container_.version < 3) return absl::OkStatus();
    GW_ASSIGN_OR_RETURN(bool has_orders, cursor.Bool());
    return has_orders ? SkipUseListOrders(cursor, count) : absl::OkStatus();
  }

  absl::StatusOr<Block> ReadBlock(Cursor& cursor, Scope& scope, int depth) {
    GW_ASSIGN_OR_RETURN(FlaggedVarint header, cursor.Flagged());
    Block block;
    if (header.flag) GW_RETURN_IF_ERROR(ReadArguments(cursor, scope, block));
    if (header.value > cursor.remaining()) return cursor.Error(absl::StrCat(header.value, " operations do not fit"));
    for (uint64_t i = 0; i < header.value; ++i) {
      Operation op;
      GW_RETURN_IF_ERROR(ReadOperation(cursor, scope, depth, op));
      block.operations.push_back(std::move(op));
    }
    return block;
  }

  absl::Status ReadOperation(Cursor& cursor, Scope& scope, int depth, Operation& op) {
    op.offset = cursor.offset();
    ++tree_.operation_count;
    GW_ASSIGN_OR_RETURN(uint64_t name, cursor.Index(container_.op_names.size(), "op name"));
    op.name = container_.op_names[name];
    GW_ASSIGN_OR_RETURN(uint8_t mask, cursor.Byte());
    GW_ASSIGN_OR_RETURN(op.location, ReadAttribute(cursor));
    if (mask & kHasAttributes) {
      GW_ASSIGN_OR_RETURN(op.dictionary, ReadAttribute(cursor));
    }
    if (mask & kHasProperties) GW_RETURN_IF_ERROR(ReadProperties(cursor, op));
    if (mask & kHasResults) GW_RETURN_IF_ERROR(ReadResults(cursor, scope, op));
    if (mask & kHasOperands) GW_RETURN_IF_ERROR(ReadOperands(cursor, scope, op));
    if (mask & kHasSuccessors) {
      GW_ASSIGN_OR_RETURN(size_t count, cursor.Count("successors"));
      op.successor_count = static_cast<uint32_t>(count);
      for (size_t i = 0; i < count; ++i) GW_RETURN_IF_ERROR(cursor.Varint().status());
    }
    if (mask & kHasUseListOrders) GW_RETURN_IF_ERROR(SkipUseListOrders(cursor, op.results.count));
    return mask & kHasRegions ? ReadRegions(cursor, scope, depth, op) : absl::OkStatus();
  }

  absl::Status ReadProperties(Cursor& cursor, Operation& op) {
    if (!op.name.registered) return ReadAttribute(cursor).status();
    GW_ASSIGN_OR_RETURN(uint64_t index, cursor.Index(container_.properties.size(), "properties"));
    op.properties = container_.properties[index];
    return absl::OkStatus();
  }

  absl::Status ReadResults(Cursor& cursor, Scope& scope, Operation& op) {
    GW_ASSIGN_OR_RETURN(size_t count, cursor.Count("results"));
    op.results = {static_cast<uint32_t>(tree_.value_types.size()), static_cast<uint32_t>(count)};
    for (size_t i = 0; i < count; ++i) {
      GW_ASSIGN_OR_RETURN(uint64_t type, cursor.Varint());
      GW_RETURN_IF_ERROR(Define(cursor, type, scope.back()));
    }
    return absl::OkStatus();
  }

  absl::Status ReadOperands(Cursor& cursor, const Scope& scope, Operation& op) {
    GW_ASSIGN_OR_RETURN(size_t count, cursor.Count("operands"));
    op.operands.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      GW_ASSIGN_OR_RETURN(ValueId value, Lookup(cursor, scope));
      op.operands.push_back(value);
    }
    return absl::OkStatus();
  }

  absl::Status ReadRegions(Cursor& cursor, Scope& scope, int depth, Operation& op) {
    GW_ASSIGN_OR_RETURN(FlaggedVarint header, cursor.Flagged());
    if (header.value > cursor.remaining()) return cursor.Error(absl::StrCat(header.value, " regions do not fit"));
    op.first_inner_value = static_cast<uint32_t>(tree_.value_types.size());
    if (depth >= kMaxRegionDepth) return cursor.Error(absl::StrCat("regions nested deeper than ", kMaxRegionDepth));
    if (!header.flag || container_.version < 2) {
      // Before version 2 isolated regions were inline, but numbered from zero all the same.
      Scope isolated;
      Scope& inner = header.flag ? isolated : scope;
      for (uint64_t i = 0; i < header.value; ++i) GW_RETURN_IF_ERROR(ReadRegion(cursor, inner, depth + 1, op));
      return absl::OkStatus();
    }
    GW_ASSIGN_OR_RETURN(Section section, ReadSection(cursor));
    if (section.id != SectionId::kIr) return cursor.Error("expected a nested IR section");
    Scope isolated;
    for (uint64_t i = 0; i < header.value; ++i) {
      GW_RETURN_IF_ERROR(ReadRegion(section.body, isolated, depth + 1, op));
    }
    return section.body.ExpectDone("the regions");
  }

  absl::Status ReadRegion(Cursor& cursor, Scope& scope, int depth, Operation& op) {
    GW_ASSIGN_OR_RETURN(size_t blocks, cursor.Count("blocks"));
    Region region;
    if (blocks > 0) {
      GW_ASSIGN_OR_RETURN(size_t values, cursor.Count("values"));
      const uint64_t base = scope.empty() ? 0 : scope.back().base + scope.back().size;
      scope.push_back({base, values, {}});
      for (size_t i = 0; i < blocks; ++i) {
        GW_ASSIGN_OR_RETURN(Block block, ReadBlock(cursor, scope, depth));
        region.blocks.push_back(std::move(block));
      }
      if (scope.back().defined.size() != values) return cursor.Error("region defines fewer values than announced");
      scope.pop_back();
    }
    op.regions.push_back(std::move(region));
    return absl::OkStatus();
  }

  const Container& container_;
  OpTree tree_;
};

}  // namespace

absl::StatusOr<OpTree> ReadIr(const Container& container) { return IrReader(container).Read(); }

}  // namespace gangway::bytecode
