// SPDX-License-Identifier: Apache-2.0
#include "core/backward_pass.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "core/autograd.h"
#include "core/autograd_meta.h"
#include "core/backward_context.h"
#include "core/capture.h"
#include "core/ops/binary.h"
#include "core/trace.h"

namespace weft {
namespace {

thread_local std::vector<std::function<void()>>* after_pass = nullptr;  // the outermost backward's

Tensor run_hooks(const std::vector<std::function<Tensor(const Tensor&)>>& hooks, Tensor gradient) {
  for (const auto& hook : hooks) {
    const Tensor replaced = hook(gradient);
    if (replaced.defined()) gradient = replaced;
  }
  return gradient;
}

/// True where nobody else sees the tensor or its memory, so that it may be changed or kept without a copy.
bool is_alone(const Tensor& x) { return x.impl()->owners() == 1 && x.storage()->owners() == 1 && x.is_contiguous(); }

/// x.sizes() == sizes without a Shape in between: every step of a backward pass asks.
bool has_sizes(const Tensor& x, const Shape& sizes) {
  const kernels::View& view = x.view();
  if (view.rank != sizes.rank()) return false;
  for (int d = 0; d < view.rank; ++d)
    if (view.sizes[static_cast<size_t>(d)] != sizes[d]) return false;
  return true;
}

/// sum += gradient, in place where nobody else sees the sum.
void accumulate(Tensor& sum, Tensor gradient) {
  if (!gradient.defined()) return;
  if (!sum.defined())
    sum = std::move(gradient);
  else if (is_alone(sum) && sum.dtype() == gradient.dtype())
    sum.add_(gradient);
  else
    sum = sum + gradient;
}

std::atomic<uint64_t> passes{0};

/// One run of backward. Nodes run in the opposite order of their creation, each when all its gradients have come; the
/// bookkeeping lives in the nodes, so that a step costs no look-up.
class Engine {
 public:
  explicit Engine(bool retain_graph)
      : retain_graph_(retain_graph), pass_(++passes), outer_(std::exchange(innermost_, this)) {}
  ~Engine() {
    innermost_ = outer_;
    for (Node* node : reached_) {
      node->pass = 0;
      node->waiting = 0;
      node->arrived = {};
      node->activation_is_taken = false;
    }
    for (auto& [leaf, state] : leaves_) take_back(*leaf, state);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void run(const std::vector<Tensor>& outputs, std::vector<Tensor> gradients) {
    for (const Tensor& output : outputs)
      if (Node* node = node_of(output)) count_uses(node);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (Node* node = node_of(outputs[i]))
        accumulate(node->arrived, std::move(gradients[i]));
      else
        accumulate(leaves_[outputs[i].impl()].sum, std::move(gradients[i]));
    }
    std::vector<Node*> roots = roots_;
    for (Node* node : roots)
      if (node->waiting == 0) push(node);
    while (!ready_.empty()) {
      std::pop_heap(ready_.begin(), ready_.end(), created_before);
      Node* node = ready_.back();
      ready_.pop_back();
      step(*node);
    }
    while (!leaves_.empty()) finish_leaf(leaves_.begin()->first);
  }

  /// Does any pass of this thread wait for a gradient of the leaf?
  static bool waits_for(TensorImpl* leaf) {
    for (const Engine* engine = innermost_; engine; engine = engine->outer_)
      if (engine->leaves_.contains(leaf)) return true;
    return false;
  }

 private:
  struct Leaf {
    Tensor sum;
    int waiting = 0;       // gradients still to come in this pass
    bool offered = false;  // an op may have written into grad()
  };

  // An offer that was not used: grad() counts as zero as before.
  static void take_back(TensorImpl& leaf, Leaf& state) {
    if (std::exchange(state.offered, false)) leaf.autograd->grad_is_zero = true;
  }

  // The context of one node's backward.
  class Context final : public BackwardContext {
   public:
    Context(Engine& engine, const Node& node) : engine_(engine), node_(node) {}

    Tensor gradient_target(size_t input, const Shape& sizes, DType dtype, Device device) override {
      Tensor place = engine_.offer(node_.inputs[input], sizes, dtype);
      return place.defined() ? place : Tensor::empty(sizes, dtype, device);
    }

    Tensor arrived_gradient(size_t input, const Shape& sizes, DType dtype) override {
      Node* const node = node_.inputs[input].node.get();
      if (!node || !node->arrived.defined()) return {};
      const Tensor& sum = node->arrived;
      if (sum.sizes() != sizes || sum.dtype() != dtype || !sum.is_contiguous()) return {};
      return std::exchange(node->arrived, Tensor());
    }

    TakenActivation take_activation(size_t input, DType dtype) override {
      Node* const node = node_.inputs[input].node.get();
      if (!node || node->waiting != 1 || node->arrived.defined() || !node->hooks.empty() || node->dtype != dtype)
        return {};
      auto* const activation = dynamic_cast<ActivationNode*>(node);
      if (!activation || !activation->saved()) return {};
      const Tensor saved = activation->saved();
      if (!saved.is_contiguous() || saved.dtype() != dtype) return {};
      activation->activation_is_taken = true;
      return {activation->f(), saved};
    }

    bool is_last() const override { return !engine_.retain_graph_; }

    bool activation_is_taken() const override { return node_.activation_is_taken; }

   private:
    Engine& engine_;
    const Node& node_;
  };

  // The grad() memory of the leaf at the end of the edge, if the gradient on it is all that the leaf gets.
  Tensor offer(const Node::Edge& from, const Shape& sizes, DType dtype) {
    const Node* const node = from.node.get();
    const bool through = node && node->waiting == 1 && node->hooks.empty() && node->hands_on(dtype);
    const Ref<TensorImpl>& target = through ? node->inputs[0].leaf : from.leaf;
    if (!target || !target->autograd) return {};
    Leaf& leaf = leaves_.at(target.get());
    AutogradMeta& meta = *target->autograd;
    const bool fits = meta.grad_is_zero && meta.grad.sizes() == sizes && meta.grad.dtype() == dtype &&
                      meta.grad.is_contiguous() && meta.hooks.empty();
    if (!fits || leaf.waiting != 1 || leaf.sum.defined()) return {};
    meta.grad_is_zero = false;  // so that nobody fills it with zeros meanwhile
    leaf.offered = true;
    return meta.grad.detach();
  }

  static Node* node_of(const Tensor& tensor) { return tensor.impl()->autograd->node.get(); }
  static bool created_before(const Node* a, const Node* b) { return a->sequence < b->sequence; }

  void push(Node* node) {
    ready_.push_back(node);
    std::push_heap(ready_.begin(), ready_.end(), created_before);
  }

  // True the first time that this pass sees the node.
  bool reach(Node* node) {
    if (node->pass == pass_) return false;
    WEFT_CHECK(node->pass == 0, "backward: ", node->op,
               " belongs to a graph whose backward is running. A hook must not run backward on its own graph");
    node->pass = pass_;
    reached_.push_back(node);
    return true;
  }

  void count_uses(Node* root) {
    if (std::find(roots_.begin(), roots_.end(), root) == roots_.end()) roots_.push_back(root);
    if (!reach(root)) return;
    std::vector<Node*> stack{root};
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      for (const Node::Edge& edge : node->inputs) {
        if (edge.leaf) ++leaves_[edge.leaf.get()].waiting;
        if (!edge.node) continue;
        if (reach(edge.node.get())) stack.push_back(edge.node.get());
        ++edge.node->waiting;
      }
    }
  }

  void step(Node& node) {
    Tensor dy = std::move(node.arrived);
    Grads grads;
    if (dy.defined()) {
      const OpScope scope(node.op, /*backward=*/true);
      if (!node.hooks.empty()) dy = run_hooks(node.hooks, std::move(dy));
      WEFT_CHECK(has_sizes(dy, node.sizes), node.op, ": backward got the gradient ", dy, " for an output of sizes ",
                 node.sizes);
      Context context(*this, node);
      grads = node.backward(dy, context);
      WEFT_CHECK(grads.size() == node.inputs.size(), node.op, ": backward returned ", grads.size(), " gradients for ",
                 node.inputs.size(), " inputs");
      dy = {};
      if (!retain_graph_) node.release();
    }
    grads.resize(node.inputs.size());
    for (size_t i = 0; i < grads.size(); ++i) {
      const Node::Edge& edge = node.inputs[i];
      if (grads[i].defined()) check_gradient(node, i, grads[i]);
      if (edge.leaf) {
        Leaf& leaf = leaves_.at(edge.leaf.get());
        accumulate(leaf.sum, std::move(grads[i]));
        if (--leaf.waiting == 0) finish_leaf(edge.leaf.get(), node.op);
      } else if (edge.node) {
        accumulate(edge.node->arrived, std::move(grads[i]));
        if (--edge.node->waiting == 0) push(edge.node.get());
      }
    }
  }

  // An op's gradient must match its input.
  static void check_gradient(const Node& node, size_t i, const Tensor& gradient) {
    const Node::Edge& edge = node.inputs[i];
    const auto fits = [&](const Shape& sizes, DType dtype, Device device) {
      const bool right_dtype = gradient.dtype() == dtype || (edge.node && edge.node->hands_on(gradient.dtype()));
      WEFT_CHECK(has_sizes(gradient, sizes) && gradient.device() == device && right_dtype, node.op,
                 ": backward returned the gradient ", gradient, " for input ", i, ", expected ", dtype, sizes, " on ",
                 device);
    };
    if (edge.node)
      fits(edge.node->sizes, edge.node->dtype, edge.node->device);
    else if (edge.leaf)
      fits(Tensor(edge.leaf).sizes(), edge.leaf->view.dtype, edge.leaf->storage->device());
  }

  // A leaf whose last gradient of this pass came: hooks, then into grad(), then the accumulated hooks. `op`: what used
  // it, where one op did.
  void finish_leaf(TensorImpl* leaf, const char* op = "backward") {
    const OpScope scope("accumulate_grad", /*backward=*/true);
    const auto found = leaves_.find(leaf);
    Tensor sum = std::move(found->second.sum);
    AutogradMeta& meta = meta_of(leaf);
    const bool written = found->second.offered && sum.defined() && sum.raw_data() == meta.grad.raw_data();
    if (!written) take_back(*leaf, found->second);
    leaves_.erase(found);
    if (!sum.defined()) return;
    const Tensor tensor{Ref<TensorImpl>(leaf)};
    if (!meta.hooks.empty()) sum = run_hooks(meta.hooks, std::move(sum));
    WEFT_CHECK(sum.sizes() == tensor.sizes(), "backward: gradient ", sum, " does not fit its leaf ", tensor);
    if (written) {
      meta.grad.storage()->bump_version();
    } else if (meta.grad.defined()) {
      if (!std::exchange(meta.grad_is_zero, false))
        meta.grad.add_(sum);
      else if (is_alone(sum) && is_alone(meta.grad) && sum.dtype() == meta.grad.dtype() && meta.flat.expired() &&
               !has_captured())
        meta.grad = std::move(sum);
      else
        meta.grad.copy_(sum);
    } else if (is_alone(sum) && sum.dtype() == tensor.dtype()) {
      meta.grad = std::move(sum);
    } else {
      // A view, another leaf or the caller may see this memory: later sums must not reach it.
      meta.grad = sum.dtype() == tensor.dtype() ? sum.clone() : sum.to(tensor.dtype());
    }
    meta.grad_is_none = false;
    if (!meta.is_claimed && std::exchange(meta.had_gradient, true) && !meta.unclaimed) [[unlikely]]
      meta.unclaimed = std::make_unique<UnclaimedLeaf>(tensor.description(), op);
    for (const auto& hook : meta.accumulated_hooks) hook(tensor);
  }

  static thread_local Engine* innermost_;
  bool retain_graph_;
  uint64_t pass_;
  Engine* outer_;                       // runs this one inside, as checkpoint() does
  std::vector<Node*> roots_, reached_;  // the outputs of the caller keep all nodes alive
  std::vector<Node*> ready_;            // a heap: the youngest node first
  std::unordered_map<TensorImpl*, Leaf> leaves_;
};

thread_local Engine* Engine::innermost_ = nullptr;

/// While it lives, after_backward() collects into `callbacks`.
class OutermostPass {
 public:
  explicit OutermostPass(std::vector<std::function<void()>>& callbacks) { after_pass = &callbacks; }
  ~OutermostPass() { after_pass = nullptr; }
  OutermostPass(const OutermostPass&) = delete;
  OutermostPass& operator=(const OutermostPass&) = delete;
};

}  // namespace

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients, bool retain_graph) {
  WEFT_CHECK(outputs.size() == gradients.size(), "backward: ", outputs.size(), " outputs, ", gradients.size(),
             " gradients");
  std::vector<Tensor> starts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    WEFT_CHECK(y.defined() && y.requires_grad(), "backward: ", y, " depends on no tensor that needs a gradient");
    WEFT_CHECK(gradients[i].defined() || y.numel() == 1, "backward: ", y,
               " has more than one element: pass a gradient, or sum it first");
    WEFT_CHECK(!gradients[i].defined() || (gradients[i].sizes() == y.sizes() && gradients[i].device() == y.device()),
               "backward: expected a gradient of ", y, ", got ", gradients[i]);
    starts.push_back(gradients[i].defined() ? gradients[i].detach().to(y.dtype())
                                            : Tensor::ones(y.sizes(), y.dtype(), y.device()));
  }
  const NoGrad no_grad;
  if (after_pass) return Engine(retain_graph).run(outputs, std::move(starts));
  std::vector<std::function<void()>> callbacks;
  {
    const OutermostPass pass(callbacks);
    Engine(retain_graph).run(outputs, std::move(starts));
  }
  for (const auto& callback : callbacks) callback();
}

bool gradient_pending(const Tensor& leaf) { return Engine::waits_for(leaf.impl()); }

void after_backward(std::function<void()> callback) {
  WEFT_CHECK(after_pass, "after_backward: no backward is running on this thread. Call it from a hook");
  after_pass->push_back(std::move(callback));
}

}  // namespace weft
