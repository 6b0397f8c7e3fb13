// SPDX-License-Identifier: Apache-2.0
#include "core/autograd.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "core/ops/add.h"
#include "core/ops/sum.h"
#include "core/random.h"
#include "core/trace.h"

namespace weft {
namespace {

thread_local bool recording = true;
thread_local uint64_t next_sequence = 0;

AutogradMeta& meta_of(TensorImpl* impl) {
  if (!impl->autograd) impl->autograd = std::make_unique<AutogradMeta>();
  return *impl->autograd;
}

/// The edge that a gradient for `input` takes; empty when the input wants none.
Node::Edge edge_to(const Tensor& input) {
  if (!input.defined() || !input.requires_grad()) return {};
  const Ref<Node>& node = input.impl()->autograd->node;
  if (node) return {node, {}};
  return {{}, Ref<TensorImpl>(input.impl())};
}

Tensor run_hooks(const std::vector<std::function<Tensor(const Tensor&)>>& hooks, Tensor gradient) {
  for (const auto& hook : hooks) {
    const Tensor replaced = hook(gradient);
    if (replaced.defined()) gradient = replaced;
  }
  return gradient;
}

/// One run of backward: which nodes are reached, how many gradients each still waits for, and what came so far.
class Engine {
 public:
  explicit Engine(bool retain_graph) : retain_graph_(retain_graph) {}

  void run(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients) {
    for (const Tensor& output : outputs)
      if (output.impl()->autograd->node) count_uses(output.impl()->autograd->node);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Ref<Node>& node = outputs[i].impl()->autograd->node;
      if (node) add(arrived_[node.get()], gradients[i]);
      else to_leaf(outputs[i].impl(), gradients[i]);
    }
    for (const Tensor& output : outputs) {
      const Ref<Node>& node = output.impl()->autograd->node;
      if (node && uses_[node.get()] == 0 && queued_.insert(node.get()).second) ready_.push(node);
    }
    while (!ready_.empty()) {
      const Ref<Node> node = ready_.top();
      ready_.pop();
      step(node);
    }
    finish_leaves();
  }

 private:
  struct Later {
    bool operator()(const Ref<Node>& a, const Ref<Node>& b) const { return a->sequence < b->sequence; }
  };

  void count_uses(const Ref<Node>& root) {
    std::vector<Node*> stack{root.get()};
    if (!seen_.insert(root.get()).second) return;
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      for (const Node::Edge& edge : node->inputs) {
        if (edge.leaf) ++leaf_uses_[edge.leaf.get()];
        if (!edge.node) continue;
        ++uses_[edge.node.get()];
        if (seen_.insert(edge.node.get()).second) stack.push_back(edge.node.get());
      }
    }
  }

  static void add(Tensor& sum, const Tensor& gradient) {
    if (!gradient.defined()) return;
    sum = sum.defined() ? sum + gradient : gradient;
  }

  void step(const Ref<Node>& node) {
    Tensor dy = std::move(arrived_[node.get()]);
    arrived_.erase(node.get());
    Grads grads(node->inputs.size());
    if (dy.defined()) {
      const OpScope scope(node->op);
      dy = run_hooks(node->hooks, dy);
      grads = node->backward(dy);
      WEFT_CHECK(grads.size() == node->inputs.size(), node->op, ": backward returned ", grads.size(),
                 " gradients for ", node->inputs.size(), " inputs");
      dy = {};
      if (!retain_graph_) node->release();
    }
    for (size_t i = 0; i < grads.size(); ++i) {
      const Node::Edge& edge = node->inputs[i];
      if (edge.leaf) {
        to_leaf(edge.leaf.get(), grads[i]);
        if (--leaf_uses_[edge.leaf.get()] == 0) finish_leaf(edge.leaf.get());
      } else if (edge.node) {
        add(arrived_[edge.node.get()], grads[i]);
        if (--uses_[edge.node.get()] == 0 && queued_.insert(edge.node.get()).second) ready_.push(edge.node);
      }
      grads[i] = {};
    }
  }

  void to_leaf(TensorImpl* leaf, const Tensor& gradient) {
    if (gradient.defined()) add(leaf_sums_[leaf], gradient);
  }

  // A leaf whose last gradient of this pass arrived: hooks, then into grad(), then the accumulated hooks.
  void finish_leaf(TensorImpl* leaf) {
    const auto found = leaf_sums_.find(leaf);
    if (found == leaf_sums_.end()) return;
    Tensor sum = std::move(found->second);
    leaf_sums_.erase(found);
    AutogradMeta& meta = meta_of(leaf);
    sum = run_hooks(meta.hooks, sum);
    const NoGrad no_grad;
    WEFT_CHECK(Shape(sum.sizes()) == Tensor(Ref<TensorImpl>(leaf)).sizes(), "backward: gradient ", sum,
               " does not fit its leaf ", Tensor(Ref<TensorImpl>(leaf)));
    if (!meta.grad.defined()) {
      // Whoever shares this tensor or its storage (a view, another leaf) must not see later accumulation.
      const bool alone = sum.impl()->owners() == 1 && sum.storage()->owners() == 1 && sum.is_contiguous() && sum.dtype() == leaf->view.dtype;
      meta.grad = alone ? sum.detach() : sum.detach().to(leaf->view.dtype).clone();
    } else if (meta.grad_is_zero) {
      meta.grad_is_zero = false;
      meta.grad.copy_(sum);
    } else {
      meta.grad.add_(sum.to(meta.grad.dtype()));
    }
    if (!meta.accumulated_hooks.empty()) {
      const Tensor tensor{Ref<TensorImpl>(leaf)};
      for (const auto& hook : meta.accumulated_hooks) hook(tensor);
    }
  }

  void finish_leaves() {
    while (!leaf_sums_.empty()) finish_leaf(leaf_sums_.begin()->first);
  }

  bool retain_graph_;
  std::unordered_set<Node*> seen_, queued_;
  std::unordered_map<Node*, int> uses_;
  std::unordered_map<Node*, Tensor> arrived_;
  std::unordered_map<TensorImpl*, Tensor> leaf_sums_;
  std::unordered_map<TensorImpl*, int> leaf_uses_;
  std::priority_queue<Ref<Node>, std::vector<Ref<Node>>, Later> ready_;
};

}  // namespace

bool grad_enabled() { return recording; }
NoGrad::NoGrad(bool enabled) : previous_(recording) { recording = enabled; }
NoGrad::~NoGrad() { recording = previous_; }

Saved::Saved(const Tensor& tensor)
    : tensor_(tensor.defined() ? tensor.detach() : Tensor()), version_(tensor.defined() ? tensor.storage()->version() : 0) {}

const Tensor& Saved::get() const {
  WEFT_CHECK(!tensor_.defined() || tensor_.storage()->version() == version_, current_op(), ": backward needs ", tensor_,
             ", which was changed in place after the forward (version ", version_, ", now ",
             tensor_.defined() ? tensor_.storage()->version() : 0, "). Use the op that returns a new tensor");
  return tensor_;
}

// A long chain of nodes must not be freed by recursion: take the links apart one by one.
Node::~Node() {
  thread_local std::vector<Edge>* pending = nullptr;
  if (pending) {
    for (Edge& edge : inputs) pending->push_back(std::move(edge));
    return;
  }
  std::vector<Edge> queue;
  pending = &queue;
  for (Edge& edge : inputs) queue.push_back(std::move(edge));
  while (!queue.empty()) {
    const Edge edge = std::move(queue.back());
    queue.pop_back();
  }
  pending = nullptr;
}

namespace autograd_detail {
namespace {
template <class Inputs>
bool any(const Inputs& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const Tensor& t) { return t.defined() && t.requires_grad(); });
}
}  // namespace

bool any_requires_grad(std::initializer_list<Tensor> inputs) { return any(inputs); }
bool any_requires_grad(const std::vector<Tensor>& inputs) { return any(inputs); }

void connect(const Tensor& y, Ref<Node> node, const char* op, const Tensor* inputs, size_t count) {
  node->op = op;
  node->sequence = ++next_sequence;
  node->sizes = y.sizes();
  node->dtype = y.dtype();
  node->device = y.device();
  node->inputs.reserve(count);
  for (size_t i = 0; i < count; ++i) node->inputs.push_back(edge_to(inputs[i]));
  AutogradMeta& meta = meta_of(y.impl());
  meta.node = std::move(node);
  meta.requires_grad = true;
}

}  // namespace autograd_detail

bool Tensor::requires_grad() const { return impl_ && impl_->autograd && impl_->autograd->requires_grad; }

bool Tensor::is_leaf() const { return !impl_->autograd || !impl_->autograd->node; }

const Tensor& Tensor::requires_grad_(bool wanted) const {
  WEFT_CHECK(!wanted || is_floating(), "requires_grad_: only floating tensors have gradients, got ", *this);
  WEFT_CHECK(is_leaf(), "requires_grad_: ", *this, " is the result of ",
             impl_->autograd ? impl_->autograd->node->op : "", ", not a leaf. Use detach() first");
  meta_of(impl_.get()).requires_grad = wanted;
  return *this;
}

Tensor Tensor::grad() const {
  if (!impl_->autograd) return {};
  AutogradMeta& meta = *impl_->autograd;
  if (meta.grad_is_zero) {
    meta.grad_is_zero = false;
    meta.grad.zero_();
  }
  return meta.grad;
}

void Tensor::zero_grad() const {
  if (impl_->autograd && impl_->autograd->grad.defined()) impl_->autograd->grad_is_zero = true;
}

void Tensor::set_grad(Tensor gradient) const {
  WEFT_CHECK(!gradient.defined() || gradient.sizes() == sizes(), "set_grad: expected ", sizes(), ", got ", gradient);
  AutogradMeta& meta = meta_of(impl_.get());
  meta.grad_is_zero = false;
  meta.grad = std::move(gradient);
}

Tensor Tensor::detach() const { return alias(impl_->view); }

void Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  WEFT_CHECK(requires_grad(), "register_hook: ", *this, " needs no gradient");
  AutogradMeta& meta = meta_of(impl_.get());
  (meta.node ? meta.node->hooks : meta.hooks).push_back(std::move(hook));
}

void Tensor::register_accumulated_hook(std::function<void(const Tensor&)> hook) const {
  WEFT_CHECK(requires_grad() && is_leaf(), "register_accumulated_hook: ", *this, " is not a leaf that needs a gradient");
  meta_of(impl_.get()).accumulated_hooks.push_back(std::move(hook));
}

void Tensor::backward(const Tensor& gradient, bool retain_graph) const { weft::backward({*this}, {gradient}, retain_graph); }

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients, bool retain_graph) {
  WEFT_CHECK(outputs.size() == gradients.size(), "backward: ", outputs.size(), " outputs, ", gradients.size(), " gradients");
  std::vector<Tensor> starts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    WEFT_CHECK(y.defined() && y.requires_grad(), "backward: ", y, " depends on no tensor that needs a gradient");
    WEFT_CHECK(gradients[i].defined() || y.numel() == 1, "backward: ", y,
               " has more than one element: pass a gradient, or sum it first");
    WEFT_CHECK(!gradients[i].defined() || gradients[i].sizes() == y.sizes(), "backward: expected a gradient of ", y,
               ", got ", gradients[i]);
    starts.push_back(gradients[i].defined() ? gradients[i] : Tensor::ones(y.sizes(), y.dtype(), y.device()));
  }
  const NoGrad no_grad;
  Engine(retain_graph).run(outputs, starts);
}

Tensor reduce_to(const Tensor& gradient, const Shape& sizes) {
  if (gradient.sizes() == sizes) return gradient;
  const int extra = gradient.dim() - sizes.rank();
  std::vector<int64_t> stretched;
  for (int d = 0; d < gradient.dim(); ++d)
    if (d < extra || (sizes[d - extra] == 1 && gradient.size(d) != 1)) stretched.push_back(d);
  return sum(gradient, stretched, /*keep_dims=*/true).reshape(sizes);
}

Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& function, const std::vector<Tensor>& inputs) {
  WEFT_CHECK(!inputs.empty() && inputs[0].defined(), "checkpoint: expected at least one input tensor");
  const Device device = inputs[0].device();
  const Generator before = generator(device);
  Tensor y;
  {
    const NoGrad no_grad;
    y = function(inputs);
  }
  if (!grad_enabled()) return y;
  std::vector<Saved> saved(inputs.begin(), inputs.end());
  std::vector<bool> wanted;
  for (const Tensor& input : inputs) wanted.push_back(input.defined() && input.requires_grad());
  // Parameters inside `function` get their gradients from the inner backward, so the node is recorded even when no
  // input wants a gradient: a stand-in leaf makes it reachable.
  std::vector<Tensor> edges = inputs;
  edges.push_back(Tensor::zeros({1}, y.dtype(), device).requires_grad_());
  return differentiable(y.detach(), "checkpoint", edges, [=](const Tensor& dy) {
    const Generator after = std::exchange(generator(device), before);
    std::vector<Tensor> again;
    for (size_t i = 0; i < saved.size(); ++i) {
      Tensor input = saved[i].get();
      if (input.defined()) input = input.detach();
      if (wanted[i]) input.requires_grad_();
      again.push_back(input);
    }
    Tensor result;
    {
      const NoGrad with_grad(true);
      result = function(again);
    }
    generator(device) = after;
    result.backward(dy);
    Grads grads;
    for (size_t i = 0; i < again.size(); ++i) grads.push_back(wanted[i] ? again[i].grad() : Tensor());
    grads.emplace_back();
    return grads;
  });
}

}  // namespace weft
