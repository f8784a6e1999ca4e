// Factorizations written out, for matrices with an element that is infinite or no number.
//
// OpenBLAS takes a factor that is no number for zero where it scales a vector, and so gives such a matrix factors that
// are finite and wrong. These let NaN reach everything that depends on it. Arguments and results are LAPACK's;
// matrices are column-major and dense. A column at a time: slow for large ones, of which nobody wants many.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <utility>
#include <vector>

#include "gangway/lapack/call.h"

namespace gangway::lapack::unblocked {

template <typename T>
bool AllFinite(const T* values, int64_t count) {
  return std::all_of(values, values + count,
                     [](const T& x) { return std::isfinite(std::real(x)) && std::isfinite(std::imag(x)); });
}

template <typename T>
T Conjugate(const T& x) {
  if constexpr (kIsComplex<T>) return std::conj(x);
  return x;
}

// The factor in the half that `uplo` names. Returns 0, or the order of the first leading part that is not positive
// definite.
template <typename T>
int32_t Cholesky(char uplo, int n, T* a) {
  const auto at = [&](int i, int j) -> T& { return uplo == 'L' ? a[i + int64_t{n} * j] : a[j + int64_t{n} * i]; };
  for (int j = 0; j < n; ++j) {
    RealOf<T> square = std::real(at(j, j));
    for (int k = 0; k < j; ++k) square -= std::norm(at(j, k));
    if (square <= 0) return j + 1;
    at(j, j) = std::sqrt(square);
    for (int i = j + 1; i < n; ++i) {
      for (int k = 0; k < j; ++k) at(i, j) -= at(i, k) * Conjugate(at(j, k));
      at(i, j) /= std::sqrt(square);
    }
  }
  return 0;
}

// Returns 0, or the number of the first pivot that is zero.
template <typename T>
int32_t Lu(int m, int n, T* a, int32_t* pivots) {
  const auto at = [&](int i, int j) -> T& { return a[i + int64_t{m} * j]; };
  const auto size = [](const T& x) { return std::abs(std::real(x)) + std::abs(std::imag(x)); };
  int32_t info = 0;
  for (int j = 0; j < std::min(m, n); ++j) {
    int pivot = j;
    for (int i = j + 1; i < m; ++i) {
      if (size(at(i, j)) > size(at(pivot, j))) pivot = i;
    }
    pivots[j] = pivot + 1;
    if (at(pivot, j) == T(0)) {
      if (info == 0) info = j + 1;
      continue;
    }
    for (int k = 0; k < n; ++k) std::swap(at(j, k), at(pivot, k));
    for (int i = j + 1; i < m; ++i) {
      at(i, j) /= at(j, j);
      for (int k = j + 1; k < n; ++k) at(i, k) -= at(i, j) * at(j, k);
    }
  }
  return info;
}

// Turns x, of `size` elements, onto its first: x becomes the length with its sign, and the reflector's other elements.
// Returns the reflector's tau.
template <typename T>
T Reflect(int size, T* x) {
  double rest = 0;
  for (int i = 1; i < size; ++i) rest += std::norm(std::complex<double>(x[i]));
  if (size == 0 || (rest == 0 && std::imag(x[0]) == 0)) return T(0);
  const double length = std::sqrt(rest + std::norm(std::complex<double>(x[0])));
  const RealOf<T> beta = static_cast<RealOf<T>>(-std::copysign(length, std::real(x[0])));
  const T tau = (T(beta) - x[0]) / T(beta);
  for (int i = 1; i < size; ++i) x[i] /= x[0] - T(beta);
  x[0] = T(beta);
  return tau;
}

// c := (1 - tau v v^H) c for `columns` columns of `size` elements; v[0] counts as 1.
template <typename T>
void ApplyFromLeft(int size, const T* v, T tau, int columns, T* c, int64_t leading) {
  for (int j = 0; j < columns; ++j, c += leading) {
    T sum = c[0];
    for (int i = 1; i < size; ++i) sum += Conjugate(v[i]) * c[i];
    c[0] -= tau * sum;
    for (int i = 1; i < size; ++i) c[i] -= tau * v[i] * sum;
  }
}

// c := c (1 - tau v v^H) for `rows` rows of `size` elements.
template <typename T>
void ApplyFromRight(int size, const T* v, T tau, int rows, T* c, int64_t leading) {
  for (int i = 0; i < rows; ++i, ++c) {
    T sum = c[0];
    for (int j = 1; j < size; ++j) sum += c[j * leading] * v[j];
    c[0] -= tau * sum;
    for (int j = 1; j < size; ++j) c[j * leading] -= tau * sum * Conjugate(v[j]);
  }
}

template <typename T>
void Qr(int m, int n, T* a, T* tau) {
  for (int i = 0; i < std::min(m, n); ++i) {
    T* diagonal = a + i + int64_t{m} * i;
    tau[i] = Reflect(m - i, diagonal);
    ApplyFromLeft(m - i, diagonal, Conjugate(tau[i]), n - i - 1, diagonal + m, m);
  }
}

// The length of a column, of which the first element is `x`.
template <typename T>
double Length(int size, const T* x) {
  double square = 0;
  for (int i = 0; i < size; ++i) square += std::norm(std::complex<double>(x[i]));
  return std::sqrt(square);
}

// With the longest of the columns that are left in front; before them all that `pivots` has a number for. `pivots`
// becomes where each column was, from 1.
template <typename T>
void PivotedQr(int m, int n, T* a, int32_t* pivots, T* tau) {
  const auto column = [&](int j) { return a + int64_t{m} * j; };
  int fixed = 0;
  const auto swap = [&](int i, int j) {
    std::swap_ranges(column(i), column(i) + m, column(j));
    std::swap(pivots[i], pivots[j]);
  };
  for (int j = 0; j < n; ++j) {
    const bool first = pivots[j] != 0;
    pivots[j] = j + 1;
    if (first) swap(fixed++, j);
  }
  for (int i = 0; i < std::min(m, n); ++i) {
    int longest = i;
    for (int j = i + 1; j < n && i >= fixed; ++j) {
      if (Length(m - i, column(j) + i) > Length(m - i, column(longest) + i)) longest = j;
    }
    swap(i, longest);
    tau[i] = Reflect(m - i, column(i) + i);
    ApplyFromLeft(m - i, column(i) + i, Conjugate(tau[i]), n - i - 1, column(i) + i + m, m);
  }
}

// Reduces a symmetric or Hermitian matrix, of which the half is there that `uplo` names. The upper half is the lower
// one of the matrix read backwards.
template <typename T>
void Tridiagonal(char uplo, int n, T* a, RealOf<T>* diagonal, RealOf<T>* off_diagonal, T* tau) {
  const auto place = [&](int i, int size) { return uplo == 'L' ? i : size - 1 - i; };
  const auto at = [&](int i, int j) -> T& { return a[place(i, n) + int64_t{n} * place(j, n)]; };
  std::vector<T> v, w;
  for (int k = 0; k + 1 < n; ++k) {
    const int size = n - k - 1;
    v.resize(size);
    w.assign(size, T(0));
    for (int i = 0; i < size; ++i) v[i] = at(k + 1 + i, k);
    const T scale = Reflect(size, v.data());
    const RealOf<T> beta = std::real(v[0]);
    v[0] = T(1);
    for (int i = 0; i < size; ++i) {
      for (int j = 0; j < size; ++j) {
        const T x = i == j  ? T(std::real(at(k + 1 + i, k + 1 + i)))
                    : i > j ? at(k + 1 + i, k + 1 + j)
                            : Conjugate(at(k + 1 + j, k + 1 + i));
        w[i] += scale * x * v[j];
      }
    }
    T along(0);
    for (int i = 0; i < size; ++i) along += Conjugate(w[i]) * v[i];
    for (int i = 0; i < size; ++i) w[i] -= scale * along * v[i] / T(2);
    for (int j = 0; j < size; ++j) {
      for (int i = j; i < size; ++i) at(k + 1 + i, k + 1 + j) -= v[i] * Conjugate(w[j]) + w[i] * Conjugate(v[j]);
    }
    for (int i = 1; i < size; ++i) at(k + 1 + i, k) = v[i];
    at(k + 1, k) = T(beta);
    off_diagonal[place(k, n - 1)] = beta;
    tau[place(k, n - 1)] = scale;
  }
  for (int i = 0; i < n; ++i) {
    T& x = a[i + int64_t{n} * i];
    x = T(diagonal[i] = std::real(x));
  }
}

// The m x n orthogonal matrix of the first k columns' reflectors.
template <typename T>
void Orthogonal(int m, int n, int k, T* a, const T* tau) {
  for (int j = k; j < n; ++j) {
    for (int i = 0; i < m; ++i) a[i + int64_t{m} * j] = T(i == j ? 1 : 0);
  }
  for (int i = k - 1; i >= 0; --i) {
    T* diagonal = a + i + int64_t{m} * i;
    ApplyFromLeft(m - i, diagonal, tau[i], n - i - 1, diagonal + m, m);
    for (int r = 1; r < m - i; ++r) diagonal[r] *= -tau[i];
    diagonal[0] = T(1) - tau[i];
    std::fill(diagonal - i, diagonal, T(0));
  }
}

// Rows and columns `low` to `high`, from 1.
template <typename T>
void Hessenberg(int n, int low, int high, T* a, T* tau) {
  std::fill(tau, tau + std::max(0, n - 1), T(0));
  for (int i = low - 1; i < high - 1; ++i) {
    T* below = a + i + 1 + int64_t{n} * i;
    const int size = high - i - 1;
    tau[i] = Reflect(size, below);
    ApplyFromRight(size, below, tau[i], high, a + int64_t{n} * (i + 1), n);
    ApplyFromLeft(size, below, Conjugate(tau[i]), n - i - 1, below + n, n);
  }
}

}  // namespace gangway::lapack::unblocked
