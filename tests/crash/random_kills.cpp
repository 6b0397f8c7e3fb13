// SPDX-License-Identifier: Apache-2.0
// kill -9 at random moments: a program that does nothing but write checkpoints, and train_image.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <iostream>
#include <random>
#include <thread>

#include "tests/crash/kills.h"
#include "tests/crash/known_state.h"
#include "tests/train/temporary_folder.h"

namespace weft::crash {
namespace {

namespace fs = std::filesystem;

void sleep_ms(double milliseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

/// Whether a write of this process was cut off: its temporary file is still there.
bool left_a_temporary(const fs::path& folder, pid_t process) {
  const std::string end = str(".", process, ".tmp");
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().ends_with(end)) return true;
  return false;
}

/// Which writes have begun and ended, in memory that outlives the writer.
struct Progress {
  std::atomic<int64_t> begun{0}, ended{0};
};

[[noreturn]] void write_for_ever(const fs::path& path, Progress& progress) {
  for (int64_t step = progress.ended + 1;; ++step) {
    const Checkpoint state = state_of(step, 100'000);
    progress.begun = step;
    save_checkpoint(path, state);
    progress.ended = step;
  }
}

TEST(RandomKills, AWriterAlwaysLeavesAWholeCheckpoint) {
  const test::TemporaryFolder folder;
  const fs::path path = folder / "checkpoint_last.safetensors";
  void* memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Progress& progress = *new (memory) Progress;
  save_checkpoint(path, state_of(0, 100'000));
  std::mt19937_64 random{std::random_device{}()};
  std::uniform_real_distribution<double> delay(1, 60);
  int survivors = 0, inside = 0;
  for (int kill = 0; kill < kills(); ++kill) {
    const int64_t before = progress.ended;
    const pid_t writer = ::fork();
    if (writer == 0) write_for_ever(path, progress);
    while (progress.begun <= before && ::waitpid(writer, nullptr, WNOHANG) == 0) sleep_ms(0.2);
    if (kill % 2 == 0)
      sleep_ms(delay(random));
    else  // by chance alone few kills may fall inside a write
      while (!left_a_temporary(folder.path(), writer)) sleep_ms(0.05);
    ASSERT_EQ(::kill(writer, SIGKILL), 0) << "the writer ended by itself";
    ::waitpid(writer, nullptr, 0);
    inside += left_a_temporary(folder.path(), writer) ? 1 : 0;
    const int64_t step = step_of(path);
    EXPECT_GE(step, progress.ended);
    EXPECT_LE(step, progress.begun);
    survivors += step >= progress.ended && step <= progress.begun ? 1 : 0;
    progress.begun = progress.ended = step;
  }
  munmap(memory, sizeof(Progress));
  std::cout << "writer: " << survivors << " of " << kills() << " checkpoints survived kill -9, " << inside
            << " kills fell inside a write" << std::endl;
  EXPECT_EQ(survivors, kills());
  EXPECT_GE(inside * 4, kills()) << "kills ought to fall inside a write, or the test shows nothing";
}

// One step an epoch, so that train_image does little but train and save.
const char* const kProgram[] = {TRAIN_IMAGE,  "--data",    "random:32x8x8x3",
                                "--model",    "resnet8",   "--batch-size",
                                "32",         "--epochs",  "1000000",
                                "--schedule", "constant",  "--lr",
                                "0.01",       "--workers", "0",
                                "--device",   "cpu",       "--resume",
                                "auto"};

pid_t start_run(const fs::path& out, const std::string& max_steps) {
  const pid_t run = ::fork();
  if (run != 0) return run;
  std::vector<const char*> arguments(std::begin(kProgram), std::end(kProgram));
  for (const char* more : {"--out", out.c_str(), "--max-steps", max_steps.c_str()}) arguments.push_back(more);
  arguments.push_back(nullptr);
  static_cast<void>(std::freopen((out.string() + ".log").c_str(), "a", stdout) != nullptr);
  static_cast<void>(std::freopen((out.string() + ".log").c_str(), "a", stderr) != nullptr);
  ::execv(arguments[0], const_cast<char* const*>(arguments.data()));
  ::_exit(127);
}

Checkpoint run_to(const fs::path& out, int64_t step) {
  int status = 0;
  ::waitpid(start_run(out, std::to_string(step)), &status, 0);
  EXPECT_EQ(status, 0) << test::read_file(out.string() + ".log");
  return load_checkpoint(out / "checkpoint_last.safetensors");
}

bool same_bits(const StateDict& a, const StateDict& b) {
  if (a.tensors.size() != b.tensors.size()) return false;
  for (const NamedTensor& entry : a.tensors) {
    const Tensor other = b.tensor(entry.name);
    if (!other.defined() || other.nbytes() != entry.tensor.nbytes() ||
        std::memcmp(other.raw_data(), entry.tensor.raw_data(), other.nbytes()) != 0)
      return false;
  }
  return true;
}

TEST(RandomKills, ATrainingRunGoesOnFromEveryKillToTheSameBits) {
  const test::TemporaryFolder folder;
  const fs::path out = folder / "killed", checkpoint = out / "checkpoint_last.safetensors";
  int64_t step = run_to(out, 1).integer("step");
  std::mt19937_64 random{std::random_device{}()};
  std::uniform_real_distribution<double> delay(0, 1);  // ms; a write takes about one
  int survivors = 0, inside = 0;
  for (int kill = 0; kill < kills(); ++kill) {
    const auto before = fs::last_write_time(checkpoint);
    const pid_t run = start_run(out, "0");
    while (fs::last_write_time(checkpoint) == before) {  // until it has saved once
      ASSERT_EQ(::waitpid(run, nullptr, WNOHANG), 0) << test::read_file(out.string() + ".log");
      sleep_ms(0.5);
    }
    while (!left_a_temporary(out, run)) sleep_ms(0.1);  // until it writes again: by chance alone few kills would hit
    sleep_ms(delay(random));
    ASSERT_EQ(::kill(run, SIGKILL), 0);
    ::waitpid(run, nullptr, 0);
    inside += left_a_temporary(out, run) ? 1 : 0;
    const Checkpoint left = load_checkpoint(checkpoint);
    EXPECT_GT(left.integer("step"), step);
    EXPECT_EQ(left.integer("step"), left.integer("epoch"));
    if (fs::exists(out / "checkpoint_best.safetensors")) load_checkpoint(out / "checkpoint_best.safetensors");
    survivors += left.integer("step") > step ? 1 : 0;
    step = left.integer("step");
  }
  std::cout << "train_image: " << survivors << " of " << kills() << " checkpoints survived kill -9, " << inside
            << " kills fell inside a write" << std::endl;
  EXPECT_GE(inside * 4, kills());
  const Checkpoint killed = run_to(out, step + 2), whole = run_to(folder / "whole", step + 2);
  for (const char* part : {"model", "optimizer"}) EXPECT_TRUE(same_bits(killed.part(part), whole.part(part))) << part;
  std::cout << "train_image: after " << step + 2
            << " steps the killed run and one that was left alone have the same bits\n";
}

}  // namespace
}  // namespace weft::crash
