// cholesky, triangular-solve.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gangway/eval/op_table.h"
#include "gangway/eval/wide.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;

double Conjugate(double x) { return x; }
Complex Conjugate(Complex x) { return std::conj(x); }
double RealPart(double x) { return x; }
double RealPart(Complex x) { return x.real(); }

// A square matrix inside a batch.
template <typename W>
struct Matrix {
  W* data;
  int64_t rows, columns;
  W& operator()(int64_t i, int64_t j) const { return data[i * columns + j]; }
};

// a = l l^H with l lower triangular, read from the lower half of `a`. A matrix that is not positive definite gives NaN.
template <typename W>
void FactorLower(const Matrix<W>& a, const Matrix<W>& l) {
  for (int64_t j = 0; j < a.rows; ++j) {
    double diagonal = RealPart(a(j, j));
    for (int64_t k = 0; k < j; ++k) diagonal -= std::norm(l(j, k));
    if (!(diagonal > 0)) {
      for (int64_t i = 0; i < a.rows * a.columns; ++i) l.data[i] = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    l(j, j) = std::sqrt(diagonal);
    for (int64_t i = j + 1; i < a.rows; ++i) {
      W sum = a(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= l(i, k) * Conjugate(l(j, k));
      l(i, j) = sum / l(j, j);
    }
  }
}

template <typename W>
void ConjugateTranspose(const Matrix<W>& a) {
  for (int64_t i = 0; i < a.rows; ++i) {
    a(i, i) = Conjugate(a(i, i));
    for (int64_t j = 0; j < i; ++j) {
      W upper = a(j, i);
      a(j, i) = Conjugate(a(i, j));
      a(i, j) = Conjugate(upper);
    }
  }
}

// The half that is not asked for is zero.
template <typename W>
Value CholeskyOf(const Call& call) {
  bool lower = call.attr<hlo::CholeskyAttr>().lower;
  std::vector<W> a = Widen<W>(call.array(0)), l(a.size(), W(0));
  int64_t n = call.shape().dims().back();
  for (size_t from = 0; from < a.size(); from += n * n) {
    Matrix<W> source{a.data() + from, n, n}, factor{l.data() + from, n, n};
    if (!lower) ConjugateTranspose(source);
    FactorLower(source, factor);
    if (!lower) ConjugateTranspose(factor);
  }
  return Value(NarrowTo<W>(call.shape(), l));
}

absl::StatusOr<Value> Cholesky(const Call& call) {
  if (IsComplex(call.shape().dtype())) return CholeskyOf<Complex>(call);
  if (IsFloat(call.shape().dtype())) return CholeskyOf<double>(call);
  return absl::UnimplementedError("cholesky is defined on floats only");
}

// Element (i, j) of op(a).
template <typename W>
W Entry(const Matrix<W>& a, hlo::Transposition op, int64_t i, int64_t j) {
  switch (op) {
    case hlo::Transposition::kTranspose:
      return a(j, i);
    case hlo::Transposition::kAdjoint:
      return Conjugate(a(j, i));
    default:
      return a(i, j);
  }
}

// Solves t x = b in place for one right-hand side, t(i, j) triangular; `forward` when t is lower triangular.
template <typename W, typename T, typename B>
void Substitute(int64_t n, bool forward, bool unit, const T& t, const B& b) {
  for (int64_t step = 0; step < n; ++step) {
    int64_t i = forward ? step : n - 1 - step;
    W sum = b(i);
    for (int64_t k = forward ? 0 : i + 1; k < (forward ? i : n); ++k) sum -= t(i, k) * b(k);
    b(i) = unit ? sum : sum / t(i, i);
  }
}

template <typename W>
Value TriangularSolveOf(const Call& call) {
  const auto& attr = call.attr<hlo::TriangularSolveAttr>();
  std::vector<W> a = Widen<W>(call.array(0)), b = Widen<W>(call.array(1));
  const DimVector& dims = call.shape().dims();
  int64_t rows = dims[dims.size() - 2], columns = dims.back(), n = call.array(0).shape().dims().back();
  if (b.empty()) return Value(NarrowTo<W>(call.shape(), b));
  bool transposed =
      attr.transpose_a == hlo::Transposition::kTranspose || attr.transpose_a == hlo::Transposition::kAdjoint;
  bool op_is_lower = attr.lower != transposed;
  for (size_t batch = 0; batch < b.size() / (rows * columns); ++batch) {
    Matrix<W> m{a.data() + batch * n * n, n, n}, x{b.data() + batch * rows * columns, rows, columns};
    if (attr.left_side) {
      auto t = [&](int64_t i, int64_t j) { return Entry(m, attr.transpose_a, i, j); };
      for (int64_t c = 0; c < columns; ++c) {
        Substitute<W>(n, op_is_lower, attr.unit_diagonal, t, [&](int64_t i) -> W& { return x(i, c); });
      }
    } else {  // x op(a) = b: every row of x solves with op(a) transposed
      auto t = [&](int64_t i, int64_t j) { return Entry(m, attr.transpose_a, j, i); };
      for (int64_t r = 0; r < rows; ++r) {
        Substitute<W>(n, !op_is_lower, attr.unit_diagonal, t, [&](int64_t i) -> W& { return x(r, i); });
      }
    }
  }
  return Value(NarrowTo<W>(call.shape(), b));
}

absl::StatusOr<Value> TriangularSolve(const Call& call) {
  if (IsComplex(call.shape().dtype())) return TriangularSolveOf<Complex>(call);
  if (IsFloat(call.shape().dtype())) return TriangularSolveOf<double>(call);
  return absl::UnimplementedError("triangular-solve is defined on floats only");
}

}  // namespace

void AddLinalg(OpTable* table) {
  table->Set(Opcode::kCholesky, Cholesky);
  table->Set(Opcode::kTriangularSolve, TriangularSolve);
}

}  // namespace gangway::eval
