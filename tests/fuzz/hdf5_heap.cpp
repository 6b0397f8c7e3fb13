// SPDX-License-Identifier: Apache-2.0
// Input: a reference of 16 bytes as an HDF5 dataset stores it, a file.
#include "data/global_heap.h"

#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  std::vector<uint8_t> stored = input.take(data::kHeapReferenceBytes);
  stored.resize(data::kHeapReferenceBytes);
  const data::HeapReference reference = data::parse_heap_reference(stored.data());
  const FileReader file(folder.write("file.h5", input.rest()), "hdf5");
  std::vector<uint8_t> buffer;
  fuzz::expect_value_or_error([&] {
    if (data::read_heap_object(file, reference, "train", 0, buffer).size() != reference.bytes) std::abort();
  });
  return 0;
}
