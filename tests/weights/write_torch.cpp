// SPDX-License-Identifier: Apache-2.0
#include "tests/support/shell.h"
#include "tests/weights/fixture.h"

namespace weft {
namespace {

using test::error_of;
using test::TemporaryFolder;

TEST(WriteTorch, RoundTripIsBitwise) {
  NEEDS_ZIP();
  std::mt19937_64 random(std::random_device{}());
  const TemporaryFolder folder;
  const StateDict state = test::random_state(random);
  write_torch(folder / "a.pt", state);
  test::expect_same_tensors(state, open_torch(folder / "a.pt")->read_all());
  EXPECT_EQ(folder.files(), 1u);
  write_torch(folder / "b.pt", state);
  EXPECT_EQ(test::read_file(folder / "a.pt"), test::read_file(folder / "b.pt")) << "equal weights, other bytes";
}

TEST(WriteTorch, StridesAndSharedMemory) {
  NEEDS_ZIP();
  const TemporaryFolder folder;
  const Tensor base = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, Shape{2, 3});
  StateDict state;
  state.tensors = {{"a", base}, {"t", base.transpose(0, 1)}, {"tied", base}, {"e", base.slice(0, 0, 1).expand({2, 3})}};
  write_torch(folder / "a.pt", state);
  const StateDict read = open_torch(folder / "a.pt")->read_all();
  EXPECT_EQ(read.tensor("t").to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(read.tensor("e").to_vector<float>(), (std::vector<float>{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(read.tensor("a").raw_data(), read.tensor("tied").raw_data());
}

TEST(WriteTorch, DataIsAligned) {
  NEEDS_ZIP();
  const TemporaryFolder folder;
  StateDict state;
  const std::string mark = "the data of this tensor begins here";
  for (int i = 0; i < 20; ++i) {
    const Tensor text = Tensor::empty({static_cast<int64_t>(mark.size()) + i}, DType::u8);
    text.zero_();
    std::memcpy(text.raw_data(), mark.data(), mark.size());
    state.tensors.push_back({str("t", i), text});
  }
  write_torch(folder / "a.pt", state);
  const std::string bytes = test::read_file(folder / "a.pt");
  int found = 0;
  for (size_t at = bytes.find(mark); at != std::string::npos; at = bytes.find(mark, at + 1), ++found)
    EXPECT_EQ(at % 64, 0u) << at;
  EXPECT_EQ(found, 20);
}

TEST(WriteTorch, WhatCannotBeWritten) {
  const TemporaryFolder folder;
  StateDict numbers;
  numbers.scalars.push_back({"step", 3});
  EXPECT_EQ(error_of([&] { write_torch(folder / "a", numbers); }),
            "pytorch: expected tensors only, got the number 'step'. A checkpoint holds numbers too");
  StateDict twice;
  twice.tensors = {{"w", Tensor::zeros({1})}, {"w", Tensor::zeros({1})}};
  EXPECT_EQ(error_of([&] { write_torch(folder / "a", twice); }), "pytorch: expected each name once, got 'w' twice");
  EXPECT_EQ(error_of([&] { write_torch(folder / "no" / "a", {}); }), "pytorch: expected an existing folder for " +
                                                                         (folder / "no" / "a").string() +
                                                                         ", got none at " + (folder / "no").string());
  EXPECT_EQ(folder.files(), 0u);
}

// torch.load(weights_only=True) reads every dtype and shape with the same bits.
TEST(WriteTorch, PyTorchReadsIt) {
  NEEDS_ZIP();
  NEEDS_TORCH();
  std::mt19937_64 random(std::random_device{}());
  const TemporaryFolder folder;
  const StateDict state = test::random_state(random);
  write_torch(folder / "a.pt", state);
  test::write_file(folder / "again.py",
                   "import sys, torch\n"
                   "state = torch.load(sys.argv[1], weights_only=True)\n"
                   "assert type(state) is dict, type(state)\n"
                   "torch.save(state, sys.argv[2])\n"
                   "torch.save(state, sys.argv[3], _use_new_zipfile_serialization=False)\n");
  const auto run =
      tests::shell("/usr/bin/python3 " + (folder / "again.py").string() + " " + (folder / "a.pt").string() + " " +
                   (folder / "b.pt").string() + " " + (folder / "c.pt").string());
  ASSERT_EQ(run.exit_code, 0) << run.output;
  test::expect_same_tensors(state, open_torch(folder / "b.pt")->read_all());
  test::expect_same_tensors(state, open_torch(folder / "c.pt")->read_all());
}

TEST(WithoutZip, SaysHowToGetIt) {
  if (have_zip()) GTEST_SKIP() << "this build has no stub: WEFT_WITHOUT=all gives one";
  const TemporaryFolder folder;
  test::write_file(folder / "a.pt", "PK\3\4");
  const std::string hint = ", got one without. Install libzip-dev, configure and build again, or use safetensors";
  EXPECT_EQ(error_of([&] { open_torch(folder / "a.pt"); }),
            "pytorch: expected a build with libzip for " + (folder / "a.pt").string() + hint);
  EXPECT_EQ(error_of([&] { write_torch(folder / "b.pt", {}); }),
            "pytorch: expected a build with libzip for " + folder.path().string() + hint);
}

}  // namespace
}  // namespace weft
