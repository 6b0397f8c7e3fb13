// SPDX-License-Identifier: Apache-2.0
#include "optim/by_parameter.h"

#include <algorithm>
#include <unordered_map>

#include "kernels/optimizer.h"

namespace weft::optim {
namespace {

Tensor table(const std::vector<int64_t>& rows, Device device) {
  return Tensor::from(rows, {static_cast<int64_t>(rows.size()) / 3, 3}, device);
}

}  // namespace

ByParameter::ByParameter(const char* name, const std::vector<ParameterGroup>& groups, double lr, double weight_decay,
                         std::vector<std::string> states, bool always_adapt)
    : Optimizer(name, groups, lr, weight_decay, std::move(states)), always_adapt_(always_adapt) {
  std::unordered_map<const TensorImpl*, size_t> group_of;
  for (int group = 0; group < this->groups(); ++group)
    for (const NamedTensor& parameter : parameters(group))
      group_of[parameter.tensor.impl()] = static_cast<size_t>(group);
  std::vector<int64_t> all, firsts{0};
  std::vector<std::vector<int64_t>> of_group(static_cast<size_t>(this->groups()));
  int64_t number = 0;
  for (const FlatSlice& slice : flat()->slices()) {
    const auto found = group_of.find(slice.parameter.impl());
    const int64_t end = slice.offset + slice.numel;
    for (int64_t begin = slice.offset; found != group_of.end() && begin < end; begin += kernels::kChunkElements)
      for (std::vector<int64_t>* rows : {&all, &of_group[found->second]})
        rows->insert(rows->end(), {begin, std::min(end, begin + kernels::kChunkElements), number});
    firsts.push_back(static_cast<int64_t>(all.size()) / 3);
    ++number;
  }
  const Device device = flat()->device();
  all_chunks_ = table(all, device);
  firsts_ = Tensor::from(firsts, device);
  for (const std::vector<int64_t>& rows : of_group) chunks_.push_back(table(rows, device));
}

Tensor ByParameter::squares(const std::vector<Tensor>& buffers) const {
  bool any = false;
  for (int group = 0; group < groups(); ++group) any |= adapts(group);
  if (!any) return {};
  const Tensor sums =
      Tensor::empty({static_cast<int64_t>(buffers.size()), firsts_.numel() - 1}, flat()->dtype(), flat()->device());
  const Tensor partial = Tensor::empty({all_chunks_.size(0)}, flat()->dtype(), flat()->device());
  for (size_t i = 0; i < buffers.size(); ++i)
    kernels::parameter_squares(sums.queue(), sums.select(0, static_cast<int64_t>(i)), partial, buffers[i], all_chunks_,
                               firsts_);
  return flat()->whole_sums(sums);
}

}  // namespace weft::optim
