// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/dnnl_matmul.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "kernels/contracts/copy.h"
#include "kernels/cpu/dnnl_lane.h"
#include "kernels/cpu/panel_product.h"
#include "kernels/cpu/processor.h"

// oneDNN plans a product for given sizes and strides (a millisecond: it compiles a kernel), then runs the plan any
// number of times: plans are kept. Operands stay in the caller's layout and are packed on each call, so that nothing
// can go stale when weights change.

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
  dnnl::primitive primitive;
  memory::desc y, a, b, bias, scratchpad;
  bool copies_a = false;  ///< a is brought to row-major order first
  memory::desc packed_b;  ///< the kernel's own layout of b; empty where b is read as it lies
  dnnl::reorder pack;
};

void append_scale(dnnl::post_ops& then, float factor) {
#if DNNL_VERSION_MAJOR < 3
  then.append_eltwise(1.0f, dnnl::algorithm::eltwise_linear, factor, 0);
#else
  then.append_eltwise(dnnl::algorithm::eltwise_linear, factor, 0);
#endif
}

dnnl::primitive_attr attributes_of(const Problem& problem) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops then;
  if (problem.arguments.alpha != 1) append_scale(then, static_cast<float>(problem.arguments.alpha));
  if (problem.arguments.grad == Grad::accumulate) then.append_sum(1.0f);
  attributes.set_post_ops(then);
  return attributes;
}

/// Whether a kernel may be trusted with the sizes. oneDNN 2.6's AMX products go wrong at ragged edges: wrong numbers
/// for a transposed b with N = 49 to 63 and M <= 32, an illegal instruction for odd K. Whole tiles are right. 3.7 reads
/// a single row of a as if no gaps were between its elements.
bool is_sound(std::string_view kernel, const Problem& problem) {
  constexpr int64_t kTileDepth = 32, kTileColumns = 16;
  if (DNNL_VERSION_MAJOR > 2) return problem.a.sizes[1] != 1 || problem.a.strides[2] == 1;
  return kernel.find("amx") == kernel.npos ||
         (problem.a.sizes[2] % kTileDepth == 0 && problem.y.sizes[2] % kTileColumns == 0);
}

/// oneDNN's matmul: any strides, any batch.
Plan make_matmul(const Problem& problem) {
  Plan plan;
  plan.y = description(problem.y);
  plan.a = description(problem.a);
  plan.b = description(problem.b);
  if (problem.bias) plan.bias = row_description(problem.bias);
  const auto chosen = choose<dnnl::matmul>(attributes_of(problem), plan.a, plan.b, plan.bias, plan.y);
  const std::string_view kernel = chosen.impl_info_str();
  // For bf16 anything but its plain loops beats a conversion to f32; in f32 only its AVX-512 kernels beat gemm.h.
  const bool is_faster = problem.a.dtype == DType::f32 ? kernel.starts_with("brg") : !kernel.starts_with("ref");
  plan.possible = is_faster && is_sound(kernel, problem);
  plan.scratchpad = chosen.scratchpad_desc();
  plan.primitive = dnnl::matmul(chosen);
  return plan;
}

/// oneDNN's inner product with b packed before each call: on AMX 1.3 to 4 times as fast as its matmul, if enough rows
/// share the packing: matmul's kernel packs piece by piece. Without AMX its matmul is as fast, and copies
/// nothing.
Plan make_inner_product(const Problem& problem) {
  Plan plan;
  const View &y = problem.y, &a = problem.a, &b = problem.b;
  const int64_t M = a.sizes[1], K = a.sizes[2], N = b.sizes[2];
  constexpr int64_t kLeastRows = 128, kLeastColumns = 64;
  if (a.dtype != DType::bf16 || y.sizes[0] != 1 || M < kLeastRows || K < kLeastColumns || N < kLeastColumns ||
      y.strides[1] != N || y.strides[2] != 1)
    return plan;
  plan.copies_a = a.strides[1] != K || a.strides[2] != 1;
  plan.y = {{M, N}, dnnl_type(y.dtype), memory::format_tag::ab};
  plan.a = {{M, K}, dnnl_type(a.dtype), memory::format_tag::ab};
  plan.b = {{N, K}, dnnl_type(b.dtype), memory::dims{b.strides[2], b.strides[1]}};
  if (problem.bias) plan.bias = {{N}, dnnl_type(problem.bias.dtype), memory::format_tag::a};
  const memory::desc any_b({N, K}, dnnl_type(b.dtype), memory::format_tag::any);
  const auto chosen = choose<dnnl::inner_product_forward>(attributes_of(problem), dnnl::prop_kind::forward_inference,
                                                          plan.a, any_b, plan.bias, plan.y);
  const std::string_view kernel = chosen.impl_info_str();
  plan.possible = kernel.find("amx") != kernel.npos && is_sound(kernel, problem);
  plan.scratchpad = chosen.scratchpad_desc();
  plan.primitive = dnnl::inner_product_forward(chosen);
  plan.packed_b = chosen.weights_desc();
  plan.pack = dnnl::reorder(dnnl::reorder::primitive_desc(dnnl_engine(), plan.b, dnnl_engine(), plan.packed_b));
  return plan;
}

Plan make(const Problem& problem) {
  for (const auto& method : {make_inner_product, make_matmul}) {
    try {
      if (Plan plan = method(problem); plan.possible) return plan;
    } catch (const dnnl::error&) {  // no kernel for these layouts on this CPU
    }
  }
  return {};
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

/// Where oneDNN's f32 kernel is the faster one on a processor with AVX-512: by 3 to 12% with a transposed factor or a
/// size below some hundred. The smallest products are done before its plan is found.
bool suits_f32(const View& a, const View& b) {
  const int64_t M = a.sizes[1], K = a.sizes[2], N = b.sizes[2];
  const bool transposed = a.strides[2] != 1 || b.strides[2] != 1;
  return has_avx512() && std::min(M, N) > 1 && M * K * N >= int64_t{1} << 24 &&
         (transposed || std::min({M, K, N}) < 512);
}

}  // namespace

bool dnnl_matmul(const View& y, const View& a, const View& b, const View& bias, const MatmulArguments& arguments) {
  const auto known = [](DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; };
  if (!known(a.dtype) || !known(y.dtype) || (bias && (!known(bias.dtype) || bias.strides[0] != 1))) return false;
  if (a.dtype == DType::f32 && !suits_f32(a, b)) return false;
  if (a.sizes[2] == 0) return false;
  if (bias && arguments.alpha != 1) return false;  // it would scale the bias too
  const Plan* plan = plan_for({with_plain_strides(y), with_plain_strides(a), with_plain_strides(b), bias, arguments});
  if (!plan) return false;
  Lane& mine = lane();
  memory left(plan->a, dnnl_engine(), a.data), right(plan->b, dnnl_engine(), b.data);
  if (plan->copies_a) {
    left.set_data_handle(mine.source.at_least(plan->a.get_size()));
    const View rows = View::dense(left.get_data_handle(), a.dtype, {1, a.sizes[1], a.sizes[2]});
    View from = a;
    from.sizes[0] = 1;
    cpu::copy({}, rows, from);
  }
  if (plan->pack) {
    memory packed(plan->packed_b, dnnl_engine(), mine.weights.at_least(plan->packed_b.get_size()));
    plan->pack.execute(mine.stream, right, packed);
    right = packed;
  }
  std::unordered_map<int, memory> operands{
      {DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, memory(plan->y, dnnl_engine(), y.data)}};
  if (bias) operands.emplace(DNNL_ARG_BIAS, memory(plan->bias, dnnl_engine(), bias.data));
  operands.emplace(DNNL_ARG_SCRATCHPAD,
                   memory(plan->scratchpad, dnnl_engine(), mine.scratchpad.at_least(plan->scratchpad.get_size())));
  plan->primitive.execute(mine.stream, operands);
  mine.stream.wait();
  return true;
}

bool dnnl_has_bf16() {
  dnnl_engine();  // sets the limit
  const auto least = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & least) == least;
}

}  // namespace weft::kernels::cpu
