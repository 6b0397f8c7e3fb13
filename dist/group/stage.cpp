// SPDX-License-Identifier: Apache-2.0
#include "dist/group/stage.h"

#include <algorithm>

#include "dist/group/host_math.h"
#include "kernels/runtime/transfer.h"

namespace weft::dist {
namespace {

Staging& staging_of(Device device, std::list<Staging>& stagings) {
  const auto found = std::ranges::find(stagings, device, &Staging::device);
  return found != stagings.end() ? *found : stagings.emplace_back(device);
}

// Whether this rank provides values, if input and output are one tensor. (In a broadcast those of all but the root are
// overwritten.)
bool reads_output(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::send || kind == CollectiveKind::broadcast ||
         kind == CollectiveKind::reduce;
}

double factor_at(const void* memory, DType dtype) {
  return dtype == DType::f64 ? *static_cast<const double*>(memory) : *static_cast<const float*>(memory);
}

}  // namespace

void Staging::copy(const char* name, void* to, const void* from, size_t bytes) const {
  if (bytes > 0) kernels::transfer({device, stream.handle()}, name, to, from, bytes);
}

HostCollective stage_in(const Collective& c, const Event* ready, std::list<Staging>& stagings,
                        std::vector<std::byte>& scratch, int size) {
  HostCollective host{c.kind, DType::u8, c.op, c.peer, nullptr, nullptr, 0, &c.parts, &c.input_parts};
  if (c.is_barrier()) return host;
  const Tensor& output = c.output;
  const Device device = c.tensor().device();
  const bool gathers = c.kind == CollectiveKind::all_gather || c.kind == CollectiveKind::gather;
  host.dtype = c.tensor().dtype();
  host.count = static_cast<size_t>((gathers ? c.input : output).numel());
  if (c.kind == CollectiveKind::all_to_all) host.count /= static_cast<size_t>(size);
  double factor = 1;

  if (device.kind == DeviceKind::cpu) {
    if (output.defined()) host.output = static_cast<std::byte*>(output.raw_data());
    if (c.input.defined()) host.input = static_cast<const std::byte*>(c.input.raw_data());
    if (c.scale.defined()) factor = factor_at(c.scale.raw_data(), c.scale.dtype());
  } else {
    Staging& staging = staging_of(device, stagings);
    ready->block(staging.stream.handle());
    if (output.defined()) host.output = staging.output.at_least(output.nbytes(), "process group");
    if (reads_output(c.kind)) staging.copy("copy_to_host", host.output, output.raw_data(), output.nbytes());
    if (c.input.defined()) {
      std::byte* const input = staging.input.at_least(c.input.nbytes(), "process group");
      staging.copy("copy_to_host", input, c.input.raw_data(), c.input.nbytes());
      host.input = input;
    }
    std::byte* const scale = staging.factor.at_least(sizeof(double), "process group");
    if (c.scale.defined()) staging.copy("copy_to_host", scale, c.scale.raw_data(), c.scale.nbytes());
    staging.stream.synchronize();
    if (c.scale.defined()) factor = factor_at(scale, c.scale.dtype());
  }

  if (!c.scale.defined()) return host;
  if (c.kind == CollectiveKind::all_reduce) {
    scale(host.dtype, host.output, host.output, factor, host.count);
  } else {
    const auto elements = static_cast<size_t>(c.input.numel());
    scratch.resize(std::max(scratch.size(), elements * size_of(host.dtype)));
    scale(host.dtype, scratch.data(), host.input, factor, elements);
    host.input = scratch.data();
  }
  return host;
}

void stage_out(const Collective& c, const HostCollective& host, std::list<Staging>& stagings) {
  if (!c.output.defined() || c.kind == CollectiveKind::send || c.output.device().kind == DeviceKind::cpu) return;
  const Staging& staging = staging_of(c.output.device(), stagings);
  staging.copy("copy_to_device", c.output.raw_data(), host.output, c.output.nbytes());
  staging.stream.synchronize();
}

}  // namespace weft::dist
