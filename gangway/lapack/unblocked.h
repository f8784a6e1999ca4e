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
