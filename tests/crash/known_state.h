// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "io/checkpoint.h"
#include "kernels/error.h"

namespace weft::crash {

inline constexpr int kTensors = 6;

/// Element `i` of tensor `t` at a step: no two steps share a tensor.
inline int32_t element(int64_t step, int t, int64_t i) {
  return static_cast<int32_t>(step * 1'000'003 + t * 10'007 + i % 251);
}

/// A checkpoint whose every element is known from its step.
inline Checkpoint state_of(int64_t step, int64_t elements) {
  Checkpoint checkpoint;
  checkpoint.integers["step"] = step;
  checkpoint.parts = {{"model", {}}, {"optimizer", {}}};
  for (int t = 0; t < kTensors; ++t) {
    const Tensor tensor = Tensor::empty({elements}, DType::i32);
    auto* values = static_cast<int32_t*>(tensor.raw_data());
    for (int64_t i = 0; i < elements; ++i) values[i] = element(step, t, i);
    checkpoint.parts[static_cast<size_t>(t % 2)].second.tensors.push_back({str("tensor", t), tensor});
  }
  return checkpoint;
}

/// The step of a checkpoint file after a look at every element. Errors: it cannot be loaded, or mixes two states.
inline int64_t step_of(const std::filesystem::path& path) {
  const Checkpoint checkpoint = load_checkpoint(path);
  const int64_t step = checkpoint.integer("step");
  for (int t = 0; t < kTensors; ++t) {
    const Tensor tensor = checkpoint.part(t % 2 == 0 ? "model" : "optimizer").tensor(str("tensor", t));
    WEFT_CHECK(tensor.defined(), "no tensor ", t);
    const auto* values = static_cast<const int32_t*>(tensor.raw_data());
    for (int64_t i = 0; i < tensor.numel(); ++i)
      WEFT_CHECK(values[i] == element(step, t, i), "tensor ", t, " is not the one of step ", step);
  }
  return step;
}

/// Runs the body in a child process and waits: its exit code, or 128 + the signal that killed it.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace weft::crash
