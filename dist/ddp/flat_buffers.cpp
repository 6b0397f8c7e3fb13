// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/flat_buffers.h"

#include <map>

#include "core/autograd.h"
#include "core/trace.h"

namespace weft::dist {
namespace {

constexpr int64_t kAlignment = 32;  // elements, as in core/flat_parameters.h

int64_t room_of(const Tensor& buffer) { return (buffer.numel() + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

FlatBuffers::FlatBuffers(nn::Module& model) {
  const OpScope scope("flat_buffers");
  const NoGrad no_grad;
  const std::vector<NamedTensor> buffers = model.buffers();
  std::map<DType, int64_t> numel;
  for (const NamedTensor& entry : buffers) numel[entry.tensor.dtype()] += room_of(entry.tensor);
  for (const auto& [dtype, count] : numel) {
    const Tensor memory = Tensor::zeros({count}, dtype, model.device());
    char* place = static_cast<char*>(memory.raw_data());
    for (const auto& [name, buffer] : buffers) {
      if (buffer.dtype() != dtype || buffer.numel() == 0) continue;
      const Tensor slice = Tensor::wrap(place, buffer.sizes(), dtype, memory.device(), [memory] {});
      slice.copy_(buffer);
      buffer.set_data(slice);
      slices_.push_back({name, buffer, place});
      place += static_cast<size_t>(room_of(buffer)) * size_of(dtype);
    }
    memory_.push_back(memory);
  }
}

std::vector<WorkPtr> FlatBuffers::broadcast(ProcessGroup& group, int root) const {
  std::vector<WorkPtr> works;
  for (const Tensor& memory : memory_) works.push_back(group.broadcast(memory, root, {.name = "buffers", .scale = {}}));
  return works;
}

void FlatBuffers::bump_versions() const {
  for (const Slice& slice : slices_) slice.buffer.storage()->bump_version();
}

void FlatBuffers::check_bound(const char* who) const {
  for (const Slice& slice : slices_)
    WEFT_CHECK(slice.buffer.raw_data() == slice.data, who, ": buffer '", slice.name, "' ", slice.buffer,
               " has left its place. Move or convert the model before ", who, " is made");
}

}  // namespace weft::dist
