// Shape inference of cholesky, triangular-solve, fft, batch normalization and random numbers.
#include "gangway/hlo/infer_family.h"

namespace gangway::hlo {
namespace {

absl::Status CheckMatrices(const Shape& shape, absl::string_view what) {
  if (!IsFloat(shape.dtype()) && !IsComplex(shape.dtype())) return Wrong(what, " must be float or complex");
  if (shape.rank() < 2 || shape.dim(shape.rank() - 1) != shape.dim(shape.rank() - 2)) {
    return Wrong(what, " must be square matrices: ", shape.ToString());
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> Cholesky(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(AttrOf<CholeskyAttr>(query).status());
  GW_RETURN_IF_ERROR(CheckMatrices(query.operand(0), "the operand"));
  return query.operand(0);
}

absl::StatusOr<Shape> TriangularSolve(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const TriangularSolveAttr* attr, AttrOf<TriangularSolveAttr>(query));
  const Shape& a = query.operand(0);
  const Shape& b = query.operand(1);
  GW_RETURN_IF_ERROR(CheckMatrices(a, "a"));
  if (a.dtype() != b.dtype()) return Wrong("element types differ");
  if (a.rank() != b.rank()) return Wrong("ranks differ");
  for (int64_t i = 0; i + 2 < a.rank(); ++i) {
    if (a.dim(i) != b.dim(i)) return Wrong("batch dimension ", i, " differs");
  }
  const int64_t solved = b.dim(b.rank() - (attr->left_side ? 2 : 1));
  if (solved != a.dim(a.rank() - 1)) return Wrong("a and b do not fit: ", a.dim(a.rank() - 1), " and ", solved);
  return b;
}

DType ComplexOf(DType dtype) { return dtype == DType::kF64 ? DType::kC128 : DType::kC64; }
DType RealOf(DType dtype) { return dtype == DType::kC128 ? DType::kF64 : DType::kF32; }

absl::StatusOr<Shape> Fft(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const FftAttr* attr, AttrOf<FftAttr>(query));
  Shape shape = query.operand(0);
  const int64_t count = static_cast<int64_t>(attr->lengths.size());
  if (count < 1 || count > 3 || count > shape.rank()) return Wrong("fft_length names ", count, " dimensions");
  const bool real_in = attr->type == FftType::kRfft, real_out = attr->type == FftType::kIrfft;
  const bool typed = real_in ? shape.dtype() == DType::kF32 || shape.dtype() == DType::kF64 : IsComplex(shape.dtype());
  if (!typed) return Wrong("not defined for ", DTypeName(shape.dtype()));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t dim = shape.rank() - count + i, length = attr->lengths[i];
    if (length < 0) return Wrong("fft_length ", length, " is negative");
    const bool last = i == count - 1;
    const int64_t expected = real_out && last ? length / 2 + 1 : length;
    if (shape.dim(dim) != expected && !(length == 0 && shape.dim(dim) == 0)) {
      return Wrong("dimension ", dim, " has ", shape.dim(dim), " elements, fft_length asks for ", expected);
    }
    if (last && real_in) shape.set_dim(dim, length == 0 ? 0 : length / 2 + 1);
    if (last && real_out) shape.set_dim(dim, length);
  }
  if (real_in) shape.set_dtype(ComplexOf(shape.dtype()));
  if (real_out) shape.set_dtype(RealOf(shape.dtype()));
  return shape;
}

// Operand 0 with a feature dimension; the vectors named by the later operands are of that length.
absl::StatusOr<Shape> FeatureVector(const InferQuery& query, int64_t vectors) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const BatchNormAttr* attr, AttrOf<BatchNormAttr>(query));
  const Shape& operand = query.operand(0);
  if (!IsFloat(operand.dtype())) return Wrong("not defined for ", DTypeName(operand.dtype()));
  GW_RETURN_IF_ERROR(CheckDims({attr->feature}, operand.rank(), "feature_index"));
  const Shape vector(operand.dtype(), {operand.dim(attr->feature)});
  for (int64_t i = 1; i <= vectors; ++i) {
    if (!SameDims(query.operand(i), vector)) return Wrong("operand ", i, " must be ", vector.ToString());
  }
  return WithDType(vector, query.operand(1).dtype());
}

absl::StatusOr<Shape> BatchNormTraining(const InferQuery& query) {
  GW_ASSIGN_OR_RETURN(Shape vector, FeatureVector(query, 2));
  return Shape::Tuple({query.operand(0), vector, vector});
}

absl::StatusOr<Shape> BatchNormInference(const InferQuery& query) {
  GW_RETURN_IF_ERROR(FeatureVector(query, 4).status());
  return query.operand(0);
}

absl::StatusOr<Shape> BatchNormGrad(const InferQuery& query) {
  GW_ASSIGN_OR_RETURN(Shape vector, FeatureVector(query, 3));
  if (!Shape::Compatible(query.operand(4), query.operand(0))) return Wrong("grad_output is not typed like the operand");
  return Shape::Tuple({query.operand(0), vector, vector});
}

absl::StatusOr<Shape> Rng(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckWantedArray(query));
  GW_RETURN_IF_ERROR(AttrOf<RngAttr>(query).status());
  if (query.operand_count() != 2) return Wrong("takes 2 operands, not ", query.operand_count());
  for (const Shape* operand : query.operands) {
    if (!Shape::Compatible(*operand, Shape::Scalar(query.wanted.dtype()))) {
      return Wrong("operands must be ", Shape::Scalar(query.wanted.dtype()).ToString());
    }
  }
  return query.wanted;
}

absl::StatusOr<Shape> RngBitGenerator(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(AttrOf<RngBitGeneratorAttr>(query).status());
  if (query.wanted.IsArray()) return query.wanted;
  if (!query.wanted.IsTuple() || query.wanted.tuple().size() != 2) return Wrong("gives (state, bits)");
  if (!Shape::Compatible(query.wanted.tuple()[0], query.operand(0))) return Wrong("states in and out differ");
  return query.wanted;
}

absl::StatusOr<Shape> RngState(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckWantedArray(query));
  GW_RETURN_IF_ERROR(AttrOf<RngStateAttr>(query).status());
  return query.wanted;
}

constexpr InferRow kRows[] = {
    {Opcode::kBatchNormGrad, BatchNormGrad},
    {Opcode::kBatchNormInference, BatchNormInference},
    {Opcode::kBatchNormTraining, BatchNormTraining},
    {Opcode::kCholesky, Cholesky},
    {Opcode::kFft, Fft},
    {Opcode::kRng, Rng},
    {Opcode::kRngBitGenerator, RngBitGenerator},
    {Opcode::kRngGetAndUpdateState, RngState},
    {Opcode::kTriangularSolve, TriangularSolve},
};

}  // namespace

absl::Span<const InferRow> LinalgInferRows() { return kRows; }

}  // namespace gangway::hlo
