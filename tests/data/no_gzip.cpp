// SPDX-License-Identifier: Apache-2.0
// A build without zlib: packed files are refused with the cure.
#include "data/idx.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

TEST(Gunzip, SaysHowToBuildItIn) {
  const TemporaryFolder folder;
  write_file(folder / "train-images-idx3-ubyte", idx_bytes({5, 4, 3}));
  write_file(folder / "train-labels-idx1-ubyte.gz", {0x1f, 0x8b, 8, 0});
  EXPECT_THAT(error_text([&] { idx(folder.path(), Split::train); }),
              HasSubstr("train-labels-idx1-ubyte.gz: built without zlib. On Debian: apt-get install zlib1g-dev, then "
                        "configure again; or unpack the file with gunzip."));
}

}  // namespace
}  // namespace weft::data::testing
