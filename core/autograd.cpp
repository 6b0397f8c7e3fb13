// SPDX-License-Identifier: Apache-2.0
#include "core/autograd.h"

#include <algorithm>
#include <utility>

#include "core/autograd_meta.h"
#include "core/backward_context.h"
#include "core/capture.h"
#include "core/ops/reduce.h"
#include "core/trace.h"

namespace weft {
namespace {

thread_local bool recording = true;
thread_local uint64_t next_sequence = 0;
thread_local Node* recorded_backward = nullptr;

/// The edge that a gradient for `input` takes; empty when the input wants none.
Node::Edge edge_to(const Tensor& input) {
  if (!input.defined() || !input.requires_grad()) return {{}, {}, input.impl()};
  const Ref<Node>& node = input.impl()->autograd->node;
  if (node) return {node, {}, input.impl()};
  return {{}, Ref<TensorImpl>(input.impl()), input.impl()};
}

}  // namespace

bool grad_enabled() { return recording; }
NoGrad::NoGrad(bool enabled) : previous_(recording) { recording = enabled; }
NoGrad::~NoGrad() { recording = previous_; }

RecordedBackward::RecordedBackward(Node* node) : outer_(std::exchange(recorded_backward, node)) {}
RecordedBackward::~RecordedBackward() { recorded_backward = outer_; }

uint64_t latest_sequence() { return next_sequence; }

Tensor with_history_of(const Tensor& x, const Tensor& value) {
  return differentiable(value.alias(value.view()), current_op(), {x}, [](const Tensor& dy) { return Grads{dy}; });
}

Saved::Saved(const Tensor& tensor, const Tensor& of) : of_(of.impl()) {
  if (!tensor.defined()) return;
  storage_ = tensor.storage();
  view_ = tensor.view();
  offset_ = static_cast<char*>(view_.data) - static_cast<char*>(storage_->data());
  version_ = storage_->version();
}

Tensor Saved::get() const {
  if (!storage_) return {};
  Tensor value(make_ref<TensorImpl>(storage_, view()));
  return recorded_backward && is_floating(dtype()) ? with_history(std::move(value)) : value;
}

Tensor Saved::with_history(Tensor value) const {
  Node& node = *recorded_backward;
  Node::Edge from;
  if (node.output == of_) {
    from.node = Ref<Node>(&node);
  } else {
    const auto found = std::ranges::find(node.inputs, of_, &Node::Edge::input);
    WEFT_CHECK(found != node.inputs.end(), node.op, ": its gradient cannot be differentiated: it reads ", value,
               ", which is neither an input nor the result. Name it among the inputs, or leave out create_graph");
    from = *found;
  }
  return attached(std::move(value), from);
}

Tensor attached(Tensor value, const Node::Edge& from) {
  if (!from) return value;
  const Shape sizes = value.sizes();
  if (from.leaf) {
    const Tensor leaf(from.leaf);
    const bool same = leaf.raw_data() == value.raw_data() && leaf.sizes() == sizes;
    return same ? leaf : with_history_of(leaf, value.reshape(leaf.sizes())).reshape(sizes);
  }
  value = value.reshape(from.node->sizes);
  AutogradMeta& meta = meta_of(value.impl());
  meta.node = from.node;
  meta.requires_grad = true;
  return value.reshape(sizes);
}

const kernels::View& Saved::view() const {
  if (!storage_) return view_;
  WEFT_CHECK(storage_->version() == version_, current_op(), ": backward needs ", view_, " on ", device(),
             ", which was changed in place after the forward (version ", version_, ", now ", storage_->version(),
             "). Use the op that returns a new tensor");
  WEFT_CHECK(storage_->has_memory(), current_op(), ": backward needs ", view_, " on ", device(),
             ", whose memory has been given back. Parameters of a sharded unit must be gathered first");
  view_.data = static_cast<char*>(storage_->data()) + offset_;
  return view_;
}

Node::~Node() = default;

void Node::destroy() {
  thread_local std::vector<Node*>* pending = nullptr;
  if (pending) return pending->push_back(this);
  std::vector<Node*> list{this};
  pending = &list;
  while (!list.empty()) {
    Node* node = list.back();
    list.pop_back();
    delete node;
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
  node->output = y.impl();
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

bool Tensor::is_leaf() const { return !known().autograd || !impl_->autograd->node; }

const Tensor& Tensor::requires_grad_(bool wanted) const {
  WEFT_CHECK(!wanted || is_floating(), "requires_grad_: only floating tensors have gradients, got ", *this);
  WEFT_CHECK(is_leaf(), "requires_grad_: ", *this, " is the result of ",
             impl_->autograd ? impl_->autograd->node->op : "", ", not a leaf. Use detach() first");
  AutogradMeta& meta = meta_of(impl_.get());
  meta.requires_grad = wanted;
  meta.is_chosen = true;
  return *this;
}

Tensor Tensor::grad() const {
  if (!known().autograd) return {};
  AutogradMeta& meta = *impl_->autograd;
  if (!meta.is_claimed) meta.claim();  // else nothing is written: threads that share a model may all read its gradients
  if (meta.grad_is_zero) {
    meta.grad_is_zero = false;
    meta.grad.zero_();
    meta.none_writes = meta.grad.storage()->own_writes();
  }
  return meta.grad;
}

bool Tensor::has_gradient() const {
  const AutogradMeta* const meta = known().autograd.get();
  return meta && meta->grad.defined() &&
         !(meta->grad_is_none && meta->none_writes == meta->grad.storage()->own_writes());
}

void Tensor::zero_grad() const {
  if (!known().autograd) return;
  impl_->autograd->claim();
  AutogradMeta& meta = *impl_->autograd;
  WEFT_CHECK(!meta.is_sharded, "zero_grad: ", *this,
             " is sharded by FSDP, and so is its gradient. Call the optimizer's zero_grad()");
  if (!meta.grad.defined() || meta.grad_is_zero) return;
  meta.drop_history();
  Storage& memory = *meta.grad.storage();
  // Another owner holds the gradient, which keeps its values. A graph repeats addresses, so there the holder sees what
  // comes.
  if ((meta.grad.impl()->owners() > 1 || memory.owners() > 1) && !is_capturing(meta.grad.device())) {
    const Ref<Storage> whole = memory.whole();
    if (!whole) return meta.set_none(empty_like(meta.grad));
    if (!memory.can_move()) return meta.set_none(meta.grad);  // another library has the address
    const kernels::View view = meta.grad.view();
    const auto place = make_ref<Storage>(whole, memory.offset(), memory.bytes());
    memory.move_out();
    return meta.set_none(Tensor(make_ref<TensorImpl>(place, view)));
  }
  meta.set_none(meta.grad);
}

void Tensor::set_grad(Tensor gradient) const {
  WEFT_CHECK(!gradient.defined() || gradient.sizes() == sizes(), "set_grad: expected ", sizes(), ", got ", gradient);
  WEFT_CHECK(!gradient.defined() || (gradient.dtype() == dtype() && gradient.device() == device()),
             "set_grad: expected a gradient of the dtype and on the device of ", *this, ", got ", gradient,
             ". Convert it with to()");
  AutogradMeta& meta = meta_of(&known());
  meta.claim();
  meta.grad_is_zero = meta.grad_is_none = false;
  meta.grad = std::move(gradient);
}

Tensor Tensor::detach() const { return alias(known().view); }

void Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  WEFT_CHECK(requires_grad(), "register_hook: ", *this, " needs no gradient");
  WEFT_CHECK(hook, "register_hook: expected a function of the gradient, got none");
  AutogradMeta& meta = meta_of(impl_.get());
  meta.claim();
  (meta.node ? meta.node->hooks : meta.hooks).push_back(std::move(hook));
}

void Tensor::register_accumulated_hook(std::function<void(const Tensor&)> hook) const {
  WEFT_CHECK(requires_grad() && is_leaf(), "register_accumulated_hook: ", *this,
             " is not a leaf that needs a gradient");
  WEFT_CHECK(hook, "register_accumulated_hook: expected a function of the leaf, got none");
  AutogradMeta& meta = meta_of(impl_.get());
  meta.claim();
  meta.accumulated_hooks.push_back(std::move(hook));
}

void Tensor::backward(const Tensor& gradient, bool retain_graph) const {
  weft::backward({*this}, {gradient}, retain_graph);
}

void Tensor::backward(const Tensor& gradient, const BackwardOptions& options) const {
  weft::backward({*this}, {gradient}, options);
}

Tensor reduce_to(const Tensor& gradient, const Shape& sizes) {
  if (gradient.sizes() == sizes) return gradient;
  const int extra = gradient.dim() - sizes.rank();
  std::vector<int64_t> stretched;
  for (int d = 0; d < gradient.dim(); ++d)
    if (d < extra || (sizes[d - extra] == 1 && gradient.size(d) != 1)) stretched.push_back(d);
  return sum(gradient, stretched, /*keep_dims=*/true).reshape(sizes);
}

}  // namespace weft
