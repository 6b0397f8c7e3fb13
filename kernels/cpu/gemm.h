// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "kernels/view.h"

namespace weft::kernels::cpu {

/// One factor: element [i, j] of matrix b is data[b * batch + i * row + j * column]; `row` or `column` is 1, where the
/// matrix has more than one column or row. Any floating dtype.
struct GemmFactor {
  const void* data;
  DType dtype;
  int64_t batch, row, column;

  GemmFactor transposed() const { return {data, dtype, batch, column, row}; }
};

/// alpha a[b] @ b[b] for `batches` pairs: a [m, k], b [k, n].
struct Gemm {
  int64_t batches, m, n, k;
  GemmFactor a, b;
  double alpha = 1;
};

/// Whether few rows are multiplied by a matrix whose columns are runs, as the weight of a linear layer is. The matrix is
/// then read once and not copied. A result row has the same bits as if it were computed alone.
bool is_few_rows(const Gemm& g);

/// Takes `count` sums that are complete: columns from `column` on of a row; rows are counted over all batches. Called
/// from several threads, once for each element.
template <class C>
using GemmFinish = std::function<void(const C* sums, int64_t row, int64_t column, int64_t count)>;

/// Computes the products in C (float, double), in an order of sums that depends on k alone. Passes the sums on while
/// they are in a near cache.
template <class C>
void gemm(const Gemm& g, const GemmFinish<C>& finish);

/// c[b] = the product, added to c[b] where `add`; c's rows are dense, `row` elements apart.
template <class C>
void gemm(const Gemm& g, C* c, int64_t batch, int64_t row, bool add);

/// A matrix [batches, rows, columns], or without batches, as a factor.
GemmFactor factor(const View& matrix);

}  // namespace weft::kernels::cpu
