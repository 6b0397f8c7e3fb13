// SPDX-License-Identifier: Apache-2.0
#include "core/ops/image_layout.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace weft {
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
