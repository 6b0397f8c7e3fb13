// SPDX-License-Identifier: Apache-2.0
#include "train/record/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "dist/group/world.h"
#include "io/atomic_file.h"
#include "tests/train/temporary_folder.h"
#include "train/memory.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;

TEST(RunFolder, CreatesAndOpens) {
  const TemporaryFolder folder;
  const RunFolder run(folder / "runs/a");
  EXPECT_TRUE(fs::is_directory(folder / "runs/a"));
  fs::remove(folder / "runs/a" / RunLock::kFile);
  EXPECT_TRUE(fs::is_empty(folder / "runs/a"));
  EXPECT_EQ(run.metrics(), folder / "runs/a/metrics.jsonl");
}

TEST(RunFolder, ANewCheckpointReplacesAShardedOne) {
  const TemporaryFolder folder;
  const RunFolder run(folder / "run");
  const fs::path sharded = run.file("checkpoint_last");
  fs::create_directories(sharded);
  fs::create_directories(run.last_checkpoint() / "in the way");
  EXPECT_FALSE(error_of([&] { run.save(RunFolder::kLastCheckpoint, {}); }).empty());
  EXPECT_TRUE(fs::exists(sharded)) << "there is no other yet";
  fs::remove_all(run.last_checkpoint());
  run.save(RunFolder::kLastCheckpoint, {});
  EXPECT_EQ(find_checkpoint(run.last_checkpoint()), run.last_checkpoint());
  EXPECT_FALSE(fs::exists(sharded));
}

TEST(RunFolder, WritesConfigAndSummary) {
  const TemporaryFolder folder;
  const RunFolder run(folder.path());
  run.write_config("lr = 0.1\n");
  EXPECT_EQ(read_file(folder / "config.toml"), "lr = 0.1\n");
  run.write_summary({{"val_accuracy", 0.75},
                     {"best_epoch", int64_t{3}},
                     {"model", "resnet20"},
                     {"ok", true},
                     {"loss", std::nan("")}});
  EXPECT_EQ(read_file(folder / "summary.json"),
            "{\n  \"val_accuracy\": 0.75,\n  \"best_epoch\": 3,\n  \"model\": \"resnet20\",\n  \"ok\": true,\n"
            "  \"loss\": null\n}\n");
  EXPECT_EQ(folder.files(), 3u) << "with that of the lock";
}

TEST(RunFolder, Errors) {
  const TemporaryFolder folder;
  const std::string file = (folder / "file").string();
  write_file(file, "x");
  EXPECT_EQ(error_of([&] { RunFolder run(file); }), "run folder: expected a folder, got the file " + file);
  EXPECT_EQ(error_of([&] { RunFolder run(file + "/deeper"); }),
            "run folder: expected to create " + file + "/deeper, got 'Not a directory'. Name another folder");
  EXPECT_EQ(error_of([] { RunFolder run(""); }), "run folder: expected a path, got an empty one");
  EXPECT_THAT(error_of([] { RunFolder run("/proc/1"); }),
              testing::StartsWith(
                  "run folder: expected a folder that can be written, got /proc/1 (run folder: expected to write "));
}

TEST(RunFolder, ANewRunOverwritesNoOther) {
  const TemporaryFolder folder;
  const RunFolder run(folder.path());
  const auto left = [&] {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.path()))
      if (const std::string name = entry.path().filename(); name != RunLock::kFile) names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
  };
  const dist::World alone = dist::World::around(dist::make_process_group_alone());
  const auto begin = [&](const NewRun& how) { open_run_folder(folder.path(), alone, how); };
  const NewRun how{.flags = "--resume continues it", .own_names = {"weights.safetensors", "board"}};
  // A run's first files are removed; foreign files stay.
  const std::vector<std::string> beginnings{"config.toml", "config.yaml", "metrics.jsonl", "events.out.tfevents.1.a"};
  for (const std::string& name : beginnings) write_file(run.file(name), "x");
  write_file(run.file("notes.txt"), "mine");
  write_file(run.file("other.safetensors"), "mine");
  fs::create_directory(run.file("board"));
  begin(how);
  EXPECT_THAT(left(), testing::ElementsAre("notes.txt", "other.safetensors"));
  // Results stay, until they may go.
  NewRun replacing = how;
  replacing.overwrite = true;
  for (const char* result :
       {"summary.json", "checkpoint_last.safetensors", "checkpoint_best.h5", "checkpoint-12", "weights.safetensors"}) {
    write_file(run.file(result), "x");
    write_file(run.file("metrics.jsonl"), "x");
    EXPECT_EQ(error_of([&] { begin(how); }),
              str("run folder: expected a new folder, got ", folder.path().string(), " with ", result,
                  " of another run. --resume continues it, --overwrite replaces it"));
    EXPECT_TRUE(fs::exists(run.metrics()));
    begin(replacing);
    EXPECT_THAT(left(), testing::ElementsAre("notes.txt", "other.safetensors")) << result;
  }
}

TEST(RunFolder, RanksOpenItTogether) {
  const TemporaryFolder folder;
  std::array<bool, 3> have{};
  dist::run_ranks(3, [&](const dist::ProcessGroupPtr& group) {
    const dist::World ranks = dist::World::around(group);
    const auto run = open_run_folder(folder / "a", ranks);
    EXPECT_TRUE(fs::exists(folder / "a")) << "nobody goes on before it is open";
    have[static_cast<size_t>(ranks.rank())] = run != nullptr;
  });
  EXPECT_THAT(have, testing::ElementsAre(true, false, false));

  write_file(folder / "b", "x");
  std::array<std::string, 3> errors;
  dist::run_ranks(3, [&](const dist::ProcessGroupPtr& group) {
    const dist::World ranks = dist::World::around(group);
    errors[static_cast<size_t>(ranks.rank())] = error_of([&] { open_run_folder(folder / "b", ranks); });
  });
  EXPECT_THAT(errors, testing::Each("run folder: expected a folder, got the file " + (folder / "b").string()));
}

TEST(AtomicFile, AnExceptionLeavesTheOldFile) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  try {
    const AtomicFile file(folder / "a", "test");
    write_file(file.temporary(), "half of the n");
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(folder.files(), 1u);
  write_atomically(folder / "a", "new", "test");
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(AtomicFile, RemovesWhatCrashedWritersLeft) {
  const test::TemporaryFolder folder;
  // A process id that nobody has: this child's, which is gone.
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  const auto file = [&](const std::string& name, int minutes) {
    test::write_file(folder / name, "x");
    fs::last_write_time(folder / name, fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
  };
  file(str(".a.", gone, ".tmp"), 11);
  file(str(".b.", gone, ".tmp"), 11);         // another file's
  file(str(".a.", ::getppid(), ".tmp"), 11);  // its process lives
  file(".a.new.tmp", 11);                     // no process
  write_atomically(folder / "a", "text", "test");
  EXPECT_EQ(folder.files(), 4u);
  EXPECT_FALSE(fs::exists(folder / str(".a.", gone, ".tmp")));
  file(str(".a.", gone, ".tmp"), 9);  // perhaps another machine's, still at work
  write_atomically(folder / "a", "text", "test");
  EXPECT_EQ(folder.files(), 5u);
}

TEST(AtomicFile, Errors) {
  const TemporaryFolder folder;
  const std::string missing = (folder / "none").string();
  EXPECT_EQ(error_of([&] { write_atomically(missing + "/a", "", "test"); }),
            "test: expected an existing folder for " + missing + "/a, got none at " + missing);
  EXPECT_EQ(error_of([&] { write_atomically(folder.path(), "", "test"); }),
            "test: expected a file, got the folder " + folder.path().string());
  EXPECT_EQ(error_of([&] { write_atomically("", "", "test"); }), "test: expected a file name, got ''");
}

TEST(PeakMemory, GrowsWithWhatIsTouched) {
  const int64_t before = peak_memory_bytes();
  EXPECT_GT(before, 1 << 20);
  const std::vector<char> touched(static_cast<size_t>(before) + (64 << 20), 1);
  EXPECT_GE(peak_memory_bytes(), before + (60 << 20));
  EXPECT_EQ(touched.back(), 1);
}

}  // namespace
}  // namespace weft::train
