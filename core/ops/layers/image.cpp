// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/image.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/contracts/image.h"
#include "kernels/runtime/wrong_index.h"

namespace weft {

Tensor image_normalize(const Tensor& x, const Tensor& place, const std::vector<float>& mean,
                       const std::vector<float>& std, int64_t h, int64_t w, DType dtype) {
  const OpScope scope("image_normalize");
  WEFT_CHECK(x.defined() && x.dtype() == DType::u8 && x.dim() == 4 && x.size(3) >= 1 && x.size(3) <= 4,
             "image_normalize: expected images u8[N, H, W, C], C from 1 to 4, got ", x);
  WEFT_CHECK(!place.defined() ||
                 (place.dtype() == DType::i32 && place.sizes() == Shape{x.size(0), 3} && place.device() == x.device()),
             "image_normalize: expected places i32[", x.size(0), ",3] on ", x.device(), ", got ", place);
  WEFT_CHECK(mean.size() == static_cast<size_t>(x.size(3)) && std.size() == mean.size(),
             "image_normalize: expected mean and std of ", x.size(3), " channels, got ", mean.size(), " and ",
             std.size());
  WEFT_CHECK(h >= 1 && w >= 1, "image_normalize: expected an output of at least 1x1, got ", h, "x", w);
  WEFT_CHECK(dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f64,
             "image_normalize: expected f32, bf16 or f64, got ", dtype);
  kernels::ImageNormalizeArguments arguments;
  for (size_t c = 0; c < mean.size(); ++c) {
    WEFT_CHECK(std[c] > 0, "image_normalize: expected a positive std, got ", std[c], " for channel ", c);
    arguments.mean[c] = mean[c];
    arguments.std[c] = std[c];
  }
  const NoGrad no_grad;
  const Tensor y = Tensor::empty({x.size(0), h, w, x.size(3)}, dtype, x.device());
  const Tensor where = place.defined() ? place.contiguous() : Tensor();
  kernels::image_normalize(y.queue(), y, x.contiguous(), where, arguments);
  return y;
}

Tensor image_mix(const Tensor& x, const ImageBox& box, double own) {
  const OpScope scope("image_mix");
  WEFT_CHECK(x.defined() && x.is_floating() && x.dim() == 4, "image_mix: expected floating images [N, H, W, C], got ",
             x);
  WEFT_CHECK(0 <= box.top && box.top <= box.bottom && box.bottom <= x.size(1) && 0 <= box.left &&
                 box.left <= box.right && box.right <= x.size(2),
             "image_mix: expected a box inside of ", x, ", got rows ", box.top, " to ", box.bottom, ", columns ",
             box.left, " to ", box.right);
  WEFT_CHECK(own >= 0 && own <= 1, "image_mix: expected a share of the image from 0 to 1, got ", own);
  const NoGrad no_grad;
  const Tensor y = Tensor::empty(x.sizes(), x.dtype(), x.device());
  kernels::image_mix(y.queue(), y, x.contiguous(), {box.top, box.bottom, box.left, box.right, own});
  return y;
}

Tensor mixed_targets(const Tensor& labels, int64_t classes, double own) {
  const OpScope scope("mixed_targets");
  WEFT_CHECK(labels.defined() && labels.dtype() == DType::i64 && labels.dim() == 1,
             "mixed_targets: expected labels i64[N], got ", labels);
  WEFT_CHECK(classes >= 1, "mixed_targets: expected at least one class, got ", classes);
  WEFT_CHECK(own >= 0 && own <= 1, "mixed_targets: expected a share of the image's own label from 0 to 1, got ", own);
  const Tensor whole = labels.contiguous();
  if (labels.device().kind == DeviceKind::cpu)
    for (int64_t n = 0; n < labels.size(0); ++n) {
      const int64_t label = whole.data<int64_t>()[n];
      if (label < 0 || label >= classes)
        throw Error(kernels::text_of({.text = kernels::WrongIndex::Text::label,
                                      .op = "mixed_targets",
                                      .value = label,
                                      .at = n,
                                      .limit = classes},
                                     {}));
    }
  const Tensor targets = Tensor::empty({labels.size(0), classes}, DType::f32, labels.device());
  kernels::mixed_targets(targets.queue(), targets, whole, own);
  return targets;
}

namespace {

bool asked_for() {
  const char* const text = std::getenv("WEFT_CHECK");
  return text && *text && std::string_view(text) != "0";
}

std::atomic<bool> checks_are_on{asked_for()};

constexpr const char* kHint = ". Images are [N, H, W, C] (docs/nhwc.md); without WEFT_CHECK=1 nothing is guessed";

}  // namespace

void check_image_layouts(bool on) { checks_are_on = on; }

void check_image_layout(const char* op, const Tensor& x) {
  if (!checks_are_on.load(std::memory_order_relaxed)) return;
  const auto [N, H, W, C] = x.dims<4>();
  if (H == W && W == C && C > 1) {
    static std::atomic<bool> is_noted{false};
    if (!is_noted.exchange(true))
      std::fprintf(stderr, "weft: %s: WEFT_CHECK=1 cannot tell whether %s is [N, H, W, C], as it is read%s\n", op,
                   x.description().c_str(), ", or [N, C, H, W]");
    return;
  }
  constexpr int64_t kLeast = 32;
  const bool few_rows = (H == 1 || H == 3) && W >= kLeast && C >= kLeast;
  WEFT_CHECK((W != C || H == W) && (H != C || H == W) && !few_rows, op, ": ", x, " looks like [N, C, H, W] with ", H,
             " channels", kHint);
}

void check_concat_layout(const Tensor& x, int dim) {
  if (!checks_are_on.load(std::memory_order_relaxed)) return;
  if (x.dim() != 4 || dim != 1 || x.size(1) != x.size(2) || x.size(2) == x.size(3)) return;
  fail("concat: dimension 1 of ", x, " looks like the rows of images, their channels are dimension 3", kHint);
}

}  // namespace weft
