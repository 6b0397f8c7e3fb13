// SPDX-License-Identifier: Apache-2.0
// Checkpoints of earlier versions.
#include <gmock/gmock.h>

#include "tests/io/random_checkpoint.h"
#include "tests/train/temporary_folder.h"
#if WEFT_HAVE_HDF5
#include "tests/support/hdf5_checkpoint.h"
#endif

namespace weft {
namespace {

using test::read_file;
using test::write_file;
using test::write_sealed;

const std::string kOld = WEFT_GOLDEN "/hdf5/checkpoint.h5";  // written before checkpoints were safetensors

class Hdf5Checkpoint : public testing::Test {
 protected:
  std::string load_error() const { return test::load_error(path); }
  std::mt19937_64 random{std::random_device{}()};
  test::TemporaryFolder folder;
  std::string path = (folder / "checkpoint_last.h5").string();
};

#if WEFT_HAVE_HDF5
TEST_F(Hdf5Checkpoint, OfAnEarlierVersion) {
  const Checkpoint c = load_checkpoint(kOld);
  ASSERT_EQ(c.parts.size(), 3u);
  const StateDict &model = c.part("model"), &optimizer = c.part("optimizer");
  ASSERT_EQ(model.tensors.size(), 8u);
  EXPECT_EQ(model.tensors[0].name, "conv1.weight") << "the order stays";
  EXPECT_EQ(model.tensor("conv1.weight").sizes(), (Shape{2, 3, 1, 2}));
  EXPECT_EQ(model.tensor("conv1.weight").to_vector<float>()[11], 1.75f);
  EXPECT_EQ(model.tensor("bn1.running_mean").to_vector<double>(), (std::vector<double>{0.5, 0.75, 1}));
  EXPECT_EQ(model.tensor("bn1.num_batches_tracked").to_vector<int64_t>(), (std::vector<int64_t>{12}));
  EXPECT_EQ(model.tensor("half").dtype(), DType::bf16);
  EXPECT_EQ(model.tensor("f16").to_vector<float>(), (std::vector<float>{1, 1.25f, 1.5f}));
  EXPECT_EQ(model.tensor("mask").dtype(), DType::boolean);
  EXPECT_EQ(model.tensor("bytes").dtype(), DType::u8);
  EXPECT_EQ(model.tensor("empty").sizes(), (Shape{0, 2}));
  EXPECT_EQ(optimizer.tensor("conv1.weight.momentum").to_vector<float>()[1], 3.25f);
  EXPECT_EQ(optimizer.scalar("lr"), 0.1);
  EXPECT_TRUE(c.part("nothing").tensors.empty());
  EXPECT_EQ(c.integers, (std::map<std::string, int64_t>{{"seed", -9007199254740993}, {"step", 60}}));
  EXPECT_EQ(c.numbers, (std::map<std::string, double>{{"best_accuracy", 0.1 + 0.2}, {"worst", -INFINITY}}));
  EXPECT_EQ(c.text("config"), "lr = 0.1\nname = \"ä\"\n");
  tests::write_hdf5_checkpoint(path, c);
  EXPECT_EQ(read_file(path).size(), read_file(kOld).size()) << "the tests write what earlier versions wrote";
  save_checkpoint(folder / "new.safetensors", c);
  test::expect_same(c, load_checkpoint(folder / "new.safetensors"));
}

TEST_F(Hdf5Checkpoint, RoundTripIsBitwise) {
  const Checkpoint saved = test::random_checkpoint(random);
  tests::write_hdf5_checkpoint(path, saved);
  test::expect_same(saved, load_checkpoint(path));
}

TEST_F(Hdf5Checkpoint, AFlippedBitInATensorUnderAWholeSealNamesIt) {
  Checkpoint c;
  c.parts = {{"model", {}}};
  c.parts[0].second.tensors = {{"conv1.weight", test::random_bits({1000}, DType::f32, random)},
                               {"fc.weight", test::random_bits({1000}, DType::f32, random)}};
  tests::write_hdf5_checkpoint(path, c);
  std::string bytes = read_file(path);
  const std::string data(static_cast<const char*>(c.parts[0].second.tensors[1].tensor.raw_data()), 4000);
  const size_t at = bytes.find(data);
  ASSERT_NE(at, std::string::npos);
  bytes[at + random() % 4000] ^= static_cast<char>(1 << random() % 8);
  write_file(path, bytes);
  EXPECT_EQ(load_error(), "damaged: its bytes do not fit the checksum at its end. Resume from another checkpoint");
  write_sealed(path, bytes.substr(0, bytes.size() - kSealBytes));
  EXPECT_THAT(load_error(), testing::MatchesRegex("damaged: tensor 'fc.weight' has checksum [0-9]+, expected [0-9]+. "
                                                  "Resume from another checkpoint"));
}

TEST_F(Hdf5Checkpoint, CutShort) {
  tests::write_hdf5_checkpoint(path, test::random_checkpoint(random));
  const std::string whole = read_file(path);
  for (int i = 0; i < 50; ++i) {
    write_file(path, whole.substr(0, random() % whole.size()));
    EXPECT_THROW(load_checkpoint(path), Error);
  }
  write_file(path, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(load_error(), "damaged or cut short: it does not end with a seal. Resume from another checkpoint");
  write_sealed(path, whole.substr(0, whole.size() / 2));  // sealed by another program: libhdf5's own check
  EXPECT_EQ(load_error(), "damaged or cut short. Resume from another checkpoint");
}

TEST_F(Hdf5Checkpoint, AnyFlippedBitIsFound) {
  const std::string whole = read_file(kOld);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    write_file(path, bytes);
    EXPECT_THROW(load_checkpoint(path), Error);
  }
}
#else
TEST_F(Hdf5Checkpoint, ABuildWithoutHdf5SaysWhatHelps) {
  EXPECT_EQ(
      test::error_of([] { load_checkpoint(kOld); }),
      "checkpoint: " + kOld +
          " is an HDF5 file of an earlier version, and this build has no HDF5. Install libhdf5-dev, configure and "
          "build again, or convert the file where that is done: weft-weights convert --checkpoint OLD.h5 "
          "NEW.safetensors");
}
#endif

}  // namespace
}  // namespace weft
