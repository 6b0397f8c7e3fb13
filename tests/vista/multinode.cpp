// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "apps/support/run_reader.h"
#include "io/torch/torch_object.h"
#include "tests/support/compare.h"
#include "tests/vista/program.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

/// The lines of one rank: epochs first … last - 1, of which `resumed` is where a snapshot was.
std::string expected_lines(int rank, int first, int last, int every, int steps, bool resumed = false) {
  std::string text;
  if (resumed) text += str("Loading snapshot\nResuming training from snapshot at Epoch ", first, '\n');
  for (int epoch = first; epoch < last; ++epoch) {
    text += str("[GPU", rank, "] Epoch ", epoch, " | Batchsize: 32 | Steps: ", steps, "\n");
    if (rank == 0 && epoch % every == 0) text += str("Epoch ", epoch, " | Training snapshot saved at snapshot.pt\n");
  }
  return text;
}

struct Snapshot {
  int64_t epochs_run = -1;
  std::vector<double> weight;
};

Snapshot read_snapshot(const TemporaryFolder& folder) {
  const auto file = read_torch(folder / "snapshot.pt");
  const StateDict state = file.at("MODEL_STATE", "snapshot").state("snapshot");
  EXPECT_EQ(state.tensor("weight").sizes(), (Shape{1, 20}));  // no `module.` before the name
  EXPECT_EQ(state.tensor("bias").sizes(), (Shape{1}));
  return {file.at("EPOCHS_RUN", "snapshot").integer("snapshot"), state.tensor("weight").to_vector<double>()};
}

TEST(Multinode, SavesFiveSnapshotsAndResumesAtTheLast) {
  WEFT_NEEDS_ZIP();
  const TemporaryFolder folder;
  const Outcome first = run_in(folder, "multinode 50 10");
  ASSERT_EQ(first.exit_code, 0) << said(folder);
  EXPECT_EQ(first.output, expected_lines(0, 0, 50, 10, 64));
  EXPECT_EQ(read_snapshot(folder).epochs_run, 40);
  const Outcome second = run_in(folder, "multinode 50 10");
  ASSERT_EQ(second.exit_code, 0) << said(folder);
  EXPECT_EQ(second.output, expected_lines(0, 40, 50, 10, 64, true));
}

TEST(Multinode, ResumingRepeatsNothing) {
  WEFT_NEEDS_ZIP();
  const TemporaryFolder whole, halves;
  ASSERT_EQ(run_in(whole, "multinode 12 3").exit_code, 0) << said(whole);
  ASSERT_EQ(run_in(halves, "multinode 8 3").exit_code, 0) << said(halves);
  EXPECT_EQ(read_snapshot(halves).epochs_run, 6);
  ASSERT_EQ(run_in(halves, "multinode 12 3").exit_code, 0) << said(halves);
  EXPECT_EQ(read_snapshot(halves).epochs_run, 9);
  EXPECT_EQ(read_snapshot(halves).weight, read_snapshot(whole).weight);
}

TEST(Multinode, ItsLogGoesOnWhereTheSnapshotDoes) {
  WEFT_NEEDS_ZIP();
  const TemporaryFolder folder;
  const std::string line = " 4 --log-dir logs";
  ASSERT_EQ(run_in(folder, "multinode 6" + line).exit_code, 0) << said(folder);
  ASSERT_EQ(run_in(folder, "multinode 8" + line).exit_code, 0) << said(folder);  // the snapshot is of epoch 4
  support::RunReader log(folder / "logs");
  log.refresh();
  const support::Curve* loss = log.find("train_loss");
  ASSERT_NE(loss, nullptr);
  std::vector<double> steps;
  for (const support::CurvePoint& point : loss->points) steps.push_back(point.step);
  EXPECT_EQ(steps, (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}));
  const std::string text = read_text(folder / "logs/metrics.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 8);  // the first run's lines of the epochs 5 and 6 were removed
}

TEST(Multinode, SaysWhatIsWrong) {
  WEFT_NEEDS_ZIP();
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& arguments, int code) {
    EXPECT_EQ(run_in(folder, "multinode " + arguments).exit_code, code) << said(folder);
    return said(folder);
  };
  EXPECT_THAT(refusal("", 2), HasSubstr("multinode: error: expected total_epochs (epochs to train)"));
  EXPECT_THAT(refusal("5 1 --backend tcp", 2), HasSubstr("--backend: unknown value 'tcp'"));
  std::ofstream(folder / "snapshot.pt") << "not a snapshot";
  EXPECT_THAT(refusal("5 1", 1), HasSubstr("snapshot.pt"));
  write_torch(folder / "snapshot.pt", TorchObject{TorchObject::Dict{{"EPOCHS_RUN", {int64_t{3}}}}});
  EXPECT_THAT(refusal("5 1", 1), HasSubstr("MODEL_STATE"));
  ASSERT_EQ(run_in(folder, "rm snapshot.pt; multinode 50 10 --dry-run").exit_code, 0);
  EXPECT_THAT(said(folder), HasSubstr("multinode: would train Linear(20, 1) on "));
  EXPECT_FALSE(std::filesystem::exists(folder / "snapshot.pt"));
}

#if WEFT_HAVE_RANKS

void expect_both_ranks(const TemporaryFolder& folder, const Outcome& run, int first, bool resumed) {
  ASSERT_EQ(run.exit_code, 0) << run.output << said(folder);
  EXPECT_EQ(lines_with(run.output, "[GPU0]"), lines_with(expected_lines(0, first, 50, 10, 32), "[GPU0]")) << run.output;
  EXPECT_EQ(lines_with(run.output, "[GPU1]"), lines_with(expected_lines(1, first, 50, 10, 32), "[GPU1]")) << run.output;
  EXPECT_EQ(lines_with(run.output, "Epoch "), lines_with(expected_lines(0, first, 50, 10, 32), "Epoch "));
  const std::string loading = resumed ? "Loading snapshot\nLoading snapshot\n" : "";
  EXPECT_EQ(lines_with(run.output, "Loading"), loading) << run.output;
  const std::string line = resumed ? str("Resuming training from snapshot at Epoch ", first, '\n') : "";
  EXPECT_EQ(lines_with(run.output, "Resuming"), line + line) << run.output;
  EXPECT_EQ(read_snapshot(folder).epochs_run, 40);
}

TEST(Multinode, RanksWithOtherFlagsAreNamed) {
  const WithoutGpus on_the_cpu;
  const TemporaryFolder folder;
  const Outcome run = run_in(folder, "weft-run --nproc_per_node 2 sh -c '" BIN "/multinode 5 1 --seed $RANK'");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(said(folder), HasSubstr("settings: the flags are not the same on all ranks: at entry "));
  EXPECT_THAT(said(folder), HasSubstr(" rank 0 has 'seed = 0', rank 1 has 'seed = 1'. Start all ranks with the same"));
  EXPECT_FALSE(std::filesystem::exists(folder / "snapshot.pt"));
}

/// Two ranks take together the batches of one with 64 pairs.
void expect_weights_of_one_rank(const TemporaryFolder& folder) {
  const TemporaryFolder alone;
  ASSERT_EQ(run_in(alone, "multinode 50 10 --batch_size 64").exit_code, 0) << said(alone);
  EXPECT_TRUE(near(read_snapshot(folder).weight, read_snapshot(alone).weight, tolerance(DType::f32, 40 * 2048)));
}

TEST(Multinode, UnderWeftRun) {
  const WithoutGpus on_the_cpu;
  WEFT_NEEDS_ZIP();
  const TemporaryFolder folder;
  expect_both_ranks(folder, run_in(folder, "weft-run --nproc_per_node 2 " BIN "/multinode 50 10"), 0, false);
  expect_weights_of_one_rank(folder);
  expect_both_ranks(folder, run_in(folder, "weft-run --nproc_per_node 2 " BIN "/multinode 50 10"), 40, true);
}

// 2048 pairs in steps of 33: the last one has two pairs for three ranks.
TEST(Multinode, ThreeRanksTrainEachPairOnce) {
  const WithoutGpus on_the_cpu;
  WEFT_NEEDS_ZIP();
  const TemporaryFolder alone, folder;
  ASSERT_EQ(run_in(alone, "multinode 7 3 --batch_size 33").exit_code, 0) << said(alone);
  ASSERT_EQ(run_in(folder, "weft-run --nproc_per_node 3 " BIN "/multinode 7 3 --batch_size 11").exit_code, 0)
      << said(folder);
  EXPECT_TRUE(near(read_snapshot(folder).weight, read_snapshot(alone).weight, tolerance(DType::f32, 6 * 2048)));
}

#if WEFT_HAVE_MPI

const std::string kMpirun = "mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2 ";

TEST(Multinode, UnderMpirun) {
  const WithoutGpus on_the_cpu;
  WEFT_NEEDS_ZIP();
  const TemporaryFolder folder;
  expect_both_ranks(folder, run_in(folder, kMpirun + BIN "/multinode 50 10"), 0, false);
  expect_weights_of_one_rank(folder);
}

TEST(Multinode, RunSh) {
  const WithoutGpus on_the_cpu;
  WEFT_NEEDS_ZIP();
  const TemporaryFolder folder;
  // A port that nobody has now.
  const std::string line =
      "MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind((\"\", 0)); "
      "print(s.getsockname()[1])') WEFT_JOB_SECRET=known-to-two-ranks " +
      kMpirun + SCRIPTS "/run.sh localhost 2";
  expect_both_ranks(folder, run_in(folder, line), 0, false);
  expect_both_ranks(folder, run_in(folder, line), 40, true);
}

TEST(Multinode, RunShSaysWhatIsWrong) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_in(folder, SCRIPTS "/run.sh localhost").exit_code, 2);
  EXPECT_EQ(said(folder), "usage: mpirun -np NODES --map-by ppr:1:node run.sh HOST NODES\n");
  EXPECT_NE(run_in(folder, "env -u OMPI_COMM_WORLD_RANK " SCRIPTS "/run.sh localhost 2").exit_code, 0);
  EXPECT_THAT(said(folder), HasSubstr("start run.sh with mpirun"));
}

#endif
#endif

}  // namespace
}  // namespace weft::tests
