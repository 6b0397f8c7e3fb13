// SPDX-License-Identifier: Apache-2.0
#include "core/flat_parameters.h"

#include <unordered_set>

#include "core/autograd.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/reduce.h"
#include "core/trace.h"
#include "kernels/copy.h"
#include "kernels/optimizer.h"

namespace weft {
namespace {

AutogradMeta& meta_of(const Tensor& parameter) { return *parameter.impl()->autograd; }

void check(const std::vector<NamedTensor>& parameters) {
  WEFT_CHECK(!parameters.empty(), "flat_parameters: expected at least one parameter, got none");
  std::unordered_set<const TensorImpl*> seen;
  const NamedTensor& first = parameters.front();
  for (const auto& [name, tensor] : parameters) {
    WEFT_CHECK(tensor.defined(), "flat_parameters: '", name, "' is undefined");
    WEFT_CHECK(tensor.is_leaf(), "flat_parameters: '", name, "' ", tensor, " is the result of an op, not a parameter");
    WEFT_CHECK(tensor.dtype() == DType::f32 || tensor.dtype() == DType::f64, "flat_parameters: '", name,
               "' expected f32 or f64, got ", tensor, ". Weights stay f32; use Autocast for bf16");
    WEFT_CHECK(tensor.dtype() == first.tensor.dtype() && tensor.device() == first.tensor.device(),
               "flat_parameters: one dtype and one device, got '", first.name, "' ", first.tensor, " and '", name, "' ",
               tensor);
    WEFT_CHECK(seen.insert(tensor.impl()).second, "flat_parameters: '", name, "' is given twice");
  }
}

}  // namespace

std::shared_ptr<FlatParameters> FlatParameters::of(const std::vector<NamedTensor>& parameters) {
  check(parameters);
  std::shared_ptr<FlatParameters> shared;
  for (const auto& [name, tensor] : parameters) {
    const std::shared_ptr<FlatParameters> flat =
        tensor.impl()->autograd ? tensor.impl()->autograd->flat.lock() : nullptr;
    if (!flat || (shared && flat != shared)) {
      std::vector<FlatSlice> slices;
      int64_t end = 0;
      for (const auto& [own_name, own] : parameters) {
        slices.push_back({own_name, own, end, own.numel()});
        end += (own.numel() + kAlignment - 1) / kAlignment * kAlignment;
      }
      return of(std::move(slices), end);
    }
    shared = flat;
  }
  shared->check_bound("flat_parameters");
  return shared;
}

std::shared_ptr<FlatParameters> FlatParameters::of(std::vector<FlatSlice> slices, int64_t numel) {
  std::vector<NamedTensor> parameters;
  int64_t end = 0;
  for (const FlatSlice& slice : slices) {
    WEFT_CHECK(slice.numel == slice.parameter.numel() && slice.offset % kAlignment == 0 && slice.offset >= end &&
                   slice.offset + slice.numel <= numel,
               "flat_parameters: '", slice.name, "' ", slice.parameter, " does not fit at ", slice.offset, " of ",
               numel, " elements, where ", end, " are taken");
    end = slice.offset + slice.numel;
    parameters.push_back({slice.name, slice.parameter});
  }
  check(parameters);
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
  for (const FlatSlice& slice : slices_) {
    const Tensor& parameter = slice.parameter;
    const Tensor weights = place(master_, slice);
    weights.copy_(parameter.detach());
    const Tensor old_gradient = parameter.grad();
    parameter.set_data(weights);
    const Tensor gradient = place(gradient_, slice);
    if (old_gradient.defined()) gradient.copy_(old_gradient);
    parameter.set_grad(gradient);
    meta_of(parameter).grad_is_zero = !old_gradient.defined();
    meta_of(parameter).compute_copy = {};
  }
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
  for (const FlatSlice& slice : slices_) meta_of(slice.parameter).compute_version = master_.storage()->version();
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

void FlatParameters::check_bound(const char* op) const {
  for (const FlatSlice& slice : slices_) {
    const Tensor& parameter = slice.parameter;
    WEFT_CHECK(parameter.storage().get() == master_.storage().get(), op, ": parameter '", slice.name, "' ", parameter,
               " has left its flat buffer on ", master_.device(),
               ". Move or convert the model before the optimizer is made");
    const Tensor gradient = meta_of(parameter).grad;
    WEFT_CHECK(gradient.defined() && gradient.storage().get() == gradient_.storage().get(), op,
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
  if (!division_.gather) return own_norm(parameters);
  std::vector<NamedTensor> whole, divided;
  for (const NamedTensor& parameter : parameters) {
    if (division_.is_elsewhere && division_.is_elsewhere(parameter.tensor)) continue;
    (division_.is_divided(parameter.tensor) ? divided : whole).push_back(parameter);
  }
  Tensor norms = division_.gather(own_norm(divided), "gradient norm").flatten();
  if (!whole.empty()) norms = concat({own_norm(whole), norms}, 0);
  const Tensor all = norms.numel() == 1 ? norms : norm(norms).reshape({1});
  return division_.gather_stages ? norm(division_.gather_stages(all, "gradient norm of a stage")).reshape({1}) : all;
}

void FlatParameters::set_division(Division division) {
  division_ = std::move(division);
  std::vector<float> divided;
  for (const FlatSlice& slice : slices_) divided.push_back(division_.is_divided(slice.parameter) ? 1 : 0);
  divided_ = ne(Tensor::from(divided, device()), 0.0);
}

Tensor FlatParameters::whole_sums(const Tensor& sums) const {
  if (!division_.gather) return sums;
  const Tensor all = sum(division_.gather(sums.flatten(), "sums by parameter"), {0}).reshape(sums.sizes());
  return where(divided_, all, sums);
}

Tensor clip_grad_norm(const std::vector<NamedTensor>& parameters, double max_norm) {
  WEFT_CHECK(max_norm > 0, "clip_grad_norm: expected a positive norm, got ", max_norm);
  std::vector<NamedTensor> trained;
  for (const NamedTensor& parameter : parameters)
    if (parameter.tensor.requires_grad()) trained.push_back(parameter);
  WEFT_CHECK(!trained.empty(), "clip_grad_norm: none of ", parameters.size(), " parameters requires a gradient");
  const std::shared_ptr<FlatParameters> flat = FlatParameters::of(trained);
  flat->check_bound("clip_grad_norm");
  const NoGrad no_grad;
  const Tensor total = flat->whole_norm(trained).reshape({});
  const Tensor& gradient = flat->gradient();
  for (const FlatRange& range : flat->ranges(trained))
    kernels::clip_gradient(gradient.queue(), gradient.slice(0, range.offset, range.numel), total, max_norm);
  gradient.storage()->bump_version();
  return total;
}

}  // namespace weft
