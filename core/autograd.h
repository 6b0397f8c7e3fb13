// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "core/unclaimed_leaf.h"

namespace weft {

class FlatParameters;   // core/flat_parameters.h
class BackwardContext;  // core/backward_context.h

/// True while ops record their backward (the default). Per thread.
bool grad_enabled();

/// Switches recording off (or to `enabled`) until the guard goes.
class NoGrad {
 public:
  explicit NoGrad(bool enabled = false);
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};

/// True where an op should keep what the gradient of `x` needs.
inline bool wants_gradient(const Tensor& x) { return x.defined() && x.requires_grad() && grad_enabled(); }

/// True while checkpoint() runs a function for the second time: what must happen once (the running statistics of
/// batch_norm) has happened already. Per thread.
bool recomputing();

/// The gradients that a backward returns: one per input of the op, undefined where none flows.
using Grads = std::vector<Tensor>;

/// A tensor kept for the backward: its memory and view, never its history, so an op may keep its own output without a
/// cycle. It remembers the storage's version; using it after an in-place change is an error that names the op.
class Saved {
 public:
  Saved() = default;
  Saved(const Tensor& tensor) : Saved(tensor, tensor) {}  // NOLINT(google-explicit-constructor)
  /// `tensor` holds the elements of `of`, an input of the op or its result, in other sizes.
  Saved(const Tensor& tensor, const Tensor& of);
  /// An undefined tensor when nothing was saved. In a backward with create_graph a saved input or result has its
  /// history. Errors: changed in place since; with create_graph, a floating tensor that is neither.
  Tensor get() const;
  operator Tensor() const { return get(); }  // NOLINT(google-explicit-constructor)
  /// What kernels take; View::none() when nothing was saved. Errors: changed in place since.
  operator const kernels::View&() const {  // NOLINT(google-explicit-constructor)
    return view();
  }
  explicit operator bool() const { return static_cast<bool>(storage_); }
  Shape sizes() const { return Shape(std::span(view_.sizes.data(), static_cast<size_t>(view_.rank))); }
  DType dtype() const { return view_.dtype; }
  Device device() const { return storage_->device(); }

 private:
  /// The view where the storage's memory is now, see Storage::release().
  const kernels::View& view() const;
  Tensor with_history(Tensor value) const;

  Ref<Storage> storage_;
  const TensorImpl* of_ = nullptr;  ///< compared with Node's, never followed
  mutable kernels::View view_;
  std::ptrdiff_t offset_ = 0;  ///< bytes from the storage's begin to the view
  uint32_t version_ = 0;
};

/// One recorded op: where its inputs came from and how to turn dy into their gradients.
class Node : public RefCounted {
 public:
  /// Where a gradient flows next: to the node that made the input, or into a leaf.
  struct Edge {
    Ref<Node> node;
    Ref<TensorImpl> leaf;
    const TensorImpl* input = nullptr;  ///< the input while the op ran; Saved compares it
    explicit operator bool() const { return node || leaf; }
  };

  const char* op = "";
  uint64_t sequence = 0;  ///< order of creation in this thread; backward runs in the opposite order
  std::vector<Edge> inputs;
  const TensorImpl* output = nullptr;  ///< the output while the op ran; Saved compares it
  Shape sizes;                         ///< the output's
  DType dtype = DType::f32;
  Device device;
  std::vector<std::function<Tensor(const Tensor&)>> hooks;

  // State of the backward pass that is under way (core/backward_pass.cpp): its number, 0 between passes; how many
  // gradients the node still waits for; the sum of those that came; whether that comes multiplied by the derivative of
  // the node's activation.
  uint64_t pass = 0;
  int waiting = 0;
  Tensor arrived;
  bool activation_is_taken = false;

  virtual Grads backward(const Tensor& dy, BackwardContext& context) = 0;
  /// Whether backward returns a dy of this dtype as it is: a cast does, where the dtype is that of its input.
  virtual bool hands_on(DType) const { return false; }
  /// Frees the saved tensors after a backward that does not retain the graph.
  virtual void release() {}

  ~Node() override;
  /// Nodes that go while another one goes wait in a list: a chain of any length is freed without recursion.
  void destroy() override;
};

/// A tensor's state for autograd; made on first need.
struct AutogradMeta {
  bool requires_grad = false;
  bool is_chosen = false;     // requires_grad_() was called: fields() leaves the choice alone
  bool is_claimed = false;    // leaf: its owner is known, see core/unclaimed_leaf.h
  bool had_gradient = false;  // leaf that is not claimed
  bool is_sharded = false;    // FSDP's: an optimizer takes its shards
  bool grad_is_zero = false;  // grad's memory counts as zero, whatever it holds: the next gradient overwrites it
  bool grad_is_none = false;  // no gradient came since zero_grad(), unless a caller wrote into grad: see none_writes
  uint32_t none_writes = 0;   // own_writes() of grad's storage when it became none
  Tensor grad;
  Ref<Node> node;                                                     // made this tensor; null for a leaf
  std::vector<std::function<Tensor(const Tensor&)>> hooks;            // a leaf's
  std::vector<std::function<void(const Tensor&)>> accumulated_hooks;  // a leaf's
  Tensor compute_copy;                 // low-precision copy kept by the optimizer, see core/autocast.h
  uint32_t compute_version = 0;        // valid while it equals the storage's version
  std::weak_ptr<FlatParameters> flat;  // the flat buffers that this parameter is a slice of, core/flat_parameters.h
  std::unique_ptr<UnclaimedLeaf> unclaimed;

  /// `memory` is where the next gradient goes; until then there is none.
  void set_none(Tensor memory) {
    grad = std::move(memory);
    grad_is_zero = grad_is_none = true;
    none_writes = grad.storage()->own_writes();
  }
  /// grad() of a backward with create_graph becomes a plain one.
  void drop_history() {
    if (grad.requires_grad()) [[unlikely]]
      grad = grad.detach();
  }
  void claim() {
    is_claimed = true;
    if (unclaimed) [[unlikely]]
      unclaimed.reset();
  }
};

namespace autograd_detail {

/// A node whose backward is a lambda of dy, or of dy and a BackwardContext&. release() frees its captures.
template <class Backward, class Base = Node>
class LambdaNode final : public Base {
 public:
  template <class... Arguments>
  explicit LambdaNode(Backward backward, Arguments&&... base)
      : Base(std::forward<Arguments>(base)...), backward_(std::move(backward)) {}
  Grads backward(const Tensor& dy, BackwardContext& context) override {
    WEFT_CHECK(backward_.has_value(), this->op,
               ": backward a second time through the same graph. Pass retain_graph = true to the first backward");
    if constexpr (std::is_invocable_v<Backward&, const Tensor&, BackwardContext&>)
      return (*backward_)(dy, context);
    else
      return (*backward_)(dy);
  }
  void release() override {
    backward_.reset();
    Base::release();
  }

 private:
  std::optional<Backward> backward_;
};

/// Does an input want a gradient?
bool any_requires_grad(std::initializer_list<Tensor> inputs);
bool any_requires_grad(const std::vector<Tensor>& inputs);
/// Makes `node` the history of y, with edges to the `count` inputs.
void connect(const Tensor& y, Ref<Node> node, const char* op, const Tensor* inputs, size_t count);

}  // namespace autograd_detail

/// Records that `y` was computed from `inputs` and how the gradients of the inputs follow from dy:
///   return differentiable(y, "gelu", {x}, [x = Saved(x)](const Tensor& dy) { return Grads{gelu_backward(dy, x)}; });
/// The lambda takes dy, or dy and a BackwardContext& (core/backward_context.h). The lambda must be a pure function of
/// these and of its captures, and must return a gradient per input (undefined: none), of the input's sizes, dtype and
/// device; anything else is an error of backward() that names the op. Does nothing while gradients are off or when no
/// input wants one. Returns y.
///
/// Second derivatives come for nothing where the lambda calls ops. A lambda that calls kernels asks grad_enabled(),
/// which is true in a backward with create_graph: there it must call ops, or that backward is an error.
template <class Inputs, class Backward>
Tensor differentiable_from(Tensor y, const char* op, const Inputs& inputs, Backward&& backward) {
  if (grad_enabled() && autograd_detail::any_requires_grad(inputs)) {
    using Lambda = autograd_detail::LambdaNode<std::decay_t<Backward>>;
    autograd_detail::connect(y, Ref<Node>(new Lambda(std::forward<Backward>(backward))), op, std::data(inputs),
                             inputs.size());
  }
  return y;
}
/// differentiable_from() with inputs in braces, or in a vector.
template <class Backward>
Tensor differentiable(Tensor y, const char* op, std::initializer_list<Tensor> inputs, Backward&& backward) {
  return differentiable_from(std::move(y), op, inputs, std::forward<Backward>(backward));
}
/// As above.
template <class Backward>
Tensor differentiable(Tensor y, const char* op, const std::vector<Tensor>& inputs, Backward&& backward) {
  return differentiable_from(std::move(y), op, inputs, std::forward<Backward>(backward));
}

/// To be called from a hook: `callback` runs once, after the backward pass that is under way (the outermost one, where
/// a checkpoint() runs another inside). Callbacks run in the order of their registration; after an exception none does.
/// Errors: no backward is running on this thread.
void after_backward(std::function<void()> callback);

/// Sums `gradient` over the dimensions that broadcasting stretched, back to `sizes`.
Tensor reduce_to(const Tensor& gradient, const Shape& sizes);

struct BackwardOptions {
  bool create_graph = false;              ///< the gradients have a history, so that they can be differentiated
  std::optional<bool> retain_graph = {};  ///< another backward may come; as create_graph unless given
};

/// Runs backward from several outputs at once (gradients[i] may be undefined for a one-element output). With
/// create_graph a leaf and its grad() own each other until the next zero_grad(), set_grad() or plain backward;
/// autograd::grad() (core/derivatives.h) leaves grad() alone. Errors with create_graph: a leaf that DDP or FSDP
/// reduces.
void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients, const BackwardOptions& options);
inline void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
                     bool retain_graph = false) {
  backward(outputs, gradients, BackwardOptions{.retain_graph = retain_graph});
}

/// Runs `function` without keeping its intermediate tensors and runs it again during backward: memory for time
/// (Chen et al. 2016). Random ops draw the same numbers both times. Gradients reach `inputs` and every parameter that
/// `function` uses.
Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& function, const std::vector<Tensor>& inputs);

}  // namespace weft
