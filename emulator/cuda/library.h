// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/machine/touched.h"

namespace emulator {

struct Operation;

namespace cuda {

/// Device work of a library in software (libnccl); NVIDIA's library uses kernels that have no PTX.
struct LibraryWork {
  struct Access {
    const void* at;
    size_t bytes;
    Touch touch;
  };
  std::string what;              ///< for reports: `all_reduce of 1024 f32 (sum)`
  std::vector<Access> accesses;  ///< to global memory
  std::function<void()> call;    ///< without the state's lock. Errors: Fault
  bool waits = false;            ///< for other devices: it has a thread of its own
};

/// Enqueues the work in a stream, or adds it to the graph that the stream captures. Returns as the runtime's calls do.
/// `previous`: the work starts after that operation, and replaces it there. The check of streams does not count this order.
cudaError_t enqueue_library_work(cudaStream_t stream, LibraryWork work,
                                 std::shared_ptr<Operation>* previous = nullptr) noexcept;

}  // namespace cuda
}  // namespace emulator
