// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <hdf5.h>

#include <array>
#include <span>

#include "tests/fuzz/fuzz.h"

namespace weft::fuzz {

/// Every type is at most 16 bytes long; the caller closes it.
inline hid_t make_type(uint8_t choice) {
  const std::array<hid_t, 6> plain{H5T_STD_I64LE, H5T_IEEE_F32LE, H5T_IEEE_F64LE,
                                   H5T_STD_U8LE,  H5T_STD_U16LE,  H5T_STD_I32BE};
  if (choice % 9 < 6) return H5Tcopy(plain[choice % 9]);
  const hid_t text = H5Tcopy(H5T_C_S1);
  if (choice % 9 == 6) H5Tset_size(text, 1 + choice / 9 % 16);
  if (choice % 9 == 7) H5Tset_size(text, H5T_VARIABLE);
  if (choice % 9 != 8) return text;
  H5Tclose(text);
  const hsize_t two = 2;
  return H5Tarray_create2(H5T_STD_I64LE, 1, &two);
}

inline hid_t make_space(Input& input) {
  const int rank = input.byte() % 11;
  if (rank == 9) return H5Screate(H5S_NULL);
  if (rank == 0 || rank == 10) return H5Screate(H5S_SCALAR);
  std::array<hsize_t, 9> sizes{};
  for (int d = 0; d < rank; ++d) sizes[d] = d < 3 ? input.byte() % 8 : 1;
  return H5Screate_simple(rank, sizes.data(), nullptr);
}

/// Contiguous (0, 1), compact, chunked and deflated, early allocated.
inline hid_t make_storage(uint8_t choice, hid_t space) {
  const hid_t storage = H5Pcreate(H5P_DATASET_CREATE);
  const int rank = H5Sget_simple_extent_ndims(space);
  if (choice % 4 == 1) H5Pset_alloc_time(storage, H5D_ALLOC_TIME_EARLY);
  if (choice % 4 == 2) H5Pset_layout(storage, H5D_COMPACT);
  if (choice % 4 == 3 && rank > 0) {
    const std::array<hsize_t, 9> chunk{2, 2, 2, 1, 1, 1, 1, 1, 1};
    H5Pset_chunk(storage, rank, chunk.data());
    H5Pset_deflate(storage, 1);
  }
  return storage;
}

inline void add_attribute(hid_t object, const char* name, Input& input) {
  const hid_t type = make_type(input.byte()), space = make_space(input);
  const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  const bool text = H5Tis_variable_str(type) > 0;
  std::vector<uint8_t> value = input.take(8);
  value.resize(16 * 512);
  if (attribute >= 0 && !text && H5Sget_simple_extent_npoints(space) <= 512) H5Awrite(attribute, type, value.data());
  if (attribute >= 0) H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
}

inline void add_dataset(hid_t group, const char* name, Input& input) {
  const hid_t type = make_type(input.byte()), space = make_space(input), storage = make_storage(input.byte(), space);
  const hid_t dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, storage, H5P_DEFAULT);
  if (dataset >= 0) {
    for (const uint8_t steps = input.byte() % 4; const char* attribute : {"dtype", "crc32c", "index"})
      if (steps > 0) add_attribute(dataset, attribute, input);
    H5Dclose(dataset);
  }
  H5Pclose(storage);
  H5Sclose(space);
  H5Tclose(type);
}

/// Texts of bytes of different lengths, as images are kept.
inline void add_sequences(hid_t group, const char* name, Input& input) {
  const hid_t type = H5Tvlen_create(H5T_STD_U8LE);
  const hsize_t count = input.byte() % 5;
  const hid_t space = H5Screate_simple(1, &count, nullptr), storage = make_storage(input.byte(), space);
  const hid_t dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, storage, H5P_DEFAULT);
  std::vector<uint8_t> bytes(5, 7);
  std::vector<hvl_t> values(5);
  for (hvl_t& value : values) value = {.len = input.byte() % size_t{6}, .p = bytes.data()};
  if (dataset >= 0) H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  if (dataset >= 0) H5Dclose(dataset);
  H5Pclose(storage);
  H5Sclose(space);
  H5Tclose(type);
}

/// A file's objects, one step after the other: into which place, under which name, what.
struct Hdf5Steps {
  std::span<const char*const> places, names;
  const char* linked = "/";  ///< target of soft links

  void add(hid_t file, Input& input) const {
    const hid_t place = H5Oopen(file, places[input.byte() % places.size()], H5P_DEFAULT);
    const char* const name = names[input.byte() % names.size()];
    const bool group = place >= 0 && H5Iget_type(place) == H5I_GROUP;
    const int kind = input.byte() % 8;
    if (place >= 0 && kind <= 1) add_attribute(place, name, input);
    if (place >= 0 && kind == 2) H5Adelete(place, name);
    if (group && kind == 3) {
      const hid_t made = H5Gcreate2(place, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
      if (made >= 0) H5Gclose(made);
    }
    if (group && kind == 4) add_dataset(place, name, input);
    if (group && kind == 5) H5Ldelete(place, name, H5P_DEFAULT);
    if (group && kind == 6) {
      const uint8_t link = input.byte() % 3;
      if (link == 0) H5Lcreate_soft(linked, place, name, H5P_DEFAULT, H5P_DEFAULT);
      if (link == 1) H5Lcreate_external("other.h5", "/", place, name, H5P_DEFAULT, H5P_DEFAULT);
      if (link == 2) H5Lcreate_hard(file, "/", place, name, H5P_DEFAULT, H5P_DEFAULT);
    }
    if (group && kind == 7) add_sequences(place, name, input);
    if (place >= 0) H5Oclose(place);
  }
};

}  // namespace weft::fuzz
