// SPDX-License-Identifier: Apache-2.0
#include "train/resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/atomic_file.h"
#include "tests/train/temporary_folder.h"
#include "train/shell_word.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;

Checkpoint of_step(int64_t step) {
  Checkpoint checkpoint;
  checkpoint.parts = {{"model", {{{"w", Tensor::full({100}, static_cast<double>(step), DType::f32)}}, {}}}};
  checkpoint.integers["step"] = checkpoint.integers["best_epoch"] = step;
  return checkpoint;
}

class Fallback : public testing::Test {
 protected:
  Fallback() {
    for (int64_t step = 1; step <= 3; ++step) run.save(RunFolder::kLastCheckpoint, of_step(step), 2);
  }
  void damage(const fs::path& path) const {
    std::string bytes = read_file(path);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    fs::remove(path);  // not through a second name of the file
    write_file(path, bytes);
  }
  /// The checkpoint that `auto` takes, and its report on stderr.
  std::pair<std::string, std::string> found() const {
    testing::internal::CaptureStderr();
    const std::string path = checkpoint_to_resume("auto", folder.path(), alone);
    return {path, testing::internal::GetCapturedStderr()};
  }

  TemporaryFolder folder;
  RunFolder run{folder.path()};
  dist::World alone = dist::init({.alone = true, .device = "cpu"});
  fs::path last = run.last_checkpoint(), before = kept_file(last, 1);
};

TEST_F(Fallback, ARunFolderMeansItsLastCheckpoint) {
  EXPECT_EQ(checkpoint_to_resume(folder.path().string(), "other", alone), last.string());
  EXPECT_TRUE(goes_on_in(folder.path(), folder.path().string()));
  EXPECT_TRUE(goes_on_in(folder.path(), last.string()));
  EXPECT_FALSE(goes_on_in(folder.path(), ""));
  EXPECT_FALSE(goes_on_in(folder.path(), (folder / "other/a.safetensors").string()));
  fs::create_directory(folder / "empty");  // is said to be empty by load_checkpoint
  EXPECT_EQ(checkpoint_to_resume((folder / "empty").string(), "other", alone), (folder / "empty").string());
}

TEST_F(Fallback, TheLastTwoAreKept) {
  EXPECT_EQ(load_checkpoint(last).integer("step"), 3);
  EXPECT_EQ(load_checkpoint(before).integer("step"), 2);
  EXPECT_FALSE(fs::exists(kept_file(last, 2)));
  EXPECT_EQ(found(), std::pair(last.string(), std::string()));
}

TEST_F(Fallback, ADamagedOneIsPassedOverWithOneLine) {
  damage(last);
  EXPECT_EQ(found(),
            std::pair(before.string(), "warning: checkpoint: " + last.string() +
                                           ": damaged: its bytes do not fit the checksum at its end. Resume from "
                                           "another checkpoint; going on from " +
                                           before.string() + "\n"));
  fs::remove(last);
  EXPECT_EQ(found(), std::pair(before.string(),
                               "warning: " + last.string() + " is missing; going on from " + before.string() + "\n"));
}

TEST_F(Fallback, WithoutAWholeOneNothingBeginsAnew) {
  damage(last);
  damage(before);
  EXPECT_THAT(error_of([&] { found(); }), testing::HasSubstr("checkpoint_last.safetensors: damaged: "));
  testing::internal::GetCapturedStderr();
}

TEST_F(Fallback, ALinkThatLeadsNowhereIsAnError) {
  fs::remove(last);
  fs::remove(before);
  EXPECT_EQ(found().first, "") << "there is none";
  fs::create_symlink("elsewhere.safetensors", last);
  EXPECT_EQ(error_of([&] { found(); }),
            "checkpoint: " + last.string() + ": expected a checkpoint, got a link to a file that is not there");
  testing::internal::GetCapturedStderr();
}

TEST_F(Fallback, TheBestOneIsLookedAt) {
  EXPECT_FALSE(has_best_of(&run, 3, alone)) << "there is none";
  run.save(RunFolder::kBestCheckpoint, of_step(3));
  EXPECT_TRUE(has_best_of(&run, 3, alone));
  EXPECT_FALSE(has_best_of(&run, 2, alone));
  damage(run.best_checkpoint());
  EXPECT_FALSE(has_best_of(&run, 3, alone));
}

TEST(ChangedSettings, AreNamedWithBothValues) {
  const std::string before = "# one rank\nlr = 0.1\nseed = 1\nout = \"a\"\nmean = [1, 2]\nold = 3\n";
  const std::string now = "lr = 0.2\nseed = 1\nout = \"b\"\nmean = [1, 3]\nnew = 3\n";
  EXPECT_EQ(text_of(changed_settings(before, now, "out")), "lr 0.1 -> 0.2, mean [1, 2] -> [1, 3]");
  EXPECT_TRUE(changed_settings(before, before, "").empty());
}

TEST(ShellWord, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shell_word("runs/a-1_b.c=2"), "runs/a-1_b.c=2");
  EXPECT_EQ(shell_word("my run"), "'my run'");
  EXPECT_EQ(shell_word("it's; rm -rf $HOME"), "'it'\\''s; rm -rf $HOME'");
  EXPECT_EQ(shell_word(""), "''");
}

/// The error that two ranks end with; "(no error)".
std::string error_of_two(const std::function<void(const dist::World&)>& body) {
  return error_of(
      [&] { dist::run_ranks(2, [&](const dist::ProcessGroupPtr& group) { body(dist::World::around(group)); }); });
}

TEST(Ranks, HaveTheSameSettingsButForPlaces) {
  const auto with = [](const std::string& one, const std::string& other) {
    return error_of_two([&](const dist::World& world) {
      require_same_settings(world, "lr = 0.1\n" + (world.is_first() ? one : other), "out data");
    });
  };
  EXPECT_EQ(with("out = \"a\"\nseed = 1\n", "out = \"b\"\nseed = 1\n"), "(no error)");
  EXPECT_EQ(with("seed = 1\n", "seed = 2\n"),
            "settings: the flags are not the same on all ranks: at entry 2 rank 0 has 'seed = 1', rank 1 has 'seed = "
            "2'. Start all ranks with the same flags");
}

TEST(Ranks, HaveReadTheSameCheckpoint) {
  const auto with = [](int64_t one, int64_t other, double value) {
    return error_of_two([&](const dist::World& world) {
      Checkpoint saved = of_step(world.is_first() ? one : other);
      if (!world.is_first()) saved.parts[0].second.tensors[0].tensor.fill_(value);
      require_same_checkpoint(world, "run/last", saved);
    });
  };
  EXPECT_EQ(with(7, 7, 7), "(no error)");
  EXPECT_EQ(with(7, 5, 7),
            "checkpoint run/last: what was read is not the same on all ranks: at entry 1 rank 0 has 'best_epoch = 7', "
            "rank 1 has 'best_epoch = 5'. It must be one file, in a folder that all ranks share");
  EXPECT_THAT(with(7, 7, 8), testing::HasSubstr("rank 0 has 'model/w with the checksum "));
}

}  // namespace
}  // namespace weft::train
