// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/pool2d.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/gather.h"
#include "core/ops/layers/image.h"
#include "core/ops/reduce.h"
#include "core/trace.h"
#include "kernels/contracts/pool2d.h"

namespace weft {
namespace {

/// The two window pools share this: the kernel's arguments and the sizes of the result.
struct Pooling {
  kernels::Pool2dArguments arguments;
  Shape sizes;
};

Pooling pooling(const char* op, const Tensor& x, const Pool2dOptions& options) {
  WEFT_CHECK(x.defined() && x.is_floating() && x.dim() == 4, op, ": expected a floating input [N, H, W, C], got ", x);
  check_image_layout(op, x);
  const Size2d kernel = options.kernel, padding = options.padding;
  const Size2d stride{options.stride.h == 0 ? kernel.h : options.stride.h,
                      options.stride.w == 0 ? kernel.w : options.stride.w};
  WEFT_CHECK(kernel.h >= 1 && kernel.w >= 1 && stride.h >= 1 && stride.w >= 1, op,
             ": expected kernel and stride of at least 1, got kernel ", kernel.h, "x", kernel.w, ", stride ", stride.h,
             "x", stride.w);
  WEFT_CHECK(padding.h >= 0 && padding.w >= 0 && 2 * padding.h <= kernel.h && 2 * padding.w <= kernel.w, op,
             ": expected padding of at most half of the kernel ", kernel.h, "x", kernel.w, ", got ", padding.h, "x",
             padding.w);
  const int64_t H = x.size(1) + 2 * padding.h - kernel.h, W = x.size(2) + 2 * padding.w - kernel.w;
  WEFT_CHECK(H >= 0 && W >= 0, op, ": the kernel ", kernel.h, "x", kernel.w, " is larger than the padded input ", x);
  const auto windows = [&](int64_t rest, int64_t step, int64_t end) {
    const int64_t whole = rest / step + 1;
    return options.ceil_mode && rest % step != 0 && whole * step < end ? whole + 1 : whole;
  };
  return {
      {kernel, stride, padding, options.count_include_pad},
      {x.size(0), windows(H, stride.h, x.size(1) + padding.h), windows(W, stride.w, x.size(2) + padding.w), x.size(3)}};
}

Tensor max_pool_backward(const Tensor& dy, const Tensor& index, const Shape& sizes,
                         const kernels::Pool2dArguments& arguments) {
  const Tensor dx = Tensor::empty(sizes, dy.dtype(), dy.device());
  kernels::max_pool2d_backward(dx.queue(), dx, dy.contiguous(), index, arguments);
  return differentiable(dx, "max_pool2d", {dy}, [index = Saved(index), y_sizes = dy.sizes()](const Tensor& ddx) {
    const int64_t N = ddx.size(0), C = ddx.size(3), pixels = ddx.size(1) * ddx.size(2);
    const Tensor at = index.get().reshape({N, y_sizes[1] * y_sizes[2], C});
    return Grads{gather(ddx.reshape({N, pixels, C}), 1, at).reshape(y_sizes)};
  });
}

// Averaging is linear: each direction is the other one's gradient.
Tensor avg_pool_backward(const Tensor& dy, const Shape& sizes, const kernels::Pool2dArguments& arguments);

Tensor avg_pool(const Tensor& x, const Shape& sizes, const kernels::Pool2dArguments& arguments) {
  const Tensor y = Tensor::empty(sizes, x.dtype(), x.device());
  kernels::avg_pool2d_forward(y.queue(), y, x, arguments);
  return differentiable(y, "avg_pool2d", {x}, [x_sizes = x.sizes(), arguments](const Tensor& dy) {
    return Grads{avg_pool_backward(dy, x_sizes, arguments)};
  });
}

Tensor avg_pool_backward(const Tensor& dy, const Shape& sizes, const kernels::Pool2dArguments& arguments) {
  const Tensor dx = Tensor::empty(sizes, dy.dtype(), dy.device());
  kernels::avg_pool2d_backward(dx.queue(), dx, dy.contiguous(), arguments);
  return differentiable(dx, "avg_pool2d", {dy}, [y_sizes = dy.sizes(), arguments](const Tensor& ddx) {
    return Grads{avg_pool(ddx.contiguous(), y_sizes, arguments)};
  });
}

Tensor adaptive_backward(const Tensor& dy, const Shape& sizes) {
  const Tensor dx = Tensor::empty(sizes, dy.dtype(), dy.device());
  kernels::adaptive_avg_pool2d_backward(dx.queue(), dx, dy.contiguous());
  return differentiable(dx, "adaptive_avg_pool2d", {dy}, [size = Size2d{dy.size(1), dy.size(2)}](const Tensor& ddx) {
    return Grads{adaptive_avg_pool2d(ddx, size)};
  });
}

}  // namespace

Tensor max_pool2d(const Tensor& input, const Pool2dOptions& options) {
  const OpScope scope("max_pool2d");
  const Pooling pool = pooling("max_pool2d", input, options);
  const Tensor x = input.contiguous(), y = Tensor::empty(pool.sizes, x.dtype(), x.device());
  const Tensor index = Tensor::empty(pool.sizes, DType::i32, x.device());
  kernels::max_pool2d_forward(y.queue(), y, index, x, pool.arguments);
  if (!wants_gradient(x)) return y;
  return differentiable(y, "max_pool2d", {x},
                        [index = Saved(index), sizes = x.sizes(), arguments = pool.arguments](const Tensor& dy) {
                          return Grads{max_pool_backward(dy, index, sizes, arguments)};
                        });
}

Tensor avg_pool2d(const Tensor& input, const Pool2dOptions& options) {
  const OpScope scope("avg_pool2d");
  const Pooling pool = pooling("avg_pool2d", input, options);
  return avg_pool(input.contiguous(), pool.sizes, pool.arguments);
}

Tensor adaptive_avg_pool2d(const Tensor& input, Size2d size) {
  const OpScope scope("adaptive_avg_pool2d");
  WEFT_CHECK(input.defined() && input.is_floating() && input.dim() == 4,
             "adaptive_avg_pool2d: expected a floating input [N, H, W, C], got ", input);
  WEFT_CHECK(input.size(1) > 0 && input.size(2) > 0, "adaptive_avg_pool2d: expected at least one row and column, got ",
             input);
  check_image_layout("adaptive_avg_pool2d", input);
  WEFT_CHECK(size.h >= 1 && size.w >= 1, "adaptive_avg_pool2d: expected an output of at least 1x1, got ", size.h, "x",
             size.w);
  const Tensor x = input.contiguous(), y = Tensor::empty({x.size(0), size.h, size.w, x.size(3)}, x.dtype(), x.device());
  kernels::adaptive_avg_pool2d_forward(y.queue(), y, x);
  return differentiable(y, "adaptive_avg_pool2d", {x},
                        [sizes = x.sizes()](const Tensor& dy) { return Grads{adaptive_backward(dy, sizes)}; });
}

namespace {

void check_rank(const char* op, const Tensor& x, int rank, const char* sizes) {
  WEFT_CHECK(x.defined() && x.dim() == rank && x.is_floating(), op, ": expected a floating input ", sizes, ", got ", x);
}

/// The passes in two dimensions know neither the caller's op nor its sizes.
void check_window(const char* op, const Tensor& x, int dim, int64_t kernel, int64_t stride, int64_t padding) {
  WEFT_CHECK(kernel >= 1 && stride >= 0, op, ": expected a kernel of at least 1 and no negative stride, got kernel ",
             kernel, ", stride ", stride);
  WEFT_CHECK(padding >= 0 && padding <= kernel / 2, op, ": expected padding of at most half of the kernel ", kernel,
             ", got ", padding);
  WEFT_CHECK(x.size(dim) >= kernel - 2 * padding, op, ": the kernel ", kernel, " is larger than the padded dimension ",
             dim, " of ", x);
}

Tensor pool1d(const char* op, Tensor (*pool)(const Tensor&, const Pool2dOptions&), const Tensor& x,
              const Pool1dOptions& o) {
  const OpScope scope(op);
  check_rank(op, x, 3, "[N, L, C]");
  check_window(op, x, 1, o.kernel, o.stride, o.padding);
  return pool(x.unsqueeze(2), {.kernel = {o.kernel, 1},
                               .stride = {o.stride == 0 ? o.kernel : o.stride, 1},
                               .padding = {o.padding, 0},
                               .count_include_pad = o.count_include_pad,
                               .ceil_mode = o.ceil_mode})
      .squeeze(2);
}

/// A maximum or a mean of a box is that of its slices' ones, and so is the divisor a product.
Tensor pool3d(const char* op, Tensor (*pool)(const Tensor&, const Pool2dOptions&), const Tensor& x,
              const Pool3dOptions& o) {
  const OpScope scope(op);
  check_rank(op, x, 5, "[N, D, H, W, C]");
  check_window(op, x, 1, o.kernel.d, o.stride.d, o.padding.d);
  check_window(op, x, 2, o.kernel.h, o.stride.h, o.padding.h);
  check_window(op, x, 3, o.kernel.w, o.stride.w, o.padding.w);
  const auto [N, D, H, W, C] = x.dims<5>();
  const auto or_kernel = [](int64_t stride, int64_t kernel) { return stride == 0 ? kernel : stride; };
  const Tensor flat = pool(x.reshape({N * D, H, W, C}),
                           {.kernel = {o.kernel.h, o.kernel.w},
                            .stride = {or_kernel(o.stride.h, o.kernel.h), or_kernel(o.stride.w, o.kernel.w)},
                            .padding = {o.padding.h, o.padding.w},
                            .count_include_pad = o.count_include_pad,
                            .ceil_mode = o.ceil_mode});
  const int64_t P = flat.size(1), Q = flat.size(2);
  const Tensor deep = pool(flat.reshape({N, D, P * Q, C}), {.kernel = {o.kernel.d, 1},
                                                            .stride = {or_kernel(o.stride.d, o.kernel.d), 1},
                                                            .padding = {o.padding.d, 0},
                                                            .count_include_pad = o.count_include_pad,
                                                            .ceil_mode = o.ceil_mode});
  return deep.reshape({N, deep.size(1), P, Q, C});
}

}  // namespace

Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options) {
  return pool1d("max_pool1d", max_pool2d, x, options);
}
Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options) {
  return pool1d("avg_pool1d", avg_pool2d, x, options);
}
Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options) {
  return pool3d("max_pool3d", max_pool2d, x, options);
}
Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options) {
  return pool3d("avg_pool3d", avg_pool2d, x, options);
}

Tensor adaptive_avg_pool1d(const Tensor& x, Integer size) {
  const OpScope scope("adaptive_avg_pool1d");
  check_rank("adaptive_avg_pool1d", x, 3, "[N, L, C]");
  return adaptive_avg_pool2d(x.unsqueeze(2), {size, 1}).squeeze(2);
}

Tensor adaptive_avg_pool3d(const Tensor& x, Size3d size) {
  const OpScope scope("adaptive_avg_pool3d");
  check_rank("adaptive_avg_pool3d", x, 5, "[N, D, H, W, C]");
  const auto [N, D, H, W, C] = x.dims<5>();
  const Tensor flat = adaptive_avg_pool2d(x.reshape({N * D, H, W, C}), {size.h, size.w});
  const int64_t across = size.h * size.w;
  return adaptive_avg_pool2d(flat.reshape({N, D, across, C}), {size.d, across}).reshape({N, size.d, size.h, size.w, C});
}

namespace {

/// The maxima of `size` windows along one dimension. Windows of several lengths repeat their last element.
Tensor adaptive_max(const char* op, const Tensor& x, int dim, int64_t size) {
  const int64_t length = x.size(dim);
  WEFT_CHECK(length > 0, op, ": expected an input with elements, got ", x);
  WEFT_CHECK(size >= 1, op, ": expected an output of at least 1, got ", size);
  if (size == length) return x;
  std::vector<int64_t> places;
  const int64_t most = (length + size - 1) / size + (length % size == 0 ? 0 : 1);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t begin = i * length / size, end = ((i + 1) * length + size - 1) / size;
    for (int64_t j = 0; j < most; ++j) places.push_back(std::min(begin + j, end - 1));
  }
  Shape windows;
  for (int d = 0; d < x.dim(); ++d) {
    windows.push_back(d == dim ? size : x.size(d));
    if (d == dim) windows.push_back(most);
  }
  const Tensor all = index_select(x, dim, Tensor::from(places).to(x.device())).reshape(windows);
  return gather(all, dim + 1, argmax(all, dim + 1, true)).squeeze(dim + 1);
}

}  // namespace

// The last dimension first, so that the first of several maxima is the first in memory.

Tensor adaptive_max_pool1d(const Tensor& x, Integer size) {
  const OpScope scope("adaptive_max_pool1d");
  check_rank("adaptive_max_pool1d", x, 3, "[N, L, C]");
  return adaptive_max("adaptive_max_pool1d", x, 1, size);
}

Tensor adaptive_max_pool2d(const Tensor& x, Size2d size) {
  const OpScope scope("adaptive_max_pool2d");
  check_rank("adaptive_max_pool2d", x, 4, "[N, H, W, C]");
  check_image_layout("adaptive_max_pool2d", x);
  return adaptive_max("adaptive_max_pool2d", adaptive_max("adaptive_max_pool2d", x, 2, size.w), 1, size.h);
}

Tensor adaptive_max_pool3d(const Tensor& x, Size3d size) {
  const OpScope scope("adaptive_max_pool3d");
  check_rank("adaptive_max_pool3d", x, 5, "[N, D, H, W, C]");
  const Tensor rows = adaptive_max("adaptive_max_pool3d", x, 3, size.w);
  return adaptive_max("adaptive_max_pool3d", adaptive_max("adaptive_max_pool3d", rows, 2, size.h), 1, size.d);
}

}  // namespace weft
