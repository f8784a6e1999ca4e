// Each routine against what defines its result; wrong calls are refused.
#include <cmath>

#include "gangway/lapack/call.h"
#include "gangway/lapack/routine.h"
#include "gangway/lapack/unblocked.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::lapack {
namespace {

using testing::HasSubstr;

// An array that owns its memory. Matrices are column-major.
template <typename T>
struct Owned {
  Owned(DType dtype, std::vector<int64_t> dims, std::vector<T> values)
      : dtype(dtype), dims(std::move(dims)), values(std::move(values)) {}
  Owned(DType dtype, std::vector<int64_t> dims) : dtype(dtype), dims(std::move(dims)) {
    size_t size = 1;
    for (int64_t dim : this->dims) size *= static_cast<size_t>(dim);
    values.resize(size);
  }
  Array array() { return {dtype, dims, values.data()}; }

  DType dtype;
  std::vector<int64_t> dims;
  std::vector<T> values;
};
using F64 = Owned<double>;
using S32 = Owned<int32_t>;

F64 Doubles(std::vector<int64_t> dims) { return F64(DType::kF64, std::move(dims)); }
S32 Info(std::vector<int64_t> dims = {}) { return S32(DType::kS32, std::move(dims)); }

absl::Status CallRoutine(absl::string_view target, std::vector<Array> operands, std::vector<Array> results,
                         Attributes attributes = {}) {
  const Routine* routine = FindRoutine(target);
  if (routine == nullptr) return absl::NotFoundError(target);
  return routine->run({std::move(operands), std::move(results), std::move(attributes)});
}

TEST(LapackTest, EveryTypeOfEveryRoutine) {
  for (const char* name :
       {"potrf", "getrf", "geqrf", "geqp3", "geev", "gees", "gehrd", "gesdd", "gesvd", "trsm", "gtsv"}) {
    for (const char* type : {"s", "d", "c", "z"}) {
      EXPECT_NE(FindRoutine(absl::StrCat("lapack_", type, name, "_ffi")), nullptr) << type << name;
    }
  }
  for (const char* name : {"sorgqr", "dormqr", "cungqr", "zunmqr", "ssyevd", "zheevd", "dsytrd", "chetrd"}) {
    EXPECT_NE(FindRoutine(absl::StrCat("lapack_", name, "_ffi")), nullptr) << name;
  }
  EXPECT_EQ(FindRoutine("lapack_sgesdd"), nullptr);
}

// What depends on an element that is no number is none either.
TEST(LapackTest, FactorsOfWhatIsNoNumber) {
  const double nan = std::nan("");
  const std::vector<double> one_bad = {4, nan, 1, nan, 3, 1, 1, 1, 5};
  F64 a(DType::kF64, {3, 3}, one_bad), factor = Doubles({3, 3}), tau = Doubles({3}), q = Doubles({3, 3});
  S32 info = Info(), pivots(DType::kS32, {3});
  ASSERT_TRUE(CallRoutine("lapack_dpotrf_ffi", {a.array()}, {factor.array(), info.array()}, {{"uplo", 'L'}}).ok());
  EXPECT_EQ(factor.values[0], 2);
  EXPECT_EQ(factor.values[2], 0.5);
  EXPECT_THAT(factor.values[4], testing::IsNan());
  EXPECT_THAT(factor.values[8], testing::IsNan());
  ASSERT_TRUE(CallRoutine("lapack_dgetrf_ffi", {a.array()}, {factor.array(), pivots.array(), info.array()}).ok());
  EXPECT_EQ(factor.values[2], 0.25);
  for (int i : {1, 3, 4, 5, 7, 8}) EXPECT_THAT(factor.values[i], testing::IsNan()) << i;
  ASSERT_TRUE(CallRoutine("lapack_dgeqrf_ffi", {a.array()}, {factor.array(), tau.array()}).ok());
  ASSERT_TRUE(CallRoutine("lapack_dorgqr_ffi", {factor.array(), tau.array()}, {q.array()}).ok());
  for (int i : {0, 3, 4, 6, 7, 8}) EXPECT_THAT(factor.values[i], testing::IsNan()) << i;
  for (double x : q.values) EXPECT_THAT(x, testing::IsNan());
  S32 columns(DType::kS32, {3});
  ASSERT_TRUE(
      CallRoutine("lapack_dgeqp3_ffi", {a.array(), columns.array()}, {factor.array(), pivots.array(), tau.array()})
          .ok());
  for (int i : {0, 3, 4, 6, 7, 8}) EXPECT_THAT(factor.values[i], testing::IsNan()) << i;
  F64 diagonal = Doubles({3}), off = Doubles({2}), two = Doubles({2});
  ASSERT_TRUE(CallRoutine("lapack_dsytrd_ffi", {a.array()},
                          {factor.array(), diagonal.array(), off.array(), two.array(), info.array()}, {{"uplo", 'L'}})
                  .ok());
  EXPECT_EQ(diagonal.values[0], 4);
  for (double x : {diagonal.values[1], diagonal.values[2], off.values[0], off.values[1]}) {
    EXPECT_THAT(x, testing::IsNan());
  }
}

// Written out on a finite matrix, they are LAPACK's.
TEST(LapackTest, FactorsWrittenOut) {
  using C = std::complex<double>;
  const int n = 5;
  std::vector<C> values(n * n);
  for (int i = 0; i < n * n; ++i) values[i] = C(std::sin(3.0 * i * i), std::cos(5.0 * i));
  const auto near = [](const std::vector<C>& x, const std::vector<C>& y) {
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(std::abs(x[i] - y[i]), 0, 1e-12) << i;
  };
  for (int32_t first : {0, 4}) {
    std::vector<C> a = values, b = values, tau(n), tau_written(n);
    std::vector<int32_t> pivots(n, 0), written(n, 0);
    if (first > 0) pivots[first - 1] = written[first - 1] = 1;
    LAPACKE_zgeqp3(LAPACK_COL_MAJOR, n, n, a.data(), n, pivots.data(), tau.data());
    unblocked::PivotedQr(n, n, b.data(), written.data(), tau_written.data());
    EXPECT_EQ(pivots, written);
    near(a, b);
    near(tau, tau_written);
  }
  for (char uplo : {'L', 'U'}) {
    std::vector<C> a = values, b = values, tau(n - 1), tau_written(n - 1);
    std::vector<double> d(n), e(n - 1), d_written(n), e_written(n - 1);
    LAPACKE_zhetrd(LAPACK_COL_MAJOR, uplo, n, a.data(), n, d.data(), e.data(), tau.data());
    unblocked::Tridiagonal(uplo, n, b.data(), d_written.data(), e_written.data(), tau_written.data());
    near(a, b);
    near(tau, tau_written);
    near({d.begin(), d.end()}, {d_written.begin(), d_written.end()});
    near({e.begin(), e.end()}, {e_written.begin(), e_written.end()});
  }
}

TEST(LapackTest, SingularValuesOfWhatIsNotFiniteAreRefused) {
  for (double bad : {std::nan(""), HUGE_VAL}) {
    F64 a(DType::kF64, {2, 2}, {1, bad, 2, 3}), work = Doubles({2, 2}), s = Doubles({2}), u = Doubles({2, 2}),
                                                vt = Doubles({2, 2});
    for (const char* target : {"lapack_dgesdd_ffi", "lapack_dgesvd_ffi"}) {
      S32 info = Info();
      ASSERT_TRUE(CallRoutine(target, {a.array()}, {work.array(), s.array(), u.array(), vt.array(), info.array()},
                              {{"mode", 'A'}})
                      .ok());
      EXPECT_LT(info.values[0], 0) << target << bad;
    }
  }
}

TEST(LapackTest, CholeskyOfABatchTellsOfEachMatrix) {
  F64 a(DType::kF64, {2, 2, 2}, {4, 2, 2, 5, -1, 0, 0, 1}), factor = Doubles({2, 2, 2});
  S32 info = Info({2});
  ASSERT_TRUE(CallRoutine("lapack_dpotrf_ffi", {a.array()}, {factor.array(), info.array()}, {{"uplo", 'L'}}).ok());
  EXPECT_EQ(factor.values[0], 2);
  EXPECT_EQ(factor.values[1], 1);
  EXPECT_EQ(factor.values[3], 2);
  EXPECT_EQ(info.values, (std::vector<int32_t>{0, 1}));
}

TEST(LapackTest, SingularValues) {
  F64 a(DType::kF64, {2, 2}, {3, 0, 0, -4}), work = Doubles({2, 2}), s = Doubles({2}), u = Doubles({2, 2}),
                                             vt = Doubles({2, 2});
  for (const char* target : {"lapack_dgesdd_ffi", "lapack_dgesvd_ffi"}) {
    for (char mode : {'A', 'S', 'N'}) {
      S32 info = Info();
      ASSERT_TRUE(CallRoutine(target, {a.array()}, {work.array(), s.array(), u.array(), vt.array(), info.array()},
                              {{"mode", mode}})
                      .ok());
      EXPECT_EQ(s.values, (std::vector<double>{4, 3})) << target << mode;
      EXPECT_EQ(info.values[0], 0);
    }
  }
}

TEST(LapackTest, ConjugatePairsOfARealMatrix) {
  // A rotation: eigenvalues i and -i.
  F64 a(DType::kF64, {2, 2}, {0, 1, -1, 0}), real = Doubles({2}), imaginary = Doubles({2});
  Owned<std::complex<double>> left(DType::kC128, {2, 2}), right(DType::kC128, {2, 2});
  S32 info = Info();
  ASSERT_TRUE(CallRoutine("lapack_dgeev_ffi", {a.array()},
                          {real.array(), imaginary.array(), left.array(), right.array(), info.array()},
                          {{"compute_left", 'N'}, {"compute_right", 'V'}})
                  .ok());
  EXPECT_EQ(std::abs(imaginary.values[0]), 1);
  EXPECT_EQ(imaginary.values[0], -imaginary.values[1]);
  EXPECT_EQ(right.values[0], std::conj(right.values[2]));
  EXPECT_EQ(right.values[1], std::conj(right.values[3]));
}

TEST(LapackTest, EigenvaluesOfWhatIsNotFiniteAreRefused) {
  F64 a(DType::kF64, {1, 1}, {NAN}), real = Doubles({1}), imaginary = Doubles({1});
  Owned<std::complex<double>> vectors(DType::kC128, {1, 1});
  S32 info = Info();
  ASSERT_TRUE(CallRoutine("lapack_dgeev_ffi", {a.array()},
                          {real.array(), imaginary.array(), vectors.array(), vectors.array(), info.array()},
                          {{"compute_left", 'N'}, {"compute_right", 'N'}})
                  .ok());
  EXPECT_LT(info.values[0], 0);
}

TEST(LapackTest, SingularTridiagonalSystemIsPerturbed) {
  F64 lower(DType::kF64, {2}, {0, 1}), diagonal(DType::kF64, {2}, {1, 1}), upper(DType::kF64, {2}, {1, 0}),
      b(DType::kF64, {2, 1}, {1, 2}), x = Doubles({2, 1});
  ASSERT_TRUE(CallRoutine("tridiagonal_solve_perturbed_ffi",
                          {lower.array(), diagonal.array(), upper.array(), b.array()}, {x.array()})
                  .ok());
  EXPECT_TRUE(std::isfinite(x.values[0]) && std::isfinite(x.values[1]));
  diagonal.values = {2, 3};
  ASSERT_TRUE(CallRoutine("tridiagonal_solve_perturbed_ffi",
                          {lower.array(), diagonal.array(), upper.array(), b.array()}, {x.array()})
                  .ok());
  EXPECT_NEAR(2 * x.values[0] + x.values[1], 1, 1e-12);
  EXPECT_NEAR(x.values[0] + 3 * x.values[1], 2, 1e-12);
}

TEST(LapackTest, SparseProductChecksItsIndices) {
  F64 values(DType::kF64, {2}, {2, 3}), right(DType::kF64, {2}, {10, 20}), out = Doubles({2});
  S32 starts(DType::kS32, {3}, {0, 1, 2}), columns(DType::kS32, {2}, {1, 0});
  auto run = [&] {
    return CallRoutine("cpu_csr_sparse_dense_ffi", {values.array(), starts.array(), columns.array(), right.array()},
                       {out.array()});
  };
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(out.values, (std::vector<double>{40, 30}));
  columns.values[0] = 2;
  EXPECT_THAT(std::string(run().message()), HasSubstr("no column 2"));
  columns.values[0] = 0;
  starts.values[2] = 3;
  EXPECT_THAT(std::string(run().message()), HasSubstr("outside its elements"));
}

TEST(LapackTest, WrongCallsAreRefused) {
  F64 a = Doubles({2, 3}), out = Doubles({2, 2});
  S32 info = Info();
  for (const Routine& routine : Routines()) {
    EXPECT_TRUE(absl::IsInvalidArgument(routine.run({}))) << routine.target;
    EXPECT_TRUE(absl::IsInvalidArgument(routine.run({{info.array()}, {info.array()}, {}}))) << routine.target;
  }
  EXPECT_THAT(
      std::string(
          CallRoutine("lapack_dpotrf_ffi", {a.array()}, {out.array(), info.array()}, {{"uplo", 'L'}}).message()),
      HasSubstr("operand 0 is f64[2,3]"));
  F64 square = Doubles({2, 2});
  EXPECT_THAT(
      std::string(
          CallRoutine("lapack_dpotrf_ffi", {square.array()}, {out.array(), info.array()}, {{"uplo", 'X'}}).message()),
      HasSubstr("attribute uplo"));
}

}  // namespace
}  // namespace gangway::lapack
