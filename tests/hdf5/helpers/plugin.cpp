// SPDX-License-Identifier: Apache-2.0
// A filter as HDF5 loads it from HDF5_PLUGIN_PATH: one is added to each byte in the file. It calls HDF5, linked or not,
// and fails if this copy is not the reader's copy.
#include "tests/hdf5/helpers/filter.h"

#include <H5PLextern.h>
#include <hdf5.h>

namespace {

size_t filter(unsigned flags, size_t, const unsigned*, size_t bytes, size_t*, void** buffer) {
  if (H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_FILE) != 1) return 0;
  auto* const at = static_cast<unsigned char*>(*buffer);
  for (size_t i = 0; i < bytes; ++i)
    at[i] = static_cast<unsigned char>(at[i] + ((flags & H5Z_FLAG_REVERSE) != 0 ? -1 : 1));
  return bytes;
}

const H5Z_class2_t kFilter{H5Z_CLASS_T_VERS, FILTER, 1, 1, "adds one", nullptr, nullptr, filter};

}  // namespace

H5PL_type_t H5PLget_plugin_type() { return H5PL_TYPE_FILTER; }
const void* H5PLget_plugin_info() { return &kFilter; }
