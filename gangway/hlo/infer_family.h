// What the families of shape inference (infer_*.cc) share: the question, the rows they give to the table in infer.cc,
// and the checks that recur. Internal to hlo/.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gangway/base/status.h"
#include "gangway/hlo/computation.h"
#include "gangway/hlo/infer.h"

namespace gangway::hlo {

// One question: the arguments of InferShape. Operand count was checked against the opcode table.
struct InferQuery {
  Opcode opcode;
  absl::Span<const Shape* const> operands;
  const Attributes& attributes;
  absl::Span<const Computation* const> called;
  const Shape& wanted;

  const Shape& operand(int64_t i) const { return *operands[i]; }
  int64_t operand_count() const { return static_cast<int64_t>(operands.size()); }
  bool HasWanted() const { return wanted.dtype() != DType::kInvalid; }
};

// Layouts of the answer are ignored.
using InferFunction = absl::StatusOr<Shape> (*)(const InferQuery&);

struct InferRow {
  Opcode opcode;
  InferFunction infer;
};

absl::Span<const InferRow> ElementwiseInferRows();
absl::Span<const InferRow> MovementInferRows();
absl::Span<const InferRow> SliceInferRows();
absl::Span<const InferRow> DotInferRows();
absl::Span<const InferRow> WindowInferRows();
absl::Span<const InferRow> ReduceInferRows();
absl::Span<const InferRow> GatherInferRows();
absl::Span<const InferRow> ControlInferRows();
absl::Span<const InferRow> CollectiveInferRows();
absl::Span<const InferRow> LinalgInferRows();
absl::Span<const InferRow> EffectInferRows();

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// The attribute of the family the opcode needs, or an error when the instruction carries another.
template <typename T>
absl::StatusOr<const T*> AttrOf(const InferQuery& query) {
  const T* attr = std::get_if<T>(&query.attributes);
  if (attr == nullptr) return Wrong("attributes of another family");
  return attr;
}

// Operands with index >= first are arrays.
absl::Status CheckArrays(const InferQuery& query, int64_t first = 0);
absl::Status CheckCalledCount(const InferQuery& query, size_t count);
absl::Status CheckWantedArray(const InferQuery& query);

// "list" names what is checked in errors. Every entry in [0, rank), none twice.
absl::Status CheckDims(const DimVector& dims, int64_t rank, absl::string_view list);
bool SameDims(const Shape& a, const Shape& b);
bool HasDim(const DimVector& dims, int64_t dim);

// Parameters of a called computation have these types (layouts ignored).
absl::Status CheckParameters(const Computation& called, absl::Span<const Shape> types, absl::string_view role);
// Result of a called computation; an error when it has no root.
absl::StatusOr<Shape> ResultOf(const Computation& called);

// The elements of a tuple shape, or the shape itself.
std::vector<Shape> TupleOrSelf(const Shape& shape);
// One shape as it is, several as a tuple.
Shape SelfOrTuple(std::vector<Shape> shapes);

}  // namespace gangway::hlo
