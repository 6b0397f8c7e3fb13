// SPDX-License-Identifier: Apache-2.0
// Input: a file that torch.save might have written: zip archive or legacy format. All its tensors are read, and with
// libzip written and read again, by name and as one value.
#include <cstring>

#include "apps/support/weights/torch_object.h"
#include "apps/support/weights/weights_file.h"
#include "apps/support/weights/zip_archive.h"
#include "data/file_bytes.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto file = folder.write("input.pt", {data, data + size});
  fuzz::expect_value_or_error([&] {
    const StateDict read = support::open_torch(file)->read_all();
    if (!support::have_zip()) return;
    const auto copy = folder.path() / "copy.pt";
    support::write_torch(copy, read);
    const auto again = support::open_torch(copy);
    if (again->tensors().size() != read.tensors.size()) std::abort();
    for (size_t i = 0; i < read.tensors.size(); ++i) {
      const Tensor mine = read.tensors[i].tensor.contiguous(), other = again->read(i).contiguous();
      if (mine.sizes() != other.sizes() || mine.dtype() != other.dtype()) std::abort();
      if (mine.nbytes() > 0 && std::memcmp(mine.raw_data(), other.raw_data(), mine.nbytes()) != 0) std::abort();
    }
  });
  fuzz::expect_value_or_error([&] {
    const support::TorchObject read = support::read_torch(file);
    if (!support::have_zip()) return;
    const auto copy = folder.path() / "value.pt", again = folder.path() / "again.pt";
    support::write_torch(copy, read);
    support::write_torch(again, support::read_torch(copy));
    if (data::read_file(copy) != data::read_file(again)) std::abort();
  });
  return 0;
}
