// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/partition.h"

#include "core/autograd.h"
#include "core/ops/concat.h"

namespace weft::dist {
namespace {

/// x with dimension `dim` as [stretches, size / stretches].
Tensor stretched(const Tensor& x, int dim, int64_t stretches) {
  std::vector<int64_t> sizes;
  for (int d = 0; d < x.dim(); ++d) {
    if (d == dim) sizes.push_back(stretches);
    sizes.push_back(d == dim ? x.size(d) / stretches : x.size(d));
  }
  return x.reshape(Shape(sizes));
}

}  // namespace

Tensor Partition::part(const Tensor& whole, int rank, int ranks) const {
  const NoGrad no_grad;
  if (is_whole()) return whole.detach().clone();
  WEFT_CHECK(whole.size(dim) % (stretches * ranks) == 0, "partition: dimension ", dim, " of ", whole,
             " does not divide into ", stretches, " x ", ranks, " parts");
  const int64_t length = whole.size(dim) / (stretches * ranks);
  const Tensor mine = stretched(whole.detach(), dim, stretches).slice(dim + 1, rank * length, length);
  return mine.flatten(dim, dim + 1).clone();
}

Tensor Partition::whole(const std::vector<Tensor>& parts) const {
  const NoGrad no_grad;
  if (is_whole()) return parts.front();
  std::vector<Tensor> all;
  for (const Tensor& part : parts) all.push_back(stretched(part, dim, stretches));
  return concat(all, dim + 1).flatten(dim, dim + 1);
}

}  // namespace weft::dist
