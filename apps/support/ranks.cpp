// SPDX-License-Identifier: Apache-2.0
#include "apps/support/ranks.h"

#include "apps/support/device.h"

namespace weft::support {

Ranks::Ranks(const RanksOptions& options) {
  if (options.alone) {
    group_ = dist::make_process_group_alone();
    device_ = choose_device(options.device);
    return;
  }
  world_ = std::make_unique<dist::World>(dist::init({.backend = options.backend, .device = options.device}));
  group_ = world_->group();
  device_ = size() == 1 ? choose_device(options.device) : world_->device();
  // Who finds a mistake in its flags or files and leaves breaks off the connections of those that are still being made:
  // they would tell of that, not of the mistake.
  wait_for_all("start");
}

Ranks::Ranks(dist::ProcessGroupPtr group, Device device) : group_(std::move(group)), device_(device) {}

std::string Ranks::describe() const {
  const std::string launcher = world_ && size() > 1 ? " (" + world_->launcher() + ")" : "";
  return str(size(), size() > 1 ? str(" over ", group_->backend()) : "", launcher);
}

Device Ranks::where() const { return group_->backend() == "nccl" ? device_ : Device{}; }

std::vector<double> Ranks::sum(const std::vector<double>& values, const std::string& what) const {
  if (size() == 1 || values.empty()) return values;
  const Tensor all = Tensor::from(values, where());
  group_->all_reduce(all, dist::ReduceOp::sum, {.name = what, .scale = {}})->wait();
  return all.to_vector<double>();
}

int64_t Ranks::max(int64_t value, const std::string& what) const {
  if (size() == 1) return value;
  const Tensor all = Tensor::from(std::vector<int64_t>{value}, where());
  group_->all_reduce(all, dist::ReduceOp::max, {.name = what, .scale = {}})->wait();
  return all.to_vector<int64_t>().front();
}

std::function<bool(bool)> Ranks::all_agree() const {
  if (size() == 1) return {};
  return [this](bool own) { return max(own ? 0 : 1, "the same graph on all ranks") == 0; };
}

std::vector<std::string> Ranks::texts(const std::string& own, const std::string& what) const {
  if (size() == 1) return {own};
  return group_->all_gather_text(own, what);
}

void Ranks::wait_for_all(const std::string& what) const {
  if (size() > 1) group_->barrier(what);
}

}  // namespace weft::support
