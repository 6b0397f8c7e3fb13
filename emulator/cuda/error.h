// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

#include <string>

#include "emulator/machine/fault.h"

namespace emulator::cuda {

/// The error of a call. CUresult has the same numbers but for the few that driver_code() translates.
struct Error {
  cudaError_t code;
};

[[noreturn]] inline void fail(cudaError_t code) { throw Error{code}; }
/// cudaErrorInvalidValue unless `right`.
inline void require(bool right, cudaError_t code = cudaErrorInvalidValue) {
  if (!right) fail(code);
}
/// One line on stderr: `weft-emulate: …`.
void report(const std::string& text);
/// Hands the text of each report to `callback` as well, as cuLogsRegisterCallback promises. Returns its handle.
using LogCallback = void (*)(void* data, int level, char* text, size_t length);
void* add_log_callback(LogCallback callback, void* data);
/// Error: no such handle.
void remove_log_callback(void* handle);
/// As above; then the call fails.
[[noreturn]] void fail(cudaError_t code, const std::string& text);

const char* error_name(int code);    ///< nullptr: no such code
const char* error_string(int code);  ///< nullptr: no such code

/// cudaGetLastError of this thread and of the caller's runtime.
void remember(cudaError_t code);
/// As above, of an error that `<<<>>>` does not return: it becomes a finding unless the thread asks for its last error
/// before the program ends.
void remember_unreturned(cudaError_t code, const std::string& launch);
cudaError_t last_error(bool clear);

/// The code of the current exception; call it in a catch block.
cudaError_t code_of_exception();
/// The fault that the current device's context died of, cudaErrorNoDevice where there is no device, or cudaSuccess.
cudaError_t sticky_error();
/// Reports once that the program needs a CUDA call that the emulator lacks: cudaErrorNotSupported, which calls of the
/// runtime remember.
int refuse(const char* call, bool remembered);

/// The code of a call: exceptions become codes.
template <class F>
cudaError_t code_of(F&& body) noexcept {
  cudaError_t code = sticky_error();
  if (code == cudaSuccess) {
    try {
      body();
      code = sticky_error();
    } catch (...) {
      code = code_of_exception();
    }
  }
  return code;
}

/// Runs every call of the runtime.
template <class F>
cudaError_t runtime_call(F&& body) noexcept {
  const cudaError_t code = code_of(body);
  if (code != cudaSuccess) remember(code);
  return code;
}

/// CUresult's number for a cudaError_t.
int driver_code(cudaError_t code);
/// Runs every call of the driver.
template <class F>
int driver_call(F&& body) noexcept {
  return driver_code(code_of(body));
}

}  // namespace emulator::cuda
