// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <hdf5.h>

#include <string>

// hdf5.h's constants call H5open() and H5check() of a library that is linked; hdf5() has done what they do.
#undef H5OPEN
#define H5OPEN
#undef H5CHECK
#define H5CHECK

namespace weft {

/// HDF5's functions and predefined identifiers that Weft uses, without the H5 of their names. A shared library is
/// loaded at the first use (hdf5_library.cpp): programs start without it and its dependencies. A static one is linked
/// (linked_hdf5_library.cpp). Add every new function that Weft calls here.
struct Hdf5Library {
// clang-format off
#define WEFT_HDF5_FUNCTIONS(X)                                                                           \
  X(open) X(get_libversion) X(dont_atexit)                                                               \
  X(Aclose) X(Acreate2) X(Aexists) X(Aget_space) X(Aget_type) X(Aopen) X(Aread) X(Awrite)                \
  X(Dclose) X(Dcreate2) X(Dget_chunk_info_by_coord) X(Dget_create_plist) X(Dget_offset) X(Dget_space)    \
  X(Dget_type) X(Dopen2) X(Dread) X(Dvlen_reclaim) X(Dwrite)                                             \
  X(Eget_auto2) X(Eset_auto2)                                                                            \
  X(Fclose) X(Fcreate) X(Fget_create_plist) X(Fis_hdf5) X(Fopen)                                         \
  X(Gclose) X(Gcreate2) X(Gopen2) X(Lexists) X(Lvisit)                                                   \
  X(Pclose) X(Pcreate) X(Pget_chunk) X(Pget_external_count) X(Pget_filter2) X(Pget_layout)               \
  X(Pget_nfilters) X(Pget_sizes) X(Pget_userblock) X(Pset_elink_cb)                                      \
  X(Sclose) X(Screate) X(Screate_simple) X(Sget_simple_extent_dims) X(Sget_simple_extent_ndims)          \
  X(Sget_simple_extent_npoints) X(Sselect_hyperslab)                                                     \
  X(Tclose) X(Tcopy) X(Tenum_valueof) X(Tequal) X(Tget_class) X(Tget_ebias) X(Tget_nmembers)             \
  X(Tget_sign) X(Tget_size) X(Tget_super) X(Tis_variable_str) X(Tset_cset)                               \
  X(Tset_size) X(Tset_strpad) X(Tvlen_create)                                                            \
  X(Zfilter_avail) X(Zget_filter_info)
// clang-format on
#define WEFT_HDF5_MEMBER(name) decltype(&H5##name) name = nullptr;
  WEFT_HDF5_FUNCTIONS(WEFT_HDF5_MEMBER)
#undef WEFT_HDF5_MEMBER

  /// hdf5().T_C_S1() is what H5T_C_S1 is where HDF5 is linked: a variable of the library, which H5open() fills, and
  /// fills again where a program that shares the library has closed it.
// clang-format off
#define WEFT_HDF5_IDENTIFIERS(X)                                                   \
  X(P_CLS_DATASET_ACCESS_ID) X(P_CLS_GROUP_ACCESS_ID) X(P_CLS_LINK_ACCESS_ID)      \
  X(T_C_S1) X(T_IEEE_F32LE) X(T_NATIVE_DOUBLE) X(T_NATIVE_FLOAT) X(T_NATIVE_INT16) \
  X(T_NATIVE_INT32) X(T_NATIVE_INT64)                                              \
  X(T_STD_I16LE) X(T_STD_I64LE) X(T_STD_U8LE)
// clang-format on
#define WEFT_HDF5_MEMBER(name) \
  hid_t name() const {         \
    open();                    \
    return *name##_g;          \
  }                            \
  decltype(&H5##name##_g) name##_g = nullptr;
  WEFT_HDF5_IDENTIFIERS(WEFT_HDF5_MEMBER)
#undef WEFT_HDF5_MEMBER
};

/// The library. It does not clean up at exit, which prints "infinite loop closing library" after a damaged file;
/// every identifier here closes itself. Errors, in one line: the library cannot be found, or is of
/// another version than the headers that Weft was built with (HDF5 itself would end the process).
const Hdf5Library& hdf5();

/// The library `file` as the loader finds it if its version is right, else the library in `folder`. Errors: as hdf5().
/// For hdf5() and its tests; not defined if HDF5 is linked.
Hdf5Library load_hdf5(const std::string& file, const std::string& folder);

}  // namespace weft
