// SPDX-License-Identifier: Apache-2.0
// Input: a file that torch.save might have written: zip archive or legacy format. All its tensors are read, and with
// libzip written and read again, by name and as one value.
#include <cstring>

#include "io/file_reader.h"
#include "io/torch/torch_object.h"
#include "io/torch/zip_archive.h"
#include "io/weights/weights_file.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto file = folder.write("input.pt", {data, data + size});
  fuzz::expect_value_or_error([&] {
    const StateDict read = open_torch(file)->read_all();
    if (!have_zip()) return;
    const auto copy = folder.path() / "copy.pt";
    write_torch(copy, read);
    const auto again = open_torch(copy);
    if (again->tensors().size() != read.tensors.size()) std::abort();
    for (size_t i = 0; i < read.tensors.size(); ++i) {
      const Tensor mine = read.tensors[i].tensor.contiguous(), other = again->read(i).contiguous();
      if (mine.sizes() != other.sizes() || mine.dtype() != other.dtype()) std::abort();
      if (mine.nbytes() > 0 && std::memcmp(mine.raw_data(), other.raw_data(), mine.nbytes()) != 0) std::abort();
    }
  });
  fuzz::expect_value_or_error([&] {
    const TorchObject read = read_torch(file);
    if (!have_zip()) return;
    const auto copy = folder.path() / "value.pt", again = folder.path() / "again.pt";
    write_torch(copy, read);
    write_torch(again, read_torch(copy));
    if (read_file(copy) != read_file(again)) std::abort();
  });
  return 0;
}
