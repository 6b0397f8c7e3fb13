// SPDX-License-Identifier: Apache-2.0
// Replaces hdf5_library.cpp if HDF5 is no shared library or CMake cannot read its name.
#include "io/hdf5/hdf5_library.h"
#include "io/hdf5/hdf5_state.h"
#include "kernels/error.h"

namespace weft {
namespace {

Hdf5Library linked() {
  Hdf5Library library;
#define WEFT_HDF5_TAKE(name) library.name = &H5##name;
  WEFT_HDF5_FUNCTIONS(WEFT_HDF5_TAKE)
#undef WEFT_HDF5_TAKE
#define WEFT_HDF5_TAKE(name) library.name##_g = &H5##name##_g;
  WEFT_HDF5_IDENTIFIERS(WEFT_HDF5_TAKE)
#undef WEFT_HDF5_TAKE
  library.dont_atexit();
  return library;
}

}  // namespace

const Hdf5Library& hdf5() {
  static const Hdf5Library library = linked();
  return library;
}

std::string describe_hdf5() {
  unsigned major = 0, minor = 0, release = 0;
  hdf5().get_libversion(&major, &minor, &release);
  return str("linked, HDF5 ", major, '.', minor, '.', release);
}

}  // namespace weft
