// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/roofline/vit.h"

#include <cmath>

#include "core/autocast.h"
#include "core/ops/add.h"
#include "core/ops/concat.h"
#include "core/ops/gelu.h"
#include "core/ops/matmul.h"
#include "core/ops/mul.h"
#include "core/ops/softmax.h"

namespace weft::benchmarks {
namespace {

/// qkv [N, T, 3 width] to [N, T, width].
Tensor attention(const Tensor& qkv, int64_t heads) {
  const int64_t N = qkv.size(0), T = qkv.size(1), D = qkv.size(2) / 3 / heads;
  const Tensor parts = qkv.reshape({N, T, 3, heads, D}).permute({2, 0, 3, 1, 4});  // [3, N, heads, T, D]
  const Tensor q = parts.select(0, 0), k = parts.select(0, 1), v = parts.select(0, 2);
  const Tensor weights = softmax(mul(matmul(q, k.transpose(2, 3)), 1 / std::sqrt(static_cast<double>(D))));
  return matmul(weights, v).transpose(1, 2).reshape({N, T, heads * D});
}

Tensor parameter(const Shape& sizes) { return Tensor::zeros(sizes).requires_grad_(); }

}  // namespace

VitBlock::VitBlock(const VitSize& size)
    : heads(size.heads),
      norm1(size.width, 1e-6),
      norm2(size.width, 1e-6),
      qkv(size.width, 3 * size.width),
      projection(size.width, size.width),
      fc1(size.width, 4 * size.width),
      fc2(4 * size.width, size.width) {}

Tensor VitBlock::forward(const Tensor& x) const {
  const Tensor y = add(x, projection(attention(qkv(norm1(x)), heads)));
  return add(y, fc2(gelu(fc1(norm2(y)))));
}

void VitBlock::fields(nn::Visitor& v) {
  v("norm1", norm1);
  v("qkv", qkv);
  v("projection", projection);
  v("norm2", norm2);
  v("fc1", fc1);
  v("fc2", fc2);
}

Vit::Vit(const VitSize& size)
    : patches(3, size.width, {size.patch, size.patch}, {.stride = {size.patch, size.patch}}),
      class_token(parameter({1, 1, size.width})),
      positions(parameter({1, size.patches() + 1, size.width})),
      norm(size.width, 1e-6),
      head(size.width, size.classes) {
  for (int64_t i = 0; i < size.depth; ++i) blocks.push_back(std::make_shared<VitBlock>(size));
}

Tensor Vit::forward(const Tensor& x) const {
  const Tensor patch = patches(x);
  const int64_t N = patch.size(0), width = patch.size(3);
  const DType low = patch.dtype();
  Tensor y = concat({class_token.to(low).expand({N, 1, width}), patch.reshape({N, -1, width})}, 1);
  y = add(y, positions.to(low).expand(y.sizes()));
  for (const auto& block : blocks) y = (*block)(y);
  return head(norm(y.select(1, 0)));
}

void Vit::fields(nn::Visitor& v) {
  v("patches", patches);
  v("class_token", class_token);
  v("positions", positions);
  v("blocks", blocks);
  v("norm", norm);
  v("head", head);
}

}  // namespace weft::benchmarks
