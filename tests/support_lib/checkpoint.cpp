// SPDX-License-Identifier: Apache-2.0
#include "apps/support/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "core/seal.h"
#include "tests/support_lib/random_state.h"
#include "tests/support_lib/temporary_folder.h"

namespace weft::support {
namespace {

using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;

Checkpoint random_checkpoint(std::mt19937_64& random) {
  Checkpoint c;
  c.parts = {{"model", test::random_state(random)}, {"optimizer", test::random_state(random)}, {"empty", {}}};
  c.parts[1].second.scalars = {{"lr", 0.1}, {"step", 60}};
  c.integers = {{"step", 60}, {"seed", static_cast<int64_t>(random())}};
  c.numbers = {{"best_accuracy", 0.1 + 0.2}, {"worst", -INFINITY}};
  c.texts = {{"model", "resnet20"},
             {"config", "lr = 0.1\nname = \"ä\"\n"},
             {"nothing", ""},
             {"long", std::string(200000, 'x')}};
  return c;
}

void expect_same(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(a.parts.size(), b.parts.size());
  for (size_t i = 0; i < a.parts.size(); ++i) {
    EXPECT_EQ(a.parts[i].first, b.parts[i].first);
    test::expect_same_tensors(a.parts[i].second, b.parts[i].second);
    for (size_t j = 0; j < a.parts[i].second.tensors.size(); ++j)  // the order stays, too
      EXPECT_EQ(a.parts[i].second.tensors[j].name, b.parts[i].second.tensors[j].name);
    ASSERT_EQ(a.parts[i].second.scalars.size(), b.parts[i].second.scalars.size());
    for (const NamedScalar& s : a.parts[i].second.scalars) EXPECT_EQ(b.parts[i].second.scalar(s.name), s.value);
  }
  EXPECT_EQ(a.integers, b.integers);
  EXPECT_EQ(a.numbers, b.numbers);
  EXPECT_EQ(a.texts, b.texts);
}

class CheckpointFile : public testing::Test {
 protected:
  void SetUp() override {
    if (!have_checkpoints()) GTEST_SKIP() << "needs a build with HDF5; this one has its stub";
  }
  std::string load_error() {
    std::string text = error_of([&] { load_checkpoint(path); });
    const std::string start = "checkpoint: " + path + ": ";
    return text.starts_with(start) ? text.substr(start.size()) : text;
  }
  std::mt19937_64 random{std::random_device{}()};
  TemporaryFolder folder;
  std::string path = (folder / "checkpoint_last.h5").string();
};

TEST_F(CheckpointFile, RoundTripIsBitwise) {
  const Checkpoint saved = random_checkpoint(random);
  save_checkpoint(path, saved);
  expect_same(saved, load_checkpoint(path));
  EXPECT_EQ(folder.files(), 1u);
}

TEST_F(CheckpointFile, EntriesByName) {
  Checkpoint c;
  c.parts = {{"model", {}}};
  c.integers["step"] = 3;
  c.numbers["best"] = 0.5;
  c.texts["model"] = "resnet20";
  EXPECT_EQ(c.integer("step"), 3);
  EXPECT_EQ(c.number("best"), 0.5);
  EXPECT_EQ(c.text("model"), "resnet20");
  EXPECT_TRUE(c.part("model").tensors.empty());
  EXPECT_EQ(error_of([&] { static_cast<void>(c.integer("epoch")); }),
            "checkpoint: expected an entry 'epoch', got none. Was it written by another program?");
  EXPECT_EQ(error_of([&] { static_cast<void>(c.part("optimizer")); }),
            "checkpoint: expected a part 'optimizer', got none. Was it written by another program?");
}

TEST_F(CheckpointFile, WhatIsNoCheckpoint) {
  EXPECT_EQ(load_error(), "expected a checkpoint, got no such file");
  write_file(path, "not at all HDF5");
  EXPECT_EQ(load_error(), "expected an HDF5 file (checkpoint_last.h5), got another format");
  write_file(path, "");
  EXPECT_EQ(load_error(), "expected an HDF5 file (checkpoint_last.h5), got another format");
  path = folder.path().string();
  EXPECT_EQ(load_error(), "expected a checkpoint, got something that is not a file");
}

/// Replaces the content of a checkpoint and gives it a seal that fits.
void write_sealed(const std::string& path, const std::string& content) {
  AtomicFile file(path, "test");
  write_file(file.temporary(), content);
  seal(file);
  file.commit();
}

TEST_F(CheckpointFile, AFlippedBitInATensorUnderAWholeSealNamesIt) {
  Checkpoint c;
  c.parts = {{"model", {}}};
  c.parts[0].second.tensors = {{"conv1.weight", test::random_bits({1000}, DType::f32, random)},
                               {"fc.weight", test::random_bits({1000}, DType::f32, random)}};
  save_checkpoint(path, c);
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

TEST_F(CheckpointFile, CutShort) {
  save_checkpoint(path, random_checkpoint(random));
  const std::string whole = read_file(path);
  for (int i = 0; i < 50; ++i) {
    write_file(path, whole.substr(0, random() % whole.size()));
    EXPECT_THROW(load_checkpoint(path), Error);
  }
  write_file(path, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(load_error(), "damaged or cut short: it does not end with a seal. Resume from another checkpoint");
  write_sealed(path, whole.substr(0, whole.size() / 2));  // sealed by somebody else: libhdf5's own check
  EXPECT_EQ(load_error(), "damaged or cut short. Resume from another checkpoint");
}

TEST_F(CheckpointFile, AnyFlippedBitIsFound) {
  Checkpoint saved;
  saved.parts = {{"model", {}}};
  saved.parts[0].second.tensors = {{"a", test::random_bits({5}, DType::f32, random)},
                                   {"b", test::random_bits({3, 2}, DType::i64, random)}};
  saved.integers = {{"step", 60}};
  saved.texts = {{"model", "resnet20"}};
  save_checkpoint(path, saved);
  const std::string whole = read_file(path);
  int found = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    write_file(path, bytes);
    found += error_of([&] { load_checkpoint(path); }) != "(no error)" ? 1 : 0;
  }
  EXPECT_EQ(found, 300);
}

TEST_F(CheckpointFile, NamesThatCannotBe) {
  const auto error = [&](const std::string& name) {
    Checkpoint c;
    c.parts = {{"model", {}}};
    c.parts[0].second.tensors = {{name, Tensor::zeros({1})}};
    return error_of([&] { save_checkpoint(path, c); });
  };
  EXPECT_EQ(error("a/b"), "checkpoint: expected a name without '/', got 'a/b'");
  EXPECT_EQ(error(""), "checkpoint: expected a name without '/', got ''");
  Checkpoint c;
  c.parts = {{"model", {}}};
  c.parts[0].second.tensors = {{"w", Tensor::zeros({1})}, {"w", Tensor::zeros({1})}};
  EXPECT_EQ(error_of([&] { save_checkpoint(path, c); }), "checkpoint: expected each name once in model, got 'w' twice");
  c.parts[0].second.tensors = {{"w", Tensor()}};
  EXPECT_EQ(error_of([&] { save_checkpoint(path, c); }), "checkpoint: expected a tensor for 'w', got none");
  path = (folder / "none/a.h5").string();
  EXPECT_THAT(error("w"), testing::HasSubstr("expected an existing folder"));
}

/// Runs the body in a child process and returns its exit code: limits and mounts stay there.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(CheckpointFile, AFileLimitLeavesTheOldCheckpoint) {
  Checkpoint small, large;
  small.integers["step"] = 1;
  large.parts = {{"model", {}}};
  large.parts[0].second.tensors = {{"w", Tensor::zeros({1 << 20})}};
  save_checkpoint(path, small);
  // In a child, as the limit cannot be raised again: too large a file fails with EFBIG, as a full disk with ENOSPC.
  EXPECT_EQ(in_child([&] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{1 << 20, 1 << 20};
              setrlimit(RLIMIT_FSIZE, &limit);
              const std::string text = error_of([&] { save_checkpoint(path, large); });
              const bool told = text == "checkpoint: expected to write " + path +
                                            ", got 'File too large'. The old file is unchanged. Raise the limit on "
                                            "file sizes (ulimit -f).";
              if (!told) std::fprintf(stderr, "%s\n", text.c_str());
              return told ? 0 : 1;
            }),
            0);
  EXPECT_EQ(load_checkpoint(path).integer("step"), 1);
  EXPECT_EQ(folder.files(), 1u);
}

TEST_F(CheckpointFile, AFullDiskLeavesTheOldCheckpoint) {
  if (mount("weft", folder.path().c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "cannot mount a small disk here";
  Checkpoint small, large;
  small.integers["step"] = 1;
  large.parts = {{"model", {}}};
  large.parts[0].second.tensors = {{"w", Tensor::zeros({1 << 20})}};
  save_checkpoint(path, small);
  EXPECT_THAT(error_of([&] { save_checkpoint(path, large); }),
              testing::MatchesRegex("checkpoint: expected to write " + path +
                                    ", got 'No space left on device'. The old file is unchanged. Free some space "
                                    "\\([0-9.]+ [KM]iB are left\\) or write elsewhere."));
  EXPECT_EQ(load_checkpoint(path).integer("step"), 1);
  EXPECT_EQ(folder.files(), 1u);
  save_checkpoint(path, small);  // and the next small one succeeds
  EXPECT_EQ(umount(folder.path().c_str()), 0) << "a file of the full disk is still open";
}

TEST(RequireMatch, ListsAtMostFiveOfEach) {
  const auto state = [](const std::vector<std::string>& names, const Shape& sizes) {
    StateDict s;
    for (const std::string& name : names) s.tensors.push_back({name, Tensor::zeros(sizes)});
    return s;
  };
  require_match("x", state({"a", "b"}, {2}), state({"b", "a"}, {2}));
  EXPECT_EQ(error_of([&] {
              require_match("x", state({"a", "b"}, {2}), state({"b", "c"}, {3}));
            }),
            "x: the tensors do not fit: 1 missing (a); 1 unexpected (c); 1 different (b: expected f32[2], got f32[3]). "
            "Does it belong to another model?");
  EXPECT_EQ(error_of([&] {
              require_match("x", state({"1", "2", "3", "4", "5", "6", "7"}, {2}), {});
            }),
            "x: the tensors do not fit: 7 missing (1, 2, 3, 4, 5, …). Does it belong to another model?");
}

}  // namespace
}  // namespace weft::support
