// SPDX-License-Identifier: Apache-2.0
#include "emulator/cusolver/lapack.h"

#include <dlfcn.h>

#include <initializer_list>

namespace emulator::lapack {
namespace {

template <class T>
bool find_all(void* handle, char precision, Functions<T>& functions) {
  bool complete = true;
  const auto find = [&]<class Function>(Function*& function, const char* name) {
    const char symbol[] = {precision, name[0], name[1], name[2], name[3], name[4], '_', 0};
    function = reinterpret_cast<Function*>(dlsym(handle, symbol));
    complete = complete && function;
  };
  find(functions.potrf, "potrf");
  find(functions.getrf, "getrf");
  find(functions.getrs, "getrs");
  find(functions.geqrf, "geqrf");
  find(functions.orgqr, "orgqr");
  find(functions.syevd, "syevd");
  find(functions.gesvd, "gesvd");
  return complete;
}

Library load() {
  for (const char* const file : {"liblapack.so.3", "libopenblas.so.0", EMULATOR_LAPACK}) {
    void* const handle = *file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!handle) continue;
    Library found;
    found.complete = find_all(handle, 's', found.f32) && find_all(handle, 'd', found.f64);
    if (found.complete) return found;
    dlclose(handle);
  }
  return {};
}

}  // namespace

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

}  // namespace emulator::lapack
