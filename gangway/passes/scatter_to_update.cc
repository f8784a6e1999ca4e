// A scatter of one window to a place known beforehand (what x.at[1:-1].set(u) and .add(u) are written as) becomes a
// dynamic-update-slice: where every element goes is then known before the program is partitioned.
#include <algorithm>
#include <optional>
#include <utility>

#include "gangway/eval/evaluate.h"
#include "gangway/hlo/builder.h"
#include "gangway/passes/passes.h"
#include "gangway/passes/replace_each.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr int kMaxDepth = 8;
constexpr int64_t kMaxElements = 64;

// The value of a small array that depends on constants only.
std::optional<eval::Value> KnownValue(const Instruction& x, int depth = 0) {
  if (const auto* constant = x.attr_if<hlo::ConstantAttr>()) return eval::Value(constant->literal);
  if (depth == kMaxDepth || !x.shape().IsArray() || x.shape().ElementCount() > kMaxElements || x.HasSideEffect() ||
      x.operand_count() == 0 || !x.called().empty()) {
    return std::nullopt;
  }
  std::vector<eval::Value> operands;
  for (const Instruction* operand : x.operands()) {
    std::optional<eval::Value> value = KnownValue(*operand, depth + 1);
    if (!value) return std::nullopt;
    operands.push_back(*std::move(value));
  }
  absl::StatusOr<eval::Value> value = eval::EvaluateInstruction(x, operands);
  if (!value.ok()) return std::nullopt;
  return *std::move(value);
}

// Where the window begins along each dimension of the array; nothing when that is not known.
std::optional<DimVector> KnownStarts(const Instruction& scatter) {
  const Instruction& indices = *scatter.operand(1);
  const std::optional<eval::Value> value = KnownValue(indices);
  if (!value) return std::nullopt;
  const DType dtype = indices.shape().dtype();
  DimVector starts(scatter.shape().rank(), 0);
  const char* element = static_cast<const char*>(value->array().data());
  for (int64_t dim : scatter.attr<hlo::ScatterAttr>().scatter_dims_to_operand_dims) {
    starts[dim] = ElementAsInt64(dtype, element);
    element += ByteWidth(dtype);
  }
  return starts;
}

// The window with the dimensions of extent 1 that its update leaves out.
DimVector WindowOf(const Instruction& scatter) {
  const auto& attr = scatter.attr<hlo::ScatterAttr>();
  DimVector window(scatter.shape().rank(), 1);
  size_t next = 0;
  for (int64_t dim = 0; dim < scatter.shape().rank(); ++dim) {
    const auto& inserted = attr.inserted_window_dims;
    if (std::find(inserted.begin(), inserted.end(), dim) == inserted.end()) {
      window[dim] = scatter.operand(2)->shape().dim(attr.update_window_dims[next++]);
    }
  }
  return window;
}

// What the combiner makes of what was there and the update; null when it is more than one operation of the two.
Instruction* Combined(const Computation& combiner, Instruction* old, Instruction* update, Builder& builder) {
  const Instruction *first = combiner.parameter(0), *second = combiner.parameter(1), *root = combiner.root();
  if (root == second) return update;
  if (root->operand_count() != 2 || !hlo::IsElementwise(root->opcode()) || root->shape() != first->shape()) {
    return nullptr;
  }
  if (root->operand(0) == first && root->operand(1) == second) return builder.Binary(root->opcode(), old, update);
  if (root->operand(0) == second && root->operand(1) == first) return builder.Binary(root->opcode(), update, old);
  return nullptr;
}

bool Replace(Instruction* scatter, Builder& builder) {
  const auto& attr = scatter->attr<hlo::ScatterAttr>();
  if (scatter->operand_count() != 3 || !attr.input_batching_dims.empty() || scatter->has_sharding()) return false;
  Instruction *array = scatter->operand(0), *update = scatter->operand(2);
  if (static_cast<int64_t>(attr.update_window_dims.size()) != update->shape().rank()) return false;
  const std::optional<DimVector> starts = KnownStarts(*scatter);
  if (!starts) return false;
  const DimVector window = WindowOf(*scatter);
  DimVector limits = *starts;
  for (int64_t dim = 0; dim < array->shape().rank(); ++dim) {
    // A window that is not wholly inside is dropped; an update would be moved inside.
    if ((*starts)[dim] < 0 || (*starts)[dim] > array->shape().dim(dim) - window[dim]) return false;
    limits[dim] += window[dim];
  }
  builder.set_metadata(scatter->metadata());
  if (update->shape().dims() != window) update = builder.Reshape(update, window);
  Instruction* combined = Combined(*scatter->called()[0], builder.Slice(array, *starts, limits), update, builder);
  if (combined == nullptr) return false;
  std::vector<Instruction*> places;
  for (int64_t start : *starts) places.push_back(builder.Index(start));
  scatter->ReplaceAllUsesWith(builder.DynamicUpdateSlice(array, combined, std::move(places)));
  return true;
}

}  // namespace

absl::StatusOr<bool> RunScatterToUpdate(hlo::Module& module) { return ReplaceEach(module, Opcode::kScatter, Replace); }

}  // namespace gangway::passes
