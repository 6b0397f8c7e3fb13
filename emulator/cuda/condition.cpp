// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/condition.h"

#include <mutex>
#include <unordered_map>

#include "emulator/cuda/error.h"
#include "emulator/cuda/graph.h"
#include "emulator/machine/findings.h"
#include "emulator/ptx/instructions/control.h"

namespace emulator::cuda {
namespace {

// They have a lock of their own: kernels look them up.
struct Known {
  std::mutex mutex;
  std::unordered_map<cudaGraphConditionalHandle, std::weak_ptr<Condition>> by_handle;
  cudaGraphConditionalHandle last = 0x5eed'0000'0000;  ///< no small number or address by accident
};
Known& known() {
  static Known* const all = new Known;
  return *all;
}

std::shared_ptr<Condition> find(cudaGraphConditionalHandle handle) {
  const std::lock_guard lock(known().mutex);
  const auto found = known().by_handle.find(handle);
  return found == known().by_handle.end() ? nullptr : found->second.lock();
}

bool set_condition(uint64_t handle, uint32_t value) {
  const std::shared_ptr<Condition> condition = find(handle);
  if (!condition) return false;
  condition->value = value;
  condition->known = true;
  return true;
}

}  // namespace

void Condition::begin() {
  known = has_launch_value;
  value = has_launch_value ? launch_value : 0;
}

std::shared_ptr<Condition> make_condition(Graph& graph, unsigned launch_value, unsigned flags) {
  require(flags == 0 || flags == cudaGraphCondAssignDefault);
  ptx::set_graph_condition = set_condition;
  auto condition = std::make_shared<Condition>();
  condition->launch_value = launch_value;
  condition->has_launch_value = flags == cudaGraphCondAssignDefault;
  graph.conditions.push_back(condition);
  const std::lock_guard lock(known().mutex);
  condition->handle = ++known().last;
  known().by_handle[condition->handle] = condition;
  return condition;
}

std::shared_ptr<Condition> condition_of(cudaGraphConditionalHandle handle) {
  std::shared_ptr<Condition> condition = find(handle);
  require(condition != nullptr);
  return condition;
}

const std::shared_ptr<Graph>* ConditionalWork::chosen() const {
  if (!condition->known) {
    report_finding(
        "a conditional node asks a value that no kernel of this launch has set",
        "its handle has no default (cudaGraphCondAssignDefault), so CUDA leaves the value undefined; 0 is taken",
        std::to_string(condition->handle));
  }
  const unsigned value = condition->value;
  const size_t body = type == cudaGraphCondTypeSwitch ? value : value != 0 ? 0 : 1;
  return body < bodies.size() ? &bodies[body] : nullptr;
}

}  // namespace emulator::cuda
