// SPDX-License-Identifier: Apache-2.0
// HDF5 files that are whole, but not what earlier versions of Weft wrote: other types, shapes, storage, links. Input:
// steps that add objects to a tree; the file is then sealed and read as a checkpoint.
#include "io/checkpoint.h"
#include "io/seal.h"
#include "tests/fuzz/hdf5_steps.h"
#include "tests/support/hdf5_checkpoint.h"

using namespace weft;

namespace {

constexpr std::array kNames{"model",        "optimizer", "conv1.weight", "dtype", "crc32c",      "index",
                            "integer:step", "number:lr", "text:model",   "parts", "weft_format", "number:",
                            "integer:",     "new\nline", "model/nested", "text:", "fc.bias",     "."};
constexpr std::array kPlaces{"/", "/model", "/optimizer", "/model/conv1.weight"};

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
  const fuzz::Hdf5Steps steps{.places = kPlaces, .names = kNames, .linked = "/model"};
  for (int step = 0; step < 64 && !input.empty(); ++step) steps.add(file, input);
  if (H5Fclose(file) < 0) std::abort();
  seal(sealed);
  sealed.commit();
  fuzz::expect_value_or_error([&] { load_checkpoint(path); });
  return 0;
}
