// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/patches.h"

#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/gather.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/trace.h"

namespace weft {
namespace {

/// How many windows fit, and the padded length, along one dimension.
int64_t windows(const char* op, int64_t length, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t free = length + 2 * padding - dilation * (kernel - 1) - 1;
  WEFT_CHECK(kernel >= 1 && stride >= 1 && dilation >= 1 && padding >= 0 && free >= 0, op,
             ": expected a kernel that fits ", length, " elements with padding ", padding, ", got kernel ", kernel,
             ", stride ", stride, ", dilation ", dilation);
  return free / stride + 1;
}

/// The positions [P, Q, R, S] of the windows' elements in padded images, row by row.
Tensor positions(const char* op, Size2d size, const PatchOptions& o, Device device) {
  const int64_t P = windows(op, size.h, o.kernel.h, o.stride.h, o.padding.h, o.dilation.h);
  const int64_t Q = windows(op, size.w, o.kernel.w, o.stride.w, o.padding.w, o.dilation.w);
  const auto steps = [&](int64_t n, int64_t step, const Shape& sizes) {
    return Tensor::arange(n, DType::i64, device, 0, step).reshape(sizes);
  };
  const int64_t width = size.w + 2 * o.padding.w;
  return steps(P, o.stride.h * width, {P, 1, 1, 1}) + steps(Q, o.stride.w, {Q, 1, 1}) +
         steps(o.kernel.h, o.dilation.h * width, {o.kernel.h, 1}) + steps(o.kernel.w, o.dilation.w, {o.kernel.w});
}

}  // namespace

Tensor pixel_shuffle(const Tensor& x, Integer r) {
  const OpScope scope("pixel_shuffle");
  WEFT_CHECK(x.defined() && x.dim() == 4 && r >= 1 && x.size(3) % (r * r) == 0,
             "pixel_shuffle: expected an input [N, H, W, C] with channels that ", r, "^2 divides, got ", x);
  const auto [N, H, W, C] = x.dims<4>();
  const int64_t out = C / (r * r);
  return x.reshape({N, H, W, out, r, r}).permute({0, 1, 4, 2, 5, 3}).reshape({N, H * r, W * r, out});
}

Tensor pixel_unshuffle(const Tensor& x, Integer r) {
  const OpScope scope("pixel_unshuffle");
  WEFT_CHECK(x.defined() && x.dim() == 4 && r >= 1 && x.size(1) % r == 0 && x.size(2) % r == 0,
             "pixel_unshuffle: expected an input [N, H, W, C] with height and width that ", r, " divides, got ", x);
  const auto [N, H, W, C] = x.dims<4>();
  return x.reshape({N, H / r, r, W / r, r, C}).permute({0, 1, 3, 5, 2, 4}).reshape({N, H / r, W / r, C * r * r});
}

Tensor unfold(const Tensor& x, const PatchOptions& options) {
  const OpScope scope("unfold");
  WEFT_CHECK(x.defined() && x.dim() == 4, "unfold: expected an input [N, H, W, C], got ", x);
  const auto [N, H, W, C] = x.dims<4>();
  const Tensor at = positions("unfold", {H, W}, options, x.device());
  const Size2d p = options.padding;
  const Tensor padded = pad(pad(x, 1, p.h, p.h), 2, p.w, p.w);
  const Tensor y = index_select(padded.reshape({N, (H + 2 * p.h) * (W + 2 * p.w), C}), 1, at.flatten());
  return y.reshape({N, at.size(0) * at.size(1), at.size(2) * at.size(3) * C});
}

Tensor fold(const Tensor& x, Size2d size, const PatchOptions& options) {
  const OpScope scope("fold");
  WEFT_CHECK(x.defined() && x.dim() == 3 && x.is_floating(), "fold: expected floating windows [N, P Q, R S C], got ",
             x);
  const Tensor at = positions("fold", size, options, x.device());
  const int64_t N = x.size(0), taps = at.size(2) * at.size(3), C = x.size(2) / taps;
  WEFT_CHECK(x.size(1) == at.size(0) * at.size(1) && C * taps == x.size(2), "fold: expected windows [N, ",
             at.size(0) * at.size(1), ", ", taps, " C], got ", x);
  const Size2d p = options.padding;
  const int64_t height = size.h + 2 * p.h, width = size.w + 2 * p.w, count = at.numel();
  const Tensor sums = scatter_add(Tensor::zeros({N, height * width, C}, x.dtype(), x.device()), 1,
                                  at.reshape({1, count, 1}).expand({N, count, C}), x.reshape({N, count, C}));
  return sums.reshape({N, height, width, C}).slice(1, p.h, size.h).slice(2, p.w, size.w);
}

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options) {
  const OpScope scope("grid_sample");
  WEFT_CHECK(x.defined() && x.dim() == 4 && x.is_floating() && x.size(1) > 0 && x.size(2) > 0,
             "grid_sample: expected a floating input [N, H, W, C], got ", x);
  WEFT_CHECK(grid.defined() && grid.dim() == 4 && grid.size(0) == x.size(0) && grid.size(3) == 2 &&
                 grid.dtype() == x.dtype() && grid.device() == x.device(),
             "grid_sample: expected a grid ", x.dtype(), "[", x.size(0), ", P, Q, 2] on ", x.device(), ", got ", grid);
  const auto [N, H, W, C] = x.dims<4>();
  const int64_t P = grid.size(1), Q = grid.size(2);
  // 16 bits do not hold a place between two pixels of a large image.
  const DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const auto place = [&](int64_t axis, int64_t n) {
    const auto size = static_cast<double>(n);
    const Tensor at = grid.select(3, axis).to(wide);
    const Tensor pixel =
        options.align_corners ? affine(at, (size - 1) / 2, (size - 1) / 2) : affine(at, size / 2, (size - 1) / 2);
    return options.beyond == Beyond::border ? clamp(pixel, 0, n - 1) : pixel;
  };
  const Tensor px = place(0, W), py = place(1, H);
  const Tensor images = x.reshape({N * H * W, C});
  const Tensor first = Tensor::arange(N, DType::i64, x.device(), 0, H * W).reshape({N, 1, 1});
  // The pixels at whole places (row, column), times a weight [N, P, Q]; zero outside.
  const auto pixels = [&](const Tensor& row, const Tensor& column, const Tensor& weight) {
    const Tensor inside = (row >= 0) & (row <= H - 1) & (column >= 0) & (column <= W - 1);
    // NaN is outside, too, and no number for an index.
    const Tensor r = where(inside, row, 0).to(DType::i64), c = where(inside, column, 0).to(DType::i64);
    const Tensor chosen = index_select(images, 0, (first + r * W + c).flatten()).reshape({N, P, Q, C});
    return where(inside, weight, 0).unsqueeze(3) * where(inside.unsqueeze(3), chosen.to(wide), 0);
  };
  if (options.nearest)
    return pixels(round(py.detach()), round(px.detach()), Tensor::ones(px.sizes(), wide, x.device())).to(x.dtype());
  const Tensor row = floor(py.detach()), column = floor(px.detach()), dy = py - row, dx = px - column;
  return (pixels(row, column, (1 - dy) * (1 - dx)) + pixels(row, column + 1, (1 - dy) * dx) +
          pixels(row + 1, column, dy * (1 - dx)) + pixels(row + 1, column + 1, dy * dx))
      .to(x.dtype());
}

}  // namespace weft
