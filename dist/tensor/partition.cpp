// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/partition.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/concat.h"
#include "io/weights/weights_file.h"
#include "nn/init.h"

namespace weft::dist {
namespace {

/// x with dimension `dim` as [stretches, size / stretches].
Tensor stretched(const Tensor& x, int dim, int64_t stretches) {
  WEFT_CHECK(stretches > 0 && x.size(dim) % stretches == 0, "partition: dimension ", dim, " of ", x,
             " does not divide into ", stretches, stretches == 1 ? " stretch" : " stretches");
  std::vector<int64_t> sizes;
  for (int d = 0; d < x.dim(); ++d) {
    if (d == dim) sizes.push_back(stretches);
    sizes.push_back(d == dim ? x.size(d) / stretches : x.size(d));
  }
  return x.reshape(Shape(sizes));
}

}  // namespace

Partition::Share Partition::share(int64_t size, int rank, int ranks) {
  WEFT_CHECK(size >= ranks, "partition: ", size, " rows are too few for ", ranks, " model ranks");
  const int64_t least = size / ranks, more = size % ranks;
  return {rank * least + std::min<int64_t>(rank, more), least + (rank < more ? 1 : 0)};
}

Tensor Partition::part(const Tensor& whole, int rank, int ranks) const {
  const NoGrad no_grad;
  if (is_whole()) return whole.detach().clone();
  if (size > 0) {
    const auto [first, count] = share(size, rank, ranks);
    const Tensor part = Tensor::zeros(part_sizes(whole.sizes(), ranks), whole.dtype(), whole.device());
    part.slice(dim, 0, count).copy_(whole.detach().slice(dim, first, count));
    return part;
  }
  WEFT_CHECK(stretches > 0 && whole.size(dim) % (stretches * ranks) == 0, "partition: dimension ", dim, " of ", whole,
             " does not divide into ", stretches, " x ", ranks, " parts");
  const int64_t length = whole.size(dim) / (stretches * ranks);
  const Tensor mine = stretched(whole.detach(), dim, stretches).slice(dim + 1, rank * length, length);
  return mine.flatten(dim, dim + 1).clone();
}

Shape Partition::part_sizes(const Shape& whole, int ranks) const {
  Shape sizes = whole;
  if (!is_whole()) sizes[dim] = size > 0 ? share(size, 0, ranks).count : sizes[dim] / ranks;
  return sizes;
}

Shape Partition::whole_sizes(const Shape& part, int ranks) const {
  Shape sizes = part;
  if (!is_whole()) sizes[dim] = size > 0 ? size : sizes[dim] * ranks;
  return sizes;
}

StridedPart Partition::strided(const Shape& part, int rank, int ranks) const {
  if (is_whole() || ranks == 1) return {};
  int64_t inner = 1;  // elements of an index of the dimension
  for (int d = dim + 1; d < part.rank(); ++d) inner *= part[d];
  if (size > 0) {
    const auto [first, count] = share(size, rank, ranks);
    return {first * inner, count * inner, size * inner};
  }
  const int64_t run = part[dim] / stretches * inner;
  return {rank * run, run, ranks * run};
}

Tensor Partition::whole(const std::vector<Tensor>& parts) const {
  const NoGrad no_grad;
  if (is_whole()) return parts.front();
  std::vector<Tensor> all;
  const int ranks = static_cast<int>(parts.size());
  for (int rank = 0; rank < ranks && size > 0; ++rank)
    all.push_back(parts[static_cast<size_t>(rank)].slice(dim, 0, share(size, rank, ranks).count));
  if (size > 0) return concat(all, dim);
  for (const Tensor& part : parts) all.push_back(stretched(part, dim, stretches));
  return concat(all, dim + 1).flatten(dim, dim + 1);
}

namespace {

/// This block of a rank's part of a weight, of which `read` reads blocks.
Tensor read_part(const nn::DeferredInit::ReadBlock& read, const Partition& partition, const Shape& sizes,
                 const WeightBlock& block, int rank, int ranks) {
  if (partition.is_whole()) return read(block);
  const int64_t columns = block.columns < 0 && partition.dim == 1 ? sizes[1] : block.columns;
  if (partition.dim == 1) return read({block.row, block.rows, rank * sizes[1] + block.column, columns});
  const auto [first, count] = partition.size > 0 ? Partition::share(partition.size, rank, ranks)
                                                 : Partition::Share{rank * sizes[0] / partition.stretches, sizes[0]};
  const int64_t each = partition.size > 0 ? count : sizes[0] / partition.stretches;  // rows of a stretch
  std::vector<Tensor> rows;
  for (int64_t at = block.row, end = block.row + block.rows; at < std::min(end, count);) {
    const int64_t stretch = at / each, own = std::min(end, (stretch + 1) * each) - at;
    rows.push_back(read({stretch * each * ranks + first + at % each, own, block.column, columns}));
    at += own;
  }
  const int64_t missing = block.row + block.rows - std::max(count, block.row);  // zeros after a share
  if (missing > 0) {
    Shape zeros = sizes;
    zeros[0] = missing;
    if (columns >= 0 && zeros.rank() > 1) zeros[1] = columns;
    rows.push_back(Tensor::zeros(zeros, rows.empty() ? DType::f32 : rows[0].dtype()));
  }
  return concat(rows, 0);
}

}  // namespace

Tensor parameter_part(const Tensor& whole, const Partition& partition, const ProcessGroup& group) {
  if (!whole.defined()) return {};
  const int rank = group.rank(), ranks = group.size();
  nn::DeferredInit* const later = nn::DeferredInit::current();
  if (later == nullptr || !later->has(whole)) return partition.part(whole, rank, ranks).requires_grad_();
  const Tensor part = Tensor::empty(partition.part_sizes(whole.sizes(), ranks), whole.dtype());
  nn::DeferredInit::ReadBlock read;
  const bool by_rows = partition.is_whole() || partition.dim == 0;
  if (const auto of_whole = later->reader(whole);
      of_whole && (by_rows || (whole.dim() == 2 && partition.stretches == 1 && partition.size == 0)))
    read = [=, sizes = part.sizes()](const WeightBlock& block) {
      return read_part(of_whole, partition, sizes, block, rank, ranks);
    };
  const auto write = [=] {
    later->write(whole);
    part.copy_(partition.part(whole, rank, ranks));
  };
  later->note(part, write, read);
  return part.requires_grad_();
}

}  // namespace weft::dist
