// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

#include <atomic>
#include <memory>

#include "emulator/machine/shared_file.h"

namespace emulator::cuda {

/// An event's state, shared by processes. A recording has a number, and is complete when `ended` has reached the
/// number.
struct SharedEvent {
  struct State {
    std::atomic<uint64_t> begun, ended;
    std::atomic<int> recorder;  ///< the process of the last recording
  };
  SharedFile file;
  State* state = nullptr;

  SharedEvent() = default;
  ~SharedEvent();
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;
  bool has_ended(uint64_t recording) const { return state->ended.load(std::memory_order_acquire) >= recording; }
  /// Sleeps until the recording is complete. Errors: Fault when the process that recorded it is gone.
  void wait(uint64_t recording) const;
};
std::shared_ptr<SharedEvent> make_shared_event();

// The calls of both APIs, whose handles have the same 64 bytes. Errors: Error.
cudaIpcMemHandle_t ipc_export(const void* memory);
void* ipc_open(const cudaIpcMemHandle_t& handle, unsigned flags);
void ipc_close(void* memory);
cudaIpcEventHandle_t ipc_export(cudaEvent_t event);
cudaEvent_t ipc_open(const cudaIpcEventHandle_t& handle);

}  // namespace emulator::cuda
