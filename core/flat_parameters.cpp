// SPDX-License-Identifier: Apache-2.0
#include "core/flat_parameters.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "core/autograd_meta.h"
#include "core/capture.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/reduce.h"
#include "core/trace.h"
#include "kernels/contracts/copy.h"
#include "kernels/contracts/optimizer.h"

namespace weft {
namespace {

AutogradMeta& meta_of(const Tensor& parameter) { return weft::meta_of(parameter.impl()); }

/// The slice's place in `buffer`, which holds the values of `tensor`: `tensor` itself, whose storage moves there with
/// all that share it, or else a new tensor.
Tensor moved(const Tensor& tensor, const Tensor& buffer, const FlatSlice& slice, const char* what) {
  const Ref<Storage> own = tensor.storage();
  const size_t offset = static_cast<size_t>(slice.offset) * size_of(buffer.dtype()), bytes = tensor.nbytes();
  const auto cannot = [&](const char* why) {
    fail("flat_parameters: ", what, " '", slice.name, "' ", tensor, " cannot move into flat memory: ", why,
         ". Give it a clone() of its own");
  };
  const bool has_values = tensor.numel() > 0;
  if (has_values && !own->can_move()) cannot("another library holds its memory (Tensor::wrap, DLPack)");
  if (has_values && own->memory() == buffer.storage().get()) cannot("another parameter has the same memory");
  if (own->can_move() && own->bytes() == bytes && tensor.is_contiguous() && tensor.raw_data() == own->data()) {
    own->move_into(buffer.storage(), offset);
    return tensor;
  }
  if (has_values && own->owners() > 2) cannot("other tensors share its memory, of which it is a part");  // `own` is one
  const Ref<Storage> part = make_ref<Storage>(buffer.storage(), offset, bytes);
  return Tensor(make_ref<TensorImpl>(part, FlatParameters::place(buffer, slice).view()));
}

void check(const std::vector<NamedTensor>& parameters) {
  WEFT_CHECK(!parameters.empty(), "flat_parameters: expected at least one parameter, got none");
  std::unordered_set<const TensorImpl*> seen;
  const NamedTensor& first = parameters.front();
  for (const auto& [name, tensor] : parameters) {
    WEFT_CHECK(tensor.defined(), "flat_parameters: '", name, "' is undefined");
    WEFT_CHECK(tensor.is_leaf(), "flat_parameters: '", name, "' ", tensor, " is the result of an op, not a parameter");
    WEFT_CHECK(!tensor.impl()->autograd || !tensor.impl()->autograd->is_sharded, "flat_parameters: '", name, "' ",
               tensor, " is sharded by FSDP. Give the optimizer fsdp.parameters() instead of model->parameters()");
    WEFT_CHECK(tensor.dtype() == DType::f32 || tensor.dtype() == DType::f64, "flat_parameters: '", name,
               "' expected f32 or f64, got ", tensor, ". Weights stay f32; use Autocast for bf16");
    WEFT_CHECK(tensor.dtype() == first.tensor.dtype() && tensor.device() == first.tensor.device(),
               "flat_parameters: one dtype and one device, got '", first.name, "' ", first.tensor, " and '", name, "' ",
               tensor);
    WEFT_CHECK(seen.insert(tensor.impl()).second, "flat_parameters: '", name, "' is given twice");
  }
}

/// The parameters of slices that have their places, the first at element `end` or later.
std::vector<NamedTensor> fitting(const std::vector<FlatSlice>& slices, int64_t end, int64_t numel) {
  std::vector<NamedTensor> parameters;
  for (const FlatSlice& slice : slices) {
    WEFT_CHECK(slice.numel == slice.parameter.numel() && slice.offset % FlatParameters::kAlignment == 0 &&
                   slice.offset >= end && slice.offset + slice.numel <= numel,
               "flat_parameters: '", slice.name, "' ", slice.parameter, " does not fit at ", slice.offset, " of ",
               numel, " elements, where ", end, " are taken");
    end = slice.offset + slice.numel;
    parameters.push_back({slice.name, slice.parameter});
  }
  return parameters;
}

/// The parameters as slices from element `end` on; returns where they end.
int64_t append(std::vector<FlatSlice>& slices, const std::vector<NamedTensor>& parameters, int64_t end) {
  constexpr int64_t kAlignment = FlatParameters::kAlignment;
  for (const auto& [name, tensor] : parameters) {
    slices.push_back({name, tensor, end, tensor.numel()});
    end += (tensor.numel() + kAlignment - 1) / kAlignment * kAlignment;
  }
  return end;
}

}  // namespace

std::shared_ptr<FlatParameters> FlatParameters::of(const std::vector<NamedTensor>& parameters) {
  check(parameters);
  std::shared_ptr<FlatParameters> shared;
  std::vector<NamedTensor> others;
  bool several = false;
  for (const NamedTensor& parameter : parameters) {
    const AutogradMeta* const meta = parameter.tensor.impl()->autograd.get();
    const std::shared_ptr<FlatParameters> flat = meta ? meta->flat.lock() : nullptr;
    if (!flat) others.push_back(parameter);
    several |= flat && shared && flat != shared;
    if (flat) shared = flat;
  }
  if (shared && !several) {
    shared->check_bound("flat_parameters");
    if (!others.empty()) shared->add(others);
    return shared;
  }
  std::vector<FlatSlice> slices;
  const int64_t numel = append(slices, parameters, 0);
  return of(std::move(slices), numel);
}

std::shared_ptr<FlatParameters> FlatParameters::of(std::vector<FlatSlice> slices, int64_t numel) {
  check(fitting(slices, 0, numel));
  const auto flat = std::make_shared<FlatParameters>(std::move(slices), numel);
  for (const FlatSlice& slice : flat->slices_) meta_of(slice.parameter).flat = flat;
  return flat;
}

FlatParameters::FlatParameters(std::vector<FlatSlice> slices, int64_t numel) : slices_(std::move(slices)) {
  const OpScope scope("flat_parameters");
  const NoGrad no_grad;
  const Tensor first = slices_.front().parameter;
  master_ = Tensor::zeros({numel}, first.dtype(), first.device());
  gradient_ = Tensor::zeros({numel}, first.dtype(), first.device());
  for (const FlatSlice& slice : slices_) move_in(slice);
}

void FlatParameters::move_in(const FlatSlice& slice) {
  const Tensor& parameter = slice.parameter;
  AutogradMeta& meta = meta_of(parameter);
  place(master_, slice).copy_(parameter.detach());
  const Tensor weights = moved(parameter, master_, slice, "parameter");
  if (!weights.is_same(parameter)) parameter.set_data(weights);
  meta.compute_copy = {};
  if (!parameter.has_gradient()) {
    const Tensor own = place(gradient_, slice);
    const Ref<Storage> part = make_ref<Storage>(
        gradient_.storage(), static_cast<size_t>(slice.offset) * size_of(gradient_.dtype()), own.nbytes());
    meta.set_none(Tensor(make_ref<TensorImpl>(part, own.view())));
    return;
  }
  const Tensor old = meta.grad.dtype() == dtype() ? meta.grad : meta.grad.to(dtype());
  place(gradient_, slice).copy_(old);
  parameter.set_grad(moved(old, gradient_, slice, "the gradient of"));
}

void FlatParameters::lengthen(Tensor& buffer, int64_t numel, double value) {
  if (buffer.numel() >= numel) return;
  refuse_while_capturing("a parameter that joins the optimizer", buffer.device());
  WEFT_CHECK(buffer.storage()->can_move(),
             "flat_parameters: no parameter can join, since another library holds memory of ",
             "those that are there (DLPack)");
  const Tensor longer = Tensor::full({numel}, value, buffer.dtype(), buffer.device());
  longer.slice(0, 0, buffer.numel()).copy_(buffer);
  buffer.storage()->move_into(longer.storage(), 0);
  buffer = longer;
}

void FlatParameters::add(const std::vector<NamedTensor>& parameters) {
  WEFT_CHECK(divisions_.empty(), "flat_parameters: '", parameters.front().name, "' ", parameters.front().tensor,
             " cannot join parameters that are divided among ranks (FSDP, TensorParallel). Give it an optimizer of its "
             "own");
  std::vector<FlatSlice> more;
  const int64_t end = append(more, parameters, numel());
  add(more, end);
}

void FlatParameters::add(const std::vector<FlatSlice>& slices, int64_t numel) {
  const OpScope scope("flat_parameters");
  const NoGrad no_grad;
  const std::vector<NamedTensor> parameters = fitting(slices, this->numel(), numel);
  std::vector<NamedTensor> all;
  for (const FlatSlice& slice : slices_) all.push_back({slice.name, slice.parameter});
  all.insert(all.end(), parameters.begin(), parameters.end());
  check(all);
  const size_t first = slices_.size();
  slices_.insert(slices_.end(), slices.begin(), slices.end());
  lengthen(master_, numel);
  lengthen(gradient_, numel);
  for (size_t i = first; i < slices_.size(); ++i) {
    move_in(slices_[i]);
    meta_of(slices_[i].parameter).flat = weak_from_this();
  }
  mark_divided();
  for (const auto& function : on_add_) function();
  if (!compute_copy_.defined()) return;
  const DType low = compute_copy_.dtype();
  compute_copy_ = {};
  keep_compute_copy(low);
}

std::vector<FlatRange> FlatParameters::ranges(const std::vector<NamedTensor>& parameters) const {
  std::unordered_set<const TensorImpl*> wanted;
  for (const NamedTensor& parameter : parameters) wanted.insert(parameter.tensor.impl());
  std::vector<FlatRange> ranges;
  size_t found = 0;
  for (size_t i = 0; i < slices_.size(); ++i) {
    const FlatSlice& slice = slices_[i];
    if (!wanted.contains(slice.parameter.impl())) continue;
    ++found;
    const int64_t end = i + 1 < slices_.size() ? slices_[i + 1].offset : numel();
    if (end == slice.offset) continue;  // an empty slice takes no place
    if (!ranges.empty() && ranges.back().offset + ranges.back().numel == slice.offset)
      ranges.back().numel = end - ranges.back().offset;
    else
      ranges.push_back({slice.offset, end - slice.offset});
  }
  WEFT_CHECK(found == wanted.size(), "flat_parameters: ", wanted.size() - found, " of ", wanted.size(),
             " parameters are not in these flat buffers");
  return ranges;
}

const Tensor& FlatParameters::gradient() {
  for (const FlatSlice& slice : slices_) slice.parameter.grad();  // fills what still counts as zero
  return gradient_;
}

void FlatParameters::keep_compute_copy(DType dtype) {
  WEFT_CHECK(dtype == DType::bf16 || dtype == DType::f16, "keep_compute_copy: expected bf16 or f16, got ", dtype);
  WEFT_CHECK(master_.dtype() == DType::f32, "keep_compute_copy: the weights are ", master_.dtype(), ", expected f32");
  if (compute_copy_.defined() && compute_copy_.dtype() == dtype) return;
  compute_copy_ = Tensor::empty({numel()}, dtype, device());
  for (const FlatSlice& slice : slices_) meta_of(slice.parameter).compute_copy = place(compute_copy_, slice);
  weights_changed(/*copied=*/false);
}

void FlatParameters::weights_changed(bool copied) {
  master_.storage()->bump_version();
  if (!compute_copy_.defined()) return;
  if (!copied) kernels::copy(master_.queue(), compute_copy_, master_);
  compute_copy_.storage()->bump_version();
  for (const FlatSlice& slice : slices_)
    meta_of(slice.parameter).compute_version = slice.parameter.storage()->version();
}

Tensor FlatParameters::place(const Tensor& buffer, const FlatSlice& slice) {
  kernels::View view = buffer.view();
  view.data = static_cast<char*>(view.data) + static_cast<size_t>(slice.offset) * size_of(buffer.dtype());
  view.rank = slice.parameter.dim();
  int64_t stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    view.sizes[d] = slice.parameter.size(d);
    view.strides[d] = stride;
    stride *= std::max<int64_t>(view.sizes[d], 1);
  }
  return buffer.alias(view);
}

void FlatParameters::zero_grad() const {
  for (const FlatSlice& slice : slices_) slice.parameter.zero_grad();
}

void FlatParameters::check_whole(const char* op) const {
  for (const Division& division : divisions_)
    WEFT_CHECK(!division.of_slices, op, ": expected whole parameters, got '", slices_.front().name,
               "' and others of which each rank has a part, as FSDP shards them. Give them to an optimizer alone");
}

void FlatParameters::check_open(const char* op) const { WEFT_CHECK(closed_.empty(), op, ": ", closed_); }

void FlatParameters::check_bound(const char* op) const {
  for (const FlatSlice& slice : slices_) {
    const Tensor& parameter = slice.parameter;
    WEFT_CHECK(parameter.storage()->memory() == master_.storage().get(), op, ": parameter '", slice.name, "' ",
               parameter, " has left its flat buffer on ", master_.device(),
               ". Move or convert the model before the optimizer is made");
    const Tensor gradient = meta_of(parameter).grad;
    WEFT_CHECK(gradient.defined() && gradient.storage()->memory() == gradient_.storage().get(), op,
               ": the gradient of parameter '", slice.name,
               "' was replaced; it must stay in its flat buffer. Use zero_grad() instead of set_grad()");
  }
}

Tensor FlatParameters::own_norm(const std::vector<NamedTensor>& parameters) {
  const NoGrad no_grad;
  const Tensor& all = gradient();
  std::vector<Tensor> norms;
  for (const FlatRange& range : ranges(parameters))
    norms.push_back(norm(all.slice(0, range.offset, range.numel)).reshape({1}));
  if (norms.empty()) return Tensor::zeros({1}, dtype(), device());
  return norms.size() == 1 ? norms[0] : norm(concat(norms, 0)).reshape({1});
}

Tensor FlatParameters::whole_norm(const std::vector<NamedTensor>& parameters) {
  // Parameters that the same groups divide make one message for each of them, in the same order on all ranks.
  std::map<std::vector<bool>, std::vector<NamedTensor>> kinds;
  for (const NamedTensor& parameter : parameters) {
    if (stages_.is_elsewhere && stages_.is_elsewhere(parameter.tensor)) continue;
    std::vector<bool> by;
    for (const Division& division : divisions_) by.push_back(division.is_divided(parameter.tensor));
    kinds[by].push_back(parameter);
  }
  std::vector<Tensor> norms;
  for (const auto& [by, members] : kinds) {
    norms.push_back(own_norm(members));
    for (size_t i = 0; i < by.size(); ++i)
      if (by[i]) norms.back() = divisions_[i].gather(norms.back(), "gradient norm").flatten();
  }
  const Tensor all = norms.empty() ? own_norm({}) : norms.size() == 1 ? norms[0] : concat(norms, 0);
  const Tensor own = all.numel() == 1 ? all : norm(all).reshape({1});
  return stages_.gather ? norm(stages_.gather(own, "gradient norm of a stage")).reshape({1}) : own;
}

void FlatParameters::on_add(std::function<void()> function) { on_add_.push_back(std::move(function)); }
void FlatParameters::set_stages(Stages stages) { stages_ = std::move(stages); }

void FlatParameters::divide(Division division) {
  divisions_.push_back(std::move(division));
  mark_divided();
}

void FlatParameters::undivide() {
  divisions_.clear();
  divided_.clear();
  stages_ = {};
}

std::vector<int> FlatParameters::others() const {
  std::vector<int> ranks = stages_.others;
  for (const Division& division : divisions_) ranks.insert(ranks.end(), division.others.begin(), division.others.end());
  return ranks;
}

void FlatParameters::mark_divided() {
  divided_.clear();
  for (const Division& division : divisions_) {
    std::vector<float> divided;
    for (const FlatSlice& slice : slices_) divided.push_back(division.is_divided(slice.parameter) ? 1 : 0);
    divided_.push_back(ne(Tensor::from(divided, device()), 0.0));
  }
}

bool FlatParameters::is_divided(const Tensor& parameter) const {
  return std::ranges::any_of(divisions_, [&](const Division& division) { return division.is_divided(parameter); });
}

Tensor FlatParameters::whole_sums(const Tensor& sums) const {
  Tensor whole = sums;
  for (size_t i = 0; i < divisions_.size(); ++i) {
    const Tensor all = divisions_[i].gather(whole.flatten(), "sums by parameter");
    whole = where(divided_[i], sum(all, {0}).reshape(sums.sizes()), whole);
  }
  return whole;
}

Tensor clip_grad_norm(const std::vector<NamedTensor>& parameters, double max_norm) {
  WEFT_CHECK(max_norm > 0, "clip_grad_norm: expected a positive norm, got ", max_norm);
  // Grouped by flat buffer; parameters without a buffer come first.
  std::vector<std::pair<std::shared_ptr<FlatParameters>, std::vector<NamedTensor>>> parts{{}};
  std::unordered_set<const TensorImpl*> seen;
  for (const NamedTensor& parameter : parameters) {
    const Tensor& tensor = parameter.tensor;
    WEFT_CHECK(!tensor.impl()->autograd || !tensor.impl()->autograd->is_sharded, "clip_grad_norm: '", parameter.name,
               "' ", tensor, " is sharded by FSDP. Give fsdp.parameters() instead of model->parameters()");
    if (!(tensor.requires_grad() || tensor.has_gradient()) || !seen.insert(tensor.impl()).second) continue;
    const std::shared_ptr<FlatParameters> flat = tensor.impl()->autograd->flat.lock();
    auto part = std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return p.first == flat; });
    if (part == parts.end()) part = parts.insert(part, {flat, {}});
    part->second.push_back(parameter);
  }
  WEFT_CHECK(!seen.empty(), "clip_grad_norm: none of ", parameters.size(), " parameters requires a gradient");
  const NoGrad no_grad;
  std::vector<Tensor> gradients, norms;
  for (const NamedTensor& parameter : parts.front().second)
    if (parameter.tensor.has_gradient()) gradients.push_back(parameter.tensor.grad());
  for (const Tensor& gradient : gradients) norms.push_back(norm(gradient).reshape({1}));
  for (auto part = parts.begin() + 1; part != parts.end(); ++part) {
    const auto& [flat, members] = *part;
    flat->check_bound("clip_grad_norm");
    flat->check_open("clip_grad_norm");
    norms.push_back(flat->whole_norm(members));
    const Tensor& all = flat->gradient();
    for (const FlatRange& range : flat->ranges(members)) gradients.push_back(all.slice(0, range.offset, range.numel));
  }
  const Tensor& first = parameters.front().tensor;
  if (norms.empty()) return Tensor::zeros({}, first.dtype(), first.device());
  for (Tensor& each : norms) each = each.to(norms[0].dtype()).to(norms[0].device());
  const Tensor total = (norms.size() == 1 ? norms[0] : norm(concat(norms, 0))).reshape({});
  for (const Tensor& gradient : gradients) {
    const Tensor dense = gradient.contiguous();
    kernels::clip_gradient(dense.queue(), dense.reshape({dense.numel()}), total.to(dense.dtype()).to(dense.device()),
                           max_norm);
    if (!dense.is_same(gradient))
      gradient.copy_(dense);
    else
      gradient.storage()->bump_version();
  }
  return total;
}

}  // namespace weft
