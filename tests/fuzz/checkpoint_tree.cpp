// SPDX-License-Identifier: Apache-2.0
// HDF5 files that are whole, but not what earlier versions of Weft wrote: other types, shapes, storage, links. Input:
// steps that add objects to a tree; the file is then sealed and read as a checkpoint.
#include <hdf5.h>

#include <array>

#include "io/checkpoint.h"
#include "io/seal.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/hdf5_checkpoint.h"

using namespace weft;

namespace {

constexpr std::array kNames{"model",        "optimizer", "conv1.weight", "dtype", "crc32c",      "index",
                            "integer:step", "number:lr", "text:model",   "parts", "weft_format", "number:",
                            "integer:",     "new\nline", "model/nested", "text:", "fc.bias",     "."};

/// Every type is at most 16 bytes long; the caller closes it.
hid_t make_type(uint8_t choice) {
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

hid_t make_space(fuzz::Input& input) {
  const int rank = input.byte() % 11;
  if (rank == 9) return H5Screate(H5S_NULL);
  if (rank == 0 || rank == 10) return H5Screate(H5S_SCALAR);
  std::array<hsize_t, 9> sizes{};
  for (int d = 0; d < rank; ++d) sizes[d] = d < 3 ? input.byte() % 8 : 1;
  return H5Screate_simple(rank, sizes.data(), nullptr);
}

/// Contiguous (0, 1), compact, chunked and deflated, early allocated.
hid_t make_storage(uint8_t choice, hid_t space) {
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

void add_attribute(hid_t object, const char* name, fuzz::Input& input) {
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

void add_dataset(hid_t group, const char* name, fuzz::Input& input) {
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

/// One step: into which object, under which name, what.
void add(hid_t file, fuzz::Input& input) {
  const char* const places[] = {"/", "/model", "/optimizer", "/model/conv1.weight"};
  const hid_t place = H5Oopen(file, places[input.byte() % 4], H5P_DEFAULT);
  const char* const name = kNames[input.byte() % kNames.size()];
  const bool group = place >= 0 && H5Iget_type(place) == H5I_GROUP;
  const int kind = input.byte() % 7;
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
    if (link == 0) H5Lcreate_soft("/model", place, name, H5P_DEFAULT, H5P_DEFAULT);
    if (link == 1) H5Lcreate_external("other.h5", "/", place, name, H5P_DEFAULT, H5P_DEFAULT);
    if (link == 2) H5Lcreate_hard(file, "/", place, name, H5P_DEFAULT, H5P_DEFAULT);
  }
  if (place >= 0) H5Oclose(place);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const auto path = folder.path() / "checkpoint.h5";
  Checkpoint start;
  start.parts = {{"model", {}}, {"optimizer", {}}};
  start.parts[0].second.tensors = {{"conv1.weight", Tensor::ones({2, 3})}};
  start.integers["step"] = 7;
  tests::write_hdf5_checkpoint(path, start);
  AtomicFile sealed(path, "fuzz");
  std::filesystem::copy_file(path, sealed.temporary(), std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(sealed.temporary(), std::filesystem::file_size(path) - kSealBytes);
  const hid_t file = H5Fopen(sealed.temporary().c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  if (file < 0) std::abort();
  for (int step = 0; step < 64 && !input.empty(); ++step) add(file, input);
  if (H5Fclose(file) < 0) std::abort();
  seal(sealed);
  sealed.commit();
  fuzz::expect_value_or_error([&] { load_checkpoint(path); });
  return 0;
}
