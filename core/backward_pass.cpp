// SPDX-License-Identifier: Apache-2.0
#include "core/backward_pass.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/autograd_meta.h"
#include "core/backward_context.h"
#include "core/capture.h"
#include "core/derivatives.h"
#include "core/ops/binary.h"
#include "core/trace.h"

namespace weft {
namespace {

thread_local std::vector<std::function<void()>>* after_pass = nullptr;  // the outermost backward's

Tensor run_hooks(const std::vector<std::function<Tensor(const Tensor&)>>& hooks, Tensor gradient) {
  for (const auto& hook : hooks) {
    const Tensor replaced = hook(gradient);
    if (!replaced.defined()) continue;
    WEFT_CHECK(replaced.sizes() == gradient.sizes() && replaced.dtype() == gradient.dtype() &&
                   replaced.device() == gradient.device(),
               "backward: a hook was given the gradient ", gradient, " and returned ", replaced,
               ". Return one of the same sizes, dtype and device");
    gradient = replaced;
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
  else if (is_alone(sum) && sum.dtype() == gradient.dtype() && !grad_enabled())
    sum.add_(gradient);
  else
    sum = sum + gradient;
}

std::atomic<uint64_t> passes{0};

/// A leaf in the place of a dy without history. A gradient that depends on the probe alone is a constant; a kernel's
/// result does not depend on it.
class Probe {
 public:
  explicit Probe(const Tensor& dy) : leaf_(dy.detach().requires_grad_()), since_(latest_sequence()) {}
  const Tensor& tensor() const { return leaf_; }

  /// Removes the probe from the history of x, which was made since.
  Tensor without(const Tensor& x, const Tensor& dy) {
    if (x.is_same(leaf_)) return dy;
    Node* const node = x.impl()->autograd->node.get();
    return !node || depends(*node) ? x : x.detach();
  }

 private:
  // Whether anything but the probe leads to the node; the edges to the probe go.
  bool depends(Node& node) {
    if (node.sequence <= since_) return true;
    const auto known = known_.find(&node);
    if (known != known_.end()) return known->second;
    bool result = false;
    for (Node::Edge& edge : node.inputs) {
      if (edge.leaf.get() == leaf_.impl())
        edge.leaf = {};
      else if (edge.leaf || (edge.node && depends(*edge.node)))
        result = true;
    }
    return known_[&node] = result;
  }

  Tensor leaf_;
  uint64_t since_;
  std::unordered_map<Node*, bool> known_;
};

/// The purpose of a pass.
struct Task {
  bool retain_graph = false;
  bool create_graph = false;
  const std::vector<Tensor>* targets = nullptr;  ///< their gradients are returned, and no leaf gets any
  bool ends_at_targets = false;                  ///< the targets' own history is not looked at
};

/// One run of backward. Nodes run in the opposite order of their creation, each when all its gradients have come; the
/// bookkeeping lives in the nodes, so that a step costs no look-up.
class Engine {
 public:
  explicit Engine(const Task& task)
      : task_(task),
        fills_leaves_(!task.targets && !task.create_graph),
        pass_(++passes),
        outer_(std::exchange(innermost_, this)) {
    if (!task.targets) return;
    for (const Tensor& target : *task.targets) {
      captured_[key_of(target)];
      if (!node_of(target)) leaves_[target.impl()];
    }
  }
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
      else if (!task_.targets || captured_.contains(outputs[i].impl()))
        accumulate(leaves_[outputs[i].impl()].sum, std::move(gradients[i]));
    }
    std::vector<Node*> roots = roots_;
    for (Node* node : roots)
      if (node->waiting == 0 && (!task_.targets || leads(node))) push(node);
    while (!ready_.empty()) {
      std::pop_heap(ready_.begin(), ready_.end(), created_before);
      Node* node = ready_.back();
      ready_.pop_back();
      step(*node);
    }
    while (!leaves_.empty()) finish_leaf(leaves_.begin()->first);
  }

  /// The gradients of the task's targets; undefined where none came.
  std::vector<Tensor> captured() const {
    std::vector<Tensor> gradients;
    for (const Tensor& target : *task_.targets) gradients.push_back(captured_.at(key_of(target)));
    return gradients;
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
      Tensor place = fills_leaves() ? engine_.offer(node_.inputs[input], sizes, dtype) : Tensor();
      return place.defined() ? place : Tensor::empty(sizes, dtype, device);
    }

    Tensor arrived_gradient(size_t input, const Shape& sizes, DType dtype) override {
      if (!fills_leaves()) return {};
      Node* const node = node_.inputs[input].node.get();
      if (!node || !node->arrived.defined()) return {};
      const Tensor& sum = node->arrived;
      if (sum.sizes() != sizes || sum.dtype() != dtype || !sum.is_contiguous()) return {};
      return std::exchange(node->arrived, Tensor());
    }

    TakenActivation take_activation(size_t input, DType dtype) override {
      Node* const node = fills_leaves() ? node_.inputs[input].node.get() : nullptr;
      if (!node || node->waiting != 1 || node->arrived.defined() || !node->hooks.empty() || node->dtype != dtype)
        return {};
      auto* const activation = dynamic_cast<ActivationNode*>(node);
      if (!activation || !activation->saved()) return {};
      const Tensor saved = activation->saved();
      if (!saved.is_contiguous() || saved.dtype() != dtype) return {};
      activation->activation_is_taken = true;
      return {activation->f(), saved};
    }

    bool is_last() const override { return !engine_.task_.retain_graph; }

    bool activation_is_taken() const override { return node_.activation_is_taken; }
    bool wants(size_t input) const override { return engine_.wants(node_.inputs[input]); }
    bool fills_leaves() const override { return engine_.fills_leaves_; }
    Tensor history(size_t input, const Shape& sizes, DType dtype, Device device) const override {
      return attached(Tensor::zeros(sizes, dtype, device), node_.inputs[input]);
    }

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
  static const void* key_of(const Tensor& tensor) {
    if (const Node* const node = node_of(tensor)) return node;
    return tensor.impl();
  }
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
      if (ends_at(*node)) continue;
      for (const Node::Edge& edge : node->inputs) {
        if (edge.leaf && (!task_.targets || captured_.contains(edge.leaf.get()))) ++leaves_[edge.leaf.get()].waiting;
        if (!edge.node) continue;
        if (reach(edge.node.get())) stack.push_back(edge.node.get());
        ++edge.node->waiting;
      }
    }
    if (task_.targets) find_leading(root);
  }

  bool ends_at(const Node& node) const { return task_.ends_at_targets && captured_.contains(&node); }

  // Where a pass has targets, only nodes run that lead to one.
  bool leads(const Node* node) const {
    const auto found = leading_.find(node);
    return found != leading_.end() && found->second;
  }

  [[gnu::noinline]] bool wants(const Node::Edge& edge) const {
    if (!task_.targets) return static_cast<bool>(edge);
    return edge.leaf ? captured_.contains(edge.leaf.get()) : edge.node && leads(edge.node.get());
  }

  bool wants_any(const Node& node) const {
    return !ends_at(node) && std::ranges::any_of(node.inputs, [&](const Node::Edge& edge) { return wants(edge); });
  }

  [[gnu::noinline, gnu::cold]] void find_leading(const Node* root) {
    std::vector<std::pair<const Node*, size_t>> path{{root, 0}};  // with the input to look at next
    while (!path.empty()) {
      auto& [node, at] = path.back();
      const Node* next = nullptr;
      while (!next && !ends_at(*node) && at < node->inputs.size()) {
        next = node->inputs[at++].node.get();
        if (next && leading_.contains(next)) next = nullptr;
      }
      if (next) {
        path.emplace_back(next, 0);
        continue;
      }
      leading_[node] = captured_.contains(node) || wants_any(*node);
      path.pop_back();
    }
  }

  // Not inline, so that GCC inlines the small functions into it.
  [[gnu::noinline]] void step(Node& node) {
    Tensor dy = std::move(node.arrived);
    Grads grads;
    if (dy.defined()) {
      const OpScope scope(node.op, /*backward=*/true);
      if (!node.hooks.empty()) dy = run_hooks(node.hooks, std::move(dy));
      WEFT_CHECK(has_sizes(dy, node.sizes), node.op, ": backward got the gradient ", dy, " for an output of sizes ",
                 node.sizes);
      if (!fills_leaves_ && ends_behind(node, dy)) return;
      Context context(*this, node);
      grads = task_.create_graph ? recorded(node, dy, context) : node.backward(dy, context);
      WEFT_CHECK(grads.size() == node.inputs.size(), node.op, ": backward returned ", grads.size(), " gradients for ",
                 node.inputs.size(), " inputs");
      dy = {};
      if (!task_.retain_graph) node.release();
    } else {
      grads.resize(node.inputs.size());
    }
    for (size_t i = 0; i < grads.size(); ++i) {
      const Node::Edge& edge = node.inputs[i];
      if (grads[i].defined()) check_gradient(node, i, grads[i]);
      if (!fills_leaves_ && !wants(edge)) continue;
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

  // A target's gradient is captured. True where no other target comes behind the node.
  [[gnu::noinline, gnu::cold]] bool ends_behind(const Node& node, const Tensor& dy) {
    if (!task_.targets) return false;
    const auto target = captured_.find(&node);
    if (target != captured_.end()) target->second = dy.to(node.dtype);  // a cast's node takes f32, too
    return !wants_any(node);
  }

  // With create_graph: every gradient depends on dy, so that one without history was made by a kernel.
  [[gnu::noinline, gnu::cold]] Grads recorded(Node& node, const Tensor& dy, Context& context) {
    std::optional<Probe> probe;
    if (!dy.requires_grad()) probe.emplace(dy);
    const RecordedBackward scope(&node);
    Grads grads = node.backward(probe ? probe->tensor() : dy, context);
    for (size_t i = 0; i < grads.size() && i < node.inputs.size(); ++i) {
      if (!grads[i].defined() || !wants(node.inputs[i])) continue;
      if (!grads[i].requires_grad()) refuse_create_graph(node.op);
      if (probe) grads[i] = probe->without(grads[i], dy);
    }
    return grads;
  }

  // An op's gradient must match its input.
  static void check_gradient(const Node& node, size_t i, const Tensor& gradient) {
    const Node::Edge& edge = node.inputs[i];
    const auto has = [&](DType dtype, Device device) {
      const bool right_dtype = gradient.dtype() == dtype || (edge.node && edge.node->hands_on(gradient.dtype()));
      return right_dtype && gradient.device() == device;
    };
    const bool fits = edge.node ? has_sizes(gradient, edge.node->sizes) && has(edge.node->dtype, edge.node->device)
                                : !edge.leaf || (gradient.view().same_sizes(edge.leaf->view) &&
                                                 has(edge.leaf->view.dtype, edge.leaf->storage->device()));
    if (!fits) [[unlikely]]
      refuse_gradient(node, i, gradient);
  }

  [[noreturn, gnu::cold]] static void refuse_gradient(const Node& node, size_t i, const Tensor& gradient) {
    const Node::Edge& edge = node.inputs[i];
    const Shape sizes = edge.node ? edge.node->sizes : Tensor(edge.leaf).sizes();
    fail(node.op, ": backward returned the gradient ", gradient, " for input ", i, ", expected ",
         edge.node ? edge.node->dtype : edge.leaf->view.dtype, sizes, " on ",
         edge.node ? edge.node->device : edge.leaf->storage->device());
  }

  // A leaf whose last gradient of this pass came: hooks, then into grad(), then the accumulated hooks. `op`: the leaf's
  // user, if single.
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
    if (task_.targets) {
      captured_.at(leaf) = sum.to(tensor.dtype());
      return;
    }
    if (task_.create_graph)
      keep_with_history(meta, tensor, sum.to(tensor.dtype()));
    else
      keep(meta, tensor, std::move(sum), written);
    meta.grad_is_none = false;
    if (!meta.is_claimed && std::exchange(meta.had_gradient, true) && !meta.unclaimed) [[unlikely]]
      meta.unclaimed = std::make_unique<UnclaimedLeaf>(tensor.description(), op);
    for (const auto& hook : meta.accumulated_hooks) hook(tensor);
  }

  [[gnu::noinline, gnu::cold]] static void keep_with_history(AutogradMeta& meta, const Tensor& leaf, Tensor sum) {
    WEFT_CHECK(meta.accumulated_hooks.empty(), "backward: with create_graph the gradient of ", leaf,
               " has a history, and DDP or FSDP reduces it without. Use autograd::grad()");
    if (meta.grad.defined() && !std::exchange(meta.grad_is_zero, false)) sum = meta.grad + sum;
    if (!meta.flat.expired()) {  // its memory is an optimizer's
      const NoGrad no_grad;
      meta.grad = meta.grad.detach();
      meta.grad.copy_(sum.detach());
    } else {
      meta.grad = sum.detach().clone();
    }
    if (sum.requires_grad()) meta.grad = with_history_of(sum, meta.grad);
  }

  static void keep(AutogradMeta& meta, const Tensor& tensor, Tensor sum, bool written) {
    meta.drop_history();
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
  }

  static thread_local Engine* innermost_;
  Task task_;
  bool fills_leaves_;
  RecordedBackward plain_{nullptr};  // until a node says otherwise
  uint64_t pass_;
  Engine* outer_;                       // runs this one inside, as checkpoint() does
  std::vector<Node*> roots_, reached_;  // the outputs of the caller keep all nodes alive
  std::vector<Node*> ready_;            // a heap: the youngest node first
  std::unordered_map<TensorImpl*, Leaf> leaves_;
  std::unordered_map<const void*, Tensor> captured_;  // the targets' gradients, by node or by leaf
  std::unordered_map<const Node*, bool> leading_;     // whether the node leads to a target
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

/// The gradients of the outputs, as the caller gave them; `who` begins the texts.
std::vector<Tensor> starts_of(const char* who, const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
                              bool create_graph) {
  WEFT_CHECK(outputs.size() == gradients.size(), who, ": ", outputs.size(), " outputs, ", gradients.size(),
             " gradients");
  std::vector<Tensor> starts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor &y = outputs[i], &gradient = gradients[i];
    WEFT_CHECK(y.defined() && y.requires_grad(), who, ": ", y, " depends on no tensor that needs a gradient");
    WEFT_CHECK(gradient.defined() || y.numel() == 1, who, ": ", y,
               " has more than one element: pass a gradient, or sum it first");
    WEFT_CHECK(!gradient.defined() || (gradient.sizes() == y.sizes() && gradient.device() == y.device()), who,
               ": expected a gradient of ", y, ", got ", gradient);
    starts.push_back(gradient.defined() ? (create_graph ? gradient : gradient.detach()).to(y.dtype())
                                        : Tensor::ones(y.sizes(), y.dtype(), y.device()));
  }
  return starts;
}

/// Returns the gradients of the task's targets, if it has any.
std::vector<Tensor> run(const Task& task, const std::vector<Tensor>& outputs, std::vector<Tensor> starts) {
  const NoGrad switched(task.create_graph);
  const Autocast as_given(task.create_graph ? DType::f32 : autocast_dtype().value_or(DType::f32));
  const auto once = [&] {
    Engine engine(task);
    engine.run(outputs, std::move(starts));
    return task.targets ? engine.captured() : std::vector<Tensor>();
  };
  if (after_pass) return once();
  std::vector<std::function<void()>> callbacks;
  std::vector<Tensor> gradients;
  {
    const OutermostPass pass(callbacks);
    gradients = once();
  }
  for (const auto& callback : callbacks) callback();
  return gradients;
}

}  // namespace

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
              const BackwardOptions& options) {
  const Task task{.retain_graph = options.retain_graph.value_or(options.create_graph),
                  .create_graph = options.create_graph};
  run(task, outputs, starts_of("backward", outputs, gradients, options.create_graph));
}

std::vector<Tensor> autograd::grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                   const GradOptions& options) {
  constexpr const char* kWho = "autograd::grad";
  std::vector<Tensor> given = options.grad_outputs;
  if (given.empty()) given.resize(outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    WEFT_CHECK(inputs[i].defined() && inputs[i].requires_grad(), kWho, ": input ", i, ", ", inputs[i],
               ", needs no gradient. Call requires_grad_() before the outputs are computed");
  const Task task{.retain_graph = options.retain_graph.value_or(options.create_graph),
                  .create_graph = options.create_graph,
                  .targets = &inputs};
  std::vector<Tensor> gradients = run(task, outputs, starts_of(kWho, outputs, given, options.create_graph));
  for (size_t i = 0; i < inputs.size(); ++i)
    WEFT_CHECK(gradients[i].defined() || options.allow_unused, kWho, ": no output depends on input ", i, ", ",
               inputs[i], ". With allow_unused its gradient is an undefined tensor");
  return gradients;
}

void refuse_create_graph(const char* op) {
  WEFT_CHECK(!grad_enabled(), op,
             ": its gradient cannot be differentiated: no second derivative is known. Use other ops, or leave out "
             "create_graph");
}

Grads gradients_by_ops(const std::function<Tensor(const std::vector<Tensor>&)>& composed,
                       const std::vector<Tensor>& inputs, const Tensor& dy, const BackwardContext& context) {
  // Copies that only `composed` uses: the way from one input to another is not part of the op.
  std::vector<Tensor> copies, targets;
  std::vector<size_t> places;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool recorded = inputs[i].defined() && inputs[i].requires_grad();
    copies.push_back(recorded ? with_history_of(inputs[i], inputs[i]) : inputs[i]);
    if (!recorded || !context.wants(i)) continue;
    targets.push_back(copies[i]);
    places.push_back(i);
  }
  Grads grads(inputs.size());
  if (targets.empty()) return grads;
  const Task task{.retain_graph = true, .create_graph = true, .targets = &targets, .ends_at_targets = true};
  const std::vector<Tensor> found = run(task, {composed(copies)}, {dy});
  for (size_t i = 0; i < places.size(); ++i) grads[places[i]] = found[i];
  return grads;
}

bool gradient_pending(const Tensor& leaf) { return Engine::waits_for(leaf.impl()); }

void after_backward(std::function<void()> callback) {
  WEFT_CHECK(after_pass, "after_backward: no backward is running on this thread. Call it from a hook");
  after_pass->push_back(std::move(callback));
}

}  // namespace weft
