// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/flat_buffers.h"

#include <map>
#include <unordered_set>

#include "core/autograd.h"
#include "core/trace.h"
#include "nn/linear.h"

namespace weft::dist {
namespace {

constexpr int64_t kAlignment = 32;  // elements, as in core/flat_parameters.h

int64_t room_of(const Tensor& buffer) { return (buffer.numel() + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

FlatBuffers::FlatBuffers(nn::Module& model) {
  const OpScope scope("flat_buffers");
  const NoGrad no_grad;
  std::unordered_set<const TensorImpl*> recorded;
  for (const auto& [path, module] : model.modules())
    if (const auto* const linear = dynamic_cast<const nn::Linear*>(module); linear && linear->fp8)
      recorded.insert(linear->fp8->latest.impl());
  const std::vector<NamedTensor> buffers = model.buffers();
  using Kind = std::pair<bool, DType>;  // whether it is recorded
  const auto kind_of = [&](const Tensor& buffer) { return Kind{recorded.contains(buffer.impl()), buffer.dtype()}; };
  std::map<Kind, int64_t> numel;
  for (const NamedTensor& entry : buffers) numel[kind_of(entry.tensor)] += room_of(entry.tensor);
  for (const auto& [kind, count] : numel) {
    const auto [is_recorded, dtype] = kind;
    const Tensor memory = Tensor::zeros({count}, dtype, model.device());
    char* place = static_cast<char*>(memory.raw_data());
    for (const auto& [name, buffer] : buffers) {
      if (kind_of(buffer) != kind || buffer.numel() == 0) continue;
      const Tensor slice = Tensor::wrap(place, buffer.sizes(), dtype, memory.device(), [memory] {});
      slice.copy_(buffer);
      buffer.set_data(slice);
      slices_.push_back({name, buffer, place});
      place += static_cast<size_t>(room_of(buffer)) * size_of(dtype);
    }
    if (is_recorded)
      magnitudes_ = memory;
    else
      memory_.push_back(memory);
  }
}

std::vector<WorkPtr> FlatBuffers::broadcast(ProcessGroup& group, int root) const {
  std::vector<WorkPtr> works;
  for (const Tensor& memory : memory_) works.push_back(group.broadcast(memory, root, {.name = "buffers", .scale = {}}));
  return works;
}

void FlatBuffers::finish(ProcessGroup& group) const {
  if (magnitudes_.defined())
    group.all_reduce(magnitudes_, ReduceOp::max, {.name = "fp8 magnitudes", .scale = {}, .at_once = true})->wait();
  for (const Slice& slice : slices_) slice.buffer.storage()->bump_version();
}

void FlatBuffers::check_bound(const char* who) const {
  for (const Slice& slice : slices_)
    WEFT_CHECK(slice.buffer.raw_data() == slice.data, who, ": buffer '", slice.name, "' ", slice.buffer,
               " has left its place. Move or convert the model before ", who, " is made");
}

}  // namespace weft::dist
