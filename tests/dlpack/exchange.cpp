// SPDX-License-Identifier: Apache-2.0
// test_dlpack LIBPYTHON SCRIPT: runs the script in this process; it calls the functions below by ctypes.
#include <dlfcn.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "core/dlpack.h"
#include "core/ops/reduce.h"

namespace {

weft::Tensor held;       // the tensor that both sides look at
std::string last_error;  // error of the last call, empty after success

template <class Body>
auto guarded(Body&& body) -> decltype(body()) {
  last_error.clear();
  try {
    return body();
  } catch (const std::exception& error) {
    last_error = error.what();
    return {};
  }
}

}  // namespace

extern "C" {

/// Holds 0, 1, 2, … as rows x columns, transposed; `dtype` is the number of a weft::DType.
int exchange_make(int dtype, int64_t rows, int64_t columns) {
  return guarded([&] {
    held = weft::Tensor::arange(rows * columns, weft::DType::f64).reshape({rows, columns}).transpose(0, 1);
    held = held.to(static_cast<weft::DType>(dtype));
    return 1;
  });
}
DLManagedTensor* exchange_out() {
  return guarded([] { return weft::to_dlpack(held); });
}
int exchange_in(DLManagedTensor* managed) {
  return guarded([&] {
    held = weft::from_dlpack(managed);
    return 1;
  });
}
double exchange_sum() {
  return guarded([] { return weft::sum(held.to(weft::DType::f64)).item(); });
}
int exchange_dtype() {
  return guarded([] { return static_cast<int>(held.dtype()); });
}
int exchange_double() {
  return guarded([] {
    held.mul_(2);
    return 1;
  });
}
/// Nothing is held any more.
void exchange_drop() { held = {}; }
const char* exchange_error() { return last_error.c_str(); }

}  // extern "C"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: test_dlpack LIBPYTHON SCRIPT\n";
    return 2;
  }
  // Global: the modules that Python loads look for its functions there.
  void* const python = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (python == nullptr) {
    std::cout << "SKIPPED: " << dlerror() << '\n';
    return 77;
  }
  const auto initialize = reinterpret_cast<void (*)(int)>(dlsym(python, "Py_InitializeEx"));
  const auto run = reinterpret_cast<int (*)(const char*, void*)>(dlsym(python, "PyRun_SimpleStringFlags"));
  std::ifstream file(argv[2]);
  const std::string script{std::istreambuf_iterator<char>(file), {}};
  if (initialize == nullptr || run == nullptr || script.empty()) {
    std::cerr << "test_dlpack: " << argv[1] << " is no Python, or " << argv[2] << " no script\n";
    return 2;
  }
  initialize(0);
  return run(script.c_str(), nullptr) == 0 ? 0 : 1;  // the script ends the process itself where it skips
}
