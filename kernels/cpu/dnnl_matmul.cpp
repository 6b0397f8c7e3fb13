// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/dnnl_matmul.h"

#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "kernels/cpu/dnnl_lane.h"

// oneDNN plans a product for given sizes and strides (a millisecond: it compiles a kernel), then runs it any number of
// times: the plans are kept. Operands stay in the caller's layout; the kernel packs what it needs on each call, so that
// nothing can go stale when weights change.

namespace weft::kernels::cpu {
namespace {

using dnnl::memory;

/// Everything that a plan depends on.
using Key = std::array<int64_t, 24>;

struct Problem {
  View y, a, b, bias;
  MatmulArguments arguments;

  Key key() const {
    Key key{};
    size_t at = 0;
    for (const View* view : {&y, &a, &b}) {
      key[at++] = static_cast<int64_t>(view->dtype);
      for (int d = 0; d < 3; ++d) key[at++] = view->sizes[d];
      for (int d = 0; d < 3; ++d) key[at++] = view->strides[d];
    }
    key[at++] = bias ? 1 + static_cast<int64_t>(bias.dtype) : 0;
    key[at++] = std::bit_cast<int64_t>(arguments.alpha);
    key[at++] = static_cast<int64_t>(arguments.grad);
    return key;
  }
};

memory::desc description(const View& view) {
  const auto& n = view.sizes;
  const auto& s = view.strides;
  return {{n[0], n[1], n[2]}, dnnl_type(view.dtype), memory::dims{s[0], s[1], s[2]}};
}
memory::desc row_description(const View& bias) {
  return {{1, 1, bias.sizes[0]}, dnnl_type(bias.dtype), memory::format_tag::abc};
}

struct Plan {
  bool possible = false;
  dnnl::matmul primitive;
  memory::desc y, a, b, bias, scratchpad;
};

Plan make(const Problem& problem) {
  Plan plan;
  plan.y = description(problem.y);
  plan.a = description(problem.a);
  plan.b = description(problem.b);
  if (problem.bias) plan.bias = row_description(problem.bias);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (problem.arguments.alpha != 1) attributes.set_output_scales(0, {static_cast<float>(problem.arguments.alpha)});
  if (problem.arguments.grad == Grad::accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  try {
    const dnnl::matmul::desc operation = problem.bias ? dnnl::matmul::desc(plan.a, plan.b, plan.bias, plan.y)
                                                      : dnnl::matmul::desc(plan.a, plan.b, plan.y);
    const dnnl::matmul::primitive_desc description(operation, attributes, dnnl_engine());
    // Its plain loops are slower than converting to f32.
    if (std::string_view(description.impl_info_str()).starts_with("ref")) return plan;
    plan.scratchpad = description.scratchpad_desc();
    plan.primitive = dnnl::matmul(description);
    plan.possible = true;
  } catch (const dnnl::error&) {  // no kernel for these layouts on this CPU
  }
  return plan;
}

/// The plan for a problem, made at its first use; null where oneDNN has none.
const Plan* plan_for(const Problem& problem) {
  static std::mutex mutex;
  static std::map<Key, Plan> plans;  // nodes stay where they are, so that a plan may be used without the lock
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = plans.try_emplace(problem.key());
  if (is_new) found->second = make(problem);
  return found->second.possible ? &found->second : nullptr;
}

/// As oneDNN names it: a batch that repeats one matrix has size 1; strides of dimensions of size 1, which mean nothing
/// but are checked, are as if dense.
View with_plain_strides(View view) {
  if (view.strides[0] == 0) view.sizes[0] = 1;
  if (view.sizes[2] == 1) view.strides[2] = view.strides[1] == 1 ? view.sizes[1] : 1;
  if (view.sizes[1] == 1) view.strides[1] = view.strides[2] == 1 ? view.sizes[2] : 1;
  if (view.sizes[0] == 1) view.strides[0] = view.sizes[1] * view.sizes[2];
  return view;
}

}  // namespace

bool dnnl_matmul(const View& y, const View& a, const View& b, const View& bias, const MatmulArguments& arguments) {
  if (a.dtype != DType::bf16 || (y.dtype != DType::bf16 && y.dtype != DType::f32) || a.sizes[2] == 0) return false;
  if (bias && ((bias.dtype != DType::bf16 && bias.dtype != DType::f32) || bias.strides[0] != 1)) return false;
  if (bias && arguments.alpha != 1) return false;  // it would scale the bias too
  const Plan* plan = plan_for({with_plain_strides(y), with_plain_strides(a), with_plain_strides(b), bias, arguments});
  if (!plan) return false;
  std::unordered_map<int, memory> operands{{DNNL_ARG_SRC, memory(plan->a, dnnl_engine(), a.data)},
                                           {DNNL_ARG_WEIGHTS, memory(plan->b, dnnl_engine(), b.data)},
                                           {DNNL_ARG_DST, memory(plan->y, dnnl_engine(), y.data)}};
  if (bias) operands.emplace(DNNL_ARG_BIAS, memory(plan->bias, dnnl_engine(), bias.data));
  Lane& mine = lane();
  operands.emplace(DNNL_ARG_SCRATCHPAD,
                   memory(plan->scratchpad, dnnl_engine(), mine.scratchpad.at_least(plan->scratchpad.get_size())));
  plan->primitive.execute(mine.stream, operands);
  mine.stream.wait();
  return true;
}

}  // namespace weft::kernels::cpu
