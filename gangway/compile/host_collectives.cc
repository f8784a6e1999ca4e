#include "gangway/compile/host_collectives.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"
#include "gangway/hlo/builder.h"
#include "gangway/rules/rule.h"

namespace gangway::compile {
namespace {

using hlo::Instruction;
using hlo::Opcode;

absl::StatusOr<std::string> KindOf(const hlo::Computation& combiner) {
  const std::optional<Reduction> reduction = rules::ReductionOf(combiner);
  if (!reduction) {
    if (combiner.root() != nullptr && combiner.root()->opcode() == Opcode::kXor) return std::string("xor");
    return absl::UnimplementedError(absl::StrCat("computation ", combiner.name(), " is no known reduction"));
  }
  switch (*reduction) {
    case Reduction::kSum:
      return std::string("sum");
    case Reduction::kMax:
      return std::string("max");
    case Reduction::kMin:
      return std::string("min");
    case Reduction::kProduct:
      return std::string("product");
    case Reduction::kAnd:
      return std::string("and");
    case Reduction::kOr:
      return std::string("or");
  }
  return absl::InternalError("unknown reduction");
}

std::string Array(absl::Span<const int64_t> values) {
  return values.empty() ? "array<i64>" : absl::StrCat("array<i64: ", absl::StrJoin(values, ", "), ">");
}

// Fills groups up to the size of the largest (device/HOSTED.md).
constexpr int64_t kNobody = -1;

class Hosting {
 public:
  explicit Hosting(hlo::Module* module) : module_(module) {}

  absl::Status Run() {
    for (hlo::Computation* computation : module_->PostOrder()) {
      std::vector<Instruction*> found;
      for (const auto& instruction : computation->instructions()) {
        if (IsHosted(instruction->opcode())) found.push_back(instruction.get());
      }
      for (Instruction* instruction : found) {
        GW_RETURN_IF_ERROR_WITH(Replace(computation, instruction),
                                absl::StrCat("hosting collective %", instruction->name()));
      }
      if (found.empty()) continue;
      KeepControlOrder(computation);
      computation->RemoveDead();
      computation->SortTopologically();
    }
    module_->RemoveUnreachable();
    return absl::OkStatus();
  }

 private:
  static bool IsHosted(Opcode opcode) { return hlo::IsCollective(opcode) || opcode == Opcode::kPartitionId; }

  absl::Status Replace(hlo::Computation* computation, Instruction* old) {
    GW_ASSIGN_OR_RETURN(Instruction * call, old->opcode() == Opcode::kPartitionId
                                                ? absl::StatusOr<Instruction*>(PartitionId(computation))
                                                : Collective(computation, old));
    call->set_metadata(old->metadata());
    old->ReplaceAllUsesWith(call);
    calls_[old] = call;
    return absl::OkStatus();
  }

  // What ran after a collective, or one that ran after something, does so as a call.
  void KeepControlOrder(hlo::Computation* computation) {
    for (const auto& owned : computation->instructions()) {
      const std::vector<Instruction*> predecessors = owned->control_predecessors();
      Instruction* after = CallFor(owned.get());
      for (Instruction* before : predecessors) {
        if (after != owned.get() || CallFor(before) != before) after->AddControlPredecessor(CallFor(before));
      }
    }
    calls_.clear();
  }
  Instruction* CallFor(Instruction* old) const {
    const auto it = calls_.find(old);
    return it == calls_.end() ? old : it->second;
  }

  Instruction* PartitionId(hlo::Computation* computation) {
    hlo::CustomCallAttr attr;
    attr.target = "gangway.partition_id";
    attr.api = hlo::CustomCallApi::kTypedFfi;
    return Call(computation, Shape::Scalar(DType::kU32), {}, std::move(attr));
  }

  // Layouts row-major on both sides, so that the library sees the bytes in order.
  Instruction* Call(hlo::Computation* computation, const Shape& shape, std::vector<Instruction*> operands,
                    hlo::CustomCallAttr attr) {
    std::vector<Shape> operand_shapes;
    operand_shapes.reserve(operands.size());
    for (const Instruction* operand : operands) operand_shapes.push_back(WithRowMajorLayout(operand->shape()));
    attr.operand_shapes_with_layout = std::move(operand_shapes);
    return computation->Add(Opcode::kCustomCall, WithRowMajorLayout(shape), std::move(operands), std::move(attr));
  }

  std::string Groups(const hlo::CollectiveAttr& attr) {
    const auto groups = attr.groups.Expand(module_->config().num_partitions);
    size_t size = 0;
    for (const auto& group : groups) size = std::max(size, group.size());
    std::vector<int64_t> flat;
    for (const auto& group : groups) {
      flat.insert(flat.end(), group.begin(), group.end());
      flat.insert(flat.end(), size - group.size(), kNobody);
    }
    return absl::StrCat(", groups = ", Array(flat), ", group_size = ", size, " : i64");
  }

  absl::StatusOr<Instruction*> Collective(hlo::Computation* computation, Instruction* old) {
    const auto& attr = old->attr<hlo::CollectiveAttr>();
    if (old->opcode() == Opcode::kAllToAll && !attr.dimension) return TupleAllToAll(computation, old);
    std::string config = absl::StrCat("{key = ", next_key_++, " : i64");
    hlo::CustomCallAttr call;
    call.api = hlo::CustomCallApi::kTypedFfi;
    call.has_side_effect = true;
    switch (old->opcode()) {
      case Opcode::kAllReduce:
      case Opcode::kReduceScatter: {
        GW_ASSIGN_OR_RETURN(const std::string kind, KindOf(*old->called()[0]));
        absl::StrAppend(&config, ", kind = \"", kind, "\"");
        call.target = old->opcode() == Opcode::kAllReduce ? "gangway.all_reduce" : "gangway.reduce_scatter";
        break;
      }
      case Opcode::kAllGather:
        call.target = "gangway.all_gather";
        break;
      case Opcode::kAllToAll:
        call.target = "gangway.all_to_all";
        absl::StrAppend(&config, ", concat_dimension = ", *attr.dimension, " : i64");
        break;
      case Opcode::kCollectivePermute:
        call.target = "gangway.collective_permute";
        break;
      case Opcode::kCollectiveBroadcast:
        call.target = "gangway.collective_broadcast";
        break;
      default:
        return absl::UnimplementedError("this collective is not offered by the collective library");
    }
    if (old->opcode() == Opcode::kCollectivePermute) {
      std::vector<int64_t> pairs;
      for (const auto& [source, target] : attr.source_target_pairs) pairs.insert(pairs.end(), {source, target});
      absl::StrAppend(&config, ", pairs = ", Array(pairs));
    } else {
      const std::string groups = Groups(attr);
      absl::StrAppend(&config, groups);
    }
    if (attr.dimension) absl::StrAppend(&config, ", dimension = ", *attr.dimension, " : i64");
    call.backend_config = config + "}";
    if (old->opcode() == Opcode::kAllReduce) call.aliases = InPlace(*old);
    return Call(computation, old->shape(), old->operands(), std::move(call));
  }

  static std::vector<hlo::OutputAlias> InPlace(const Instruction& old) {
    std::vector<hlo::OutputAlias> aliases;
    for (int64_t i = 0; i < old.operand_count(); ++i) {
      aliases.push_back({old.shape().IsTuple() ? DimVector{i} : DimVector{}, i, {}});
    }
    return aliases;
  }

  // One operand and one result for each member of the group: joined along a new dimension, exchanged, taken apart.
  absl::StatusOr<Instruction*> TupleAllToAll(hlo::Computation* computation, Instruction* old) {
    hlo::Builder builder(computation);
    DimVector stacked = old->operand(0)->shape().dims();
    stacked.insert(stacked.begin(), 1);
    std::vector<Instruction*> parts;
    for (Instruction* operand : old->operands()) parts.push_back(builder.Reshape(operand, stacked));
    Instruction* joined = parts.size() == 1 ? parts[0] : builder.Concatenate(parts, 0);
    const std::string groups = Groups(old->attr<hlo::CollectiveAttr>());
    hlo::CustomCallAttr call;
    call.target = "gangway.all_to_all";
    call.api = hlo::CustomCallApi::kTypedFfi;
    call.has_side_effect = true;
    call.backend_config =
        absl::StrCat("{key = ", next_key_++, " : i64", groups, ", dimension = 0 : i64, concat_dimension = 0 : i64}");
    Instruction* exchanged = Call(computation, joined->shape(), {joined}, std::move(call));
    std::vector<Instruction*> results;
    for (int64_t i = 0; i < old->operand_count(); ++i) {
      DimVector starts(stacked.size(), 0), limits = joined->shape().dims();
      starts[0] = i;
      limits[0] = i + 1;
      results.push_back(builder.Reshape(builder.Slice(exchanged, starts, limits), old->operand(0)->shape().dims()));
    }
    return old->shape().IsTuple() ? builder.Tuple(results) : results[0];
  }

  hlo::Module* module_;
  int64_t next_key_ = 1;
  absl::flat_hash_map<const Instruction*, Instruction*> calls_;  // of one computation, by what they stand for
};

}  // namespace

absl::Status HostCollectives(hlo::Module* module) { return Hosting(module).Run(); }

}  // namespace gangway::compile
