// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/dnnl_conv2d.h"

#include <array>
#include <map>
#include <mutex>
#include <unordered_map>

#include "kernels/cpu/dnnl_lane.h"

// oneDNN plans a convolution for given shapes (milliseconds), then runs it any number of times: the plans are kept.
// Activations keep Weft's NHWC memory where oneDNN has a good kernel for it; weights are reordered to the layout that
// the plan asks for on each call, which costs little beside the convolution.

namespace weft::kernels::cpu {
namespace {

using dnnl::memory;

enum class Direction : int64_t { forward, backward_input, backward_weight };

/// Everything that a plan depends on.
using Key = std::array<int64_t, 20>;

struct Problem {
  Direction direction;
  View x, w, y;  // shapes, and the dtype of each
  DType bias = DType::f32;
  bool has_bias = false;
  Conv2dArguments arguments;

  Key key() const {
    const Conv2dArguments& a = arguments;
    return {static_cast<int64_t>(direction),
            static_cast<int64_t>(x.dtype),
            static_cast<int64_t>(w.dtype),
            static_cast<int64_t>(bias),
            has_bias,
            x.sizes[0],
            x.sizes[1],
            x.sizes[2],
            x.sizes[3],
            w.sizes[0],
            w.sizes[1],
            w.sizes[2],
            a.stride.h,
            a.stride.w,
            a.padding.h,
            a.padding.w,
            a.dilation.h,
            a.dilation.w,
            a.groups,
            0};
  }
};

/// One operand of a plan: the caller's memory, the plan's layout, and the way between them where they differ.
struct Operand {
  memory::desc plain, planned;
  dnnl::reorder way;  // empty where the layouts agree

  bool same() const { return plain == planned; }
  void plan_input() {
    if (!same()) way = dnnl::reorder(dnnl::reorder::primitive_desc(dnnl_engine(), plain, dnnl_engine(), planned));
  }
  void plan_output() {
    if (!same()) way = dnnl::reorder(dnnl::reorder::primitive_desc(dnnl_engine(), planned, dnnl_engine(), plain));
  }
  /// The operand in the plan's layout.
  memory read(const View& view, Scratch& workspace) const {
    memory given(plain, dnnl_engine(), view.data);
    if (same()) return given;
    memory packed(planned, dnnl_engine(), workspace.at_least(planned.get_size()));
    way.execute(lane().stream, given, packed);
    return packed;
  }
  /// Where the plan writes the operand; `deliver` brings it to the caller.
  memory write(const View& view, Scratch& workspace) const {
    return memory(planned, dnnl_engine(), same() ? view.data : workspace.at_least(planned.get_size()));
  }
  void deliver(const View& view, memory& written) const {
    if (same()) return;
    memory target(plain, dnnl_engine(), view.data);
    way.execute(lane().stream, written, target);
  }
};

struct Plan {
  bool possible = false;
  dnnl::primitive primitive;
  memory::desc scratchpad;
  Operand x, w, y;

  void run(std::unordered_map<int, memory>& arguments) const {
    arguments.emplace(DNNL_ARG_SCRATCHPAD,
                      memory(scratchpad, dnnl_engine(), lane().scratchpad.at_least(scratchpad.get_size())));
    primitive.execute(lane().stream, arguments);
  }
};

memory::desc activations(const View& view, memory::format_tag layout = memory::format_tag::nhwc) {
  const auto& n = view.sizes;
  return {{n[0], n[3], n[1], n[2]}, dnnl_type(view.dtype), layout};
}

/// The dimensions of OHWI memory as oneDNN orders them: [G,] O, I, H, W.
memory::dims filter_sizes(const View& w, int64_t groups) {
  const int64_t O = w.sizes[0], R = w.sizes[1], S = w.sizes[2], I = w.sizes[3];
  return groups == 1 ? memory::dims{O, I, R, S} : memory::dims{groups, O / groups, I, R, S};
}

memory::desc ohwi(const View& w, int64_t groups) {
  const int64_t R = w.sizes[1], S = w.sizes[2], I = w.sizes[3], filter = R * S * I;
  auto strides = memory::dims{filter, 1, S * I, I};
  if (groups != 1) strides.insert(strides.begin(), w.sizes[0] / groups * filter);
  return {filter_sizes(w, groups), dnnl_type(w.dtype), strides};
}

/// own_layout: activations in oneDNN's blocked layout, reordered from and to NHWC.
void make(const Problem& problem, bool own_layout, Plan& plan) {
  const dnnl::algorithm direct = dnnl::algorithm::convolution_direct;
  const auto& [stride_size, padding_size, dilation_size, groups] = problem.arguments;
  const memory::dims stride{stride_size.h, stride_size.w}, padding{padding_size.h, padding_size.w};
  const memory::dims dilation{dilation_size.h - 1, dilation_size.w - 1};
  plan.x.plain = activations(problem.x);
  plan.y.plain = activations(problem.y);
  plan.w.plain = ohwi(problem.w, groups);
  const auto any = memory::format_tag::any, layout = own_layout ? any : memory::format_tag::nhwc;
  const memory::desc x = activations(problem.x, layout), y = activations(problem.y, layout);
  const memory::desc w{filter_sizes(problem.w, groups), dnnl_type(problem.w.dtype), any};
  // A weight gradient may be f32 where the activations are bf16; the forward that it refers to has bf16 weights.
  const memory::desc w_forward{filter_sizes(problem.w, groups), dnnl_type(problem.x.dtype), any};
  const memory::desc bias = problem.has_bias
                                ? memory::desc({problem.w.sizes[0]}, dnnl_type(problem.bias), memory::format_tag::a)
                                : memory::desc();
  // The last windows may leave a rest of the input unread: the padding on the far side is what fits exactly.
  const auto far = [](int64_t in, int64_t out, int64_t kernel, int64_t s, int64_t near, int64_t d) {
    return (out - 1) * s + (kernel - 1) * d + 1 - in - near;
  };
  const memory::dims padding_far{
      far(problem.x.sizes[1], problem.y.sizes[1], problem.w.sizes[1], stride[0], padding[0], dilation_size.h),
      far(problem.x.sizes[2], problem.y.sizes[2], problem.w.sizes[2], stride[1], padding[1], dilation_size.w)};
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto forward = choose<dnnl::convolution_forward>(attributes, dnnl::prop_kind::forward_training, direct, x,
                                                         w_forward, bias, y, stride, dilation, padding, padding_far);
  if (problem.direction == Direction::forward) {
    plan.x.planned = forward.src_desc();
    plan.w.planned = forward.weights_desc();
    plan.y.planned = forward.dst_desc();
    plan.scratchpad = forward.scratchpad_desc();
    plan.primitive = dnnl::convolution_forward(forward);
    plan.x.plan_input();
    plan.w.plan_input();
    plan.y.plan_output();
  } else if (problem.direction == Direction::backward_input) {
    const auto backward = choose_gradient<dnnl::convolution_backward_data>(attributes, forward, direct, x, w, y, stride,
                                                                           dilation, padding, padding_far);
    plan.x.planned = backward.diff_src_desc();
    plan.w.planned = backward.weights_desc();
    plan.y.planned = backward.diff_dst_desc();
    plan.scratchpad = backward.scratchpad_desc();
    plan.primitive = dnnl::convolution_backward_data(backward);
    plan.x.plan_output();
    plan.w.plan_input();
    plan.y.plan_input();
  } else {
    const auto backward = choose_gradient<dnnl::convolution_backward_weights>(attributes, forward, direct, x, w, y,
                                                                              stride, dilation, padding, padding_far);
    plan.x.planned = backward.src_desc();
    plan.w.planned = backward.diff_weights_desc();
    plan.y.planned = backward.diff_dst_desc();
    plan.scratchpad = backward.scratchpad_desc();
    plan.primitive = dnnl::convolution_backward_weights(backward);
    plan.x.plan_input();
    plan.w.plan_output();
    plan.y.plan_input();
  }
}

Plan make_best(const Problem& problem) {
  // The gradient of a first layer: few input channels leave the NHWC kernel with short runs.
  const bool first_layer =
      problem.direction == Direction::backward_weight && problem.x.sizes[3] < 16 && problem.arguments.groups == 1;
  for (const bool own_layout : {true, false}) {
    if (own_layout && !first_layer) continue;
    try {
      Plan plan;
      make(problem, own_layout, plan);
      plan.possible = true;
      return plan;
    } catch (const dnnl::error&) {  // oneDNN has no such kernel for this CPU or shape
    }
  }
  return {};
}

/// The plan for a problem, made at its first use; null where oneDNN has none.
const Plan* plan_for(const Problem& problem) {
  for (const DType dtype : {problem.x.dtype, problem.w.dtype, problem.y.dtype})
    if (dtype != DType::f32 && dtype != DType::bf16) return nullptr;
  if (problem.x.numel() == 0 || problem.y.numel() == 0 || problem.w.numel() == 0) return nullptr;
  static std::mutex mutex;
  static std::map<Key, Plan> plans;  // nodes stay where they are, so that a plan may be used without the lock
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = plans.try_emplace(problem.key());
  if (is_new) found->second = make_best(problem);
  return found->second.possible ? &found->second : nullptr;
}

}  // namespace

bool dnnl_conv2d_forward(const View& y, const View& x, const View& w, const View& bias,
                         const Conv2dArguments& arguments) {
  const Plan* plan = plan_for({Direction::forward, x, w, y, bias.dtype, static_cast<bool>(bias), arguments});
  if (!plan) return false;
  memory target = plan->y.write(y, lane().destination);
  std::unordered_map<int, memory> operands{{DNNL_ARG_SRC, plan->x.read(x, lane().source)},
                                           {DNNL_ARG_WEIGHTS, plan->w.read(w, lane().weights)},
                                           {DNNL_ARG_DST, target}};
  if (bias)
    operands.emplace(DNNL_ARG_BIAS,
                     memory({{bias.sizes[0]}, dnnl_type(bias.dtype), memory::format_tag::a}, dnnl_engine(), bias.data));
  plan->run(operands);
  plan->y.deliver(y, target);
  lane().stream.wait();
  return true;
}

bool dnnl_conv2d_backward_input(const View& dx, const View& dy, const View& w, const Conv2dArguments& arguments) {
  const Plan* plan = plan_for({Direction::backward_input, dx, w, dy, DType::f32, false, arguments});
  if (!plan) return false;
  memory target = plan->x.write(dx, lane().destination);
  std::unordered_map<int, memory> operands{{DNNL_ARG_DIFF_DST, plan->y.read(dy, lane().source)},
                                           {DNNL_ARG_WEIGHTS, plan->w.read(w, lane().weights)},
                                           {DNNL_ARG_DIFF_SRC, target}};
  plan->run(operands);
  plan->x.deliver(dx, target);
  lane().stream.wait();
  return true;
}

bool dnnl_conv2d_backward_weight(const View& dw, const View& dy, const View& x, const Conv2dArguments& arguments) {
  const Plan* plan = plan_for({Direction::backward_weight, x, dw, dy, DType::f32, false, arguments});
  if (!plan) return false;
  memory target = plan->w.write(dw, lane().weights);
  std::unordered_map<int, memory> operands{{DNNL_ARG_SRC, plan->x.read(x, lane().source)},
                                           {DNNL_ARG_DIFF_DST, plan->y.read(dy, lane().destination)},
                                           {DNNL_ARG_DIFF_WEIGHTS, target}};
  plan->run(operands);
  plan->w.deliver(dw, target);
  lane().stream.wait();
  return true;
}

}  // namespace weft::kernels::cpu
