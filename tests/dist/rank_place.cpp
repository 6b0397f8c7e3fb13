// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/rank_place.h"

#include <algorithm>

#include "dist/group/group_record.h"
#include "dist/group/world.h"
#include "kernels/runtime/runtime.h"
#include "tests/support/error_text.h"

namespace weft::dist {
namespace {

using ::testing::HasSubstr;

constexpr Device kCpu{}, kFirst{DeviceKind::cuda, 0}, kSecond{DeviceKind::cuda, 1};

RankPlace place(const std::string& host, Device device, const std::string& gpu, const std::string& backend) {
  return {
      .host = host, .machine = host, .local_rank = 0, .device = device, .gpu = gpu, .backend = backend, .error = {}};
}

TEST(RankPlace, DeviceFollowsTheLocalRank) {
  EXPECT_EQ(choose_device("auto", 3, 0), kCpu);
  EXPECT_EQ(choose_device("auto", 3, 1), kFirst) << "a launcher may show each rank its own GPU";
  EXPECT_EQ(choose_device("auto", 1, 4), kSecond);
  EXPECT_EQ(choose_device("auto", 5, 4), kSecond);
  EXPECT_EQ(choose_device("cuda", 1, 4), kSecond) << "every rank of a job says --device cuda";
  EXPECT_EQ(choose_device("cuda:1", 0, 2), kSecond);
  EXPECT_EQ(choose_device("cpu", 2, 4), kCpu);
  EXPECT_EQ(error_text([] { choose_device("cuda:2", 0, 2); }),
            "init: device cuda:2 cannot be used: this process sees 2 GPUs (CUDA_VISIBLE_DEVICES?)");
  EXPECT_EQ(error_text([] { choose_device("cuda", 0, 0); }),
            "init: device cuda:0 cannot be used: this process sees no GPU (CUDA_VISIBLE_DEVICES?)");
  EXPECT_THAT(error_text([] { choose_device("gpu", 0, 2); }),
              HasSubstr("expected cpu, cuda, cuda:N or emulated, got 'gpu'"));
}

TEST(RankPlace, BackendFollowsDeviceAndLauncher) {
  const std::vector<std::string> all{"nccl", "mpi", "gloo"}, no_nccl{"mpi", "gloo"}, no_mpi{"gloo"};
  LaunchEnvironment mpi{.launcher = "Open MPI", .rank = 0, .size = 4}, slurm{.launcher = "Slurm", .rank = 0, .size = 4};
  mpi.is_mpi_rank = true;
  slurm.slurm_tasks = 4;
  EXPECT_EQ(choose_backend("auto", kFirst, slurm, all), "nccl");
  EXPECT_EQ(choose_backend("auto", kFirst, slurm, no_nccl), "gloo");
  EXPECT_EQ(choose_backend("auto", kCpu, mpi, all), "mpi");
  EXPECT_EQ(choose_backend("auto", kCpu, mpi, no_mpi), "gloo");
  EXPECT_EQ(choose_backend("auto", kCpu, slurm, all), "gloo");
  EXPECT_EQ(choose_backend("gloo", kFirst, mpi, all), "gloo");
  LaunchEnvironment pmi = slurm;
  pmi.launcher = "PMI";
  pmi.is_mpi_rank = true;
  EXPECT_EQ(choose_backend("auto", kCpu, pmi, all), "gloo");
  EXPECT_EQ(choose_backend("mpi", kCpu, pmi, all), "mpi");
  EXPECT_EQ(choose_backend("auto", kCpu, pmi, {"mpi"}), "mpi");
  EXPECT_EQ(choose_backend("mpi", kCpu, mpi, no_mpi), "mpi") << "the backend's own stub says how to build it in";
  EXPECT_EQ(
      error_text([&] { choose_backend("mpi", kCpu, slurm, all); }),
      "init: backend mpi: this process is no MPI rank (Slurm has started 4 tasks, but each would be an MPI world of "
      "its own). Start with srun --mpi=pmix or mpirun, or use backend gloo");
  EXPECT_EQ(
      error_text([&] { choose_backend("mpi", kCpu, {.launcher = "RANK and WORLD_SIZE"}, all); }),
      "init: backend mpi: this process is no MPI rank (RANK and WORLD_SIZE). Start with mpirun or srun --mpi=pmix, or "
      "use backend gloo");
  EXPECT_EQ(
      error_text([&] { choose_backend("auto", kCpu, slurm, {"nccl"}); }),
      "init: no backend for 4 ranks on cpu: this build has 1 that cannot be used here. apt-get install libgloo-dev (or "
      "libopenmpi-dev openmpi-bin, and start with mpirun), then configure and build again");
}

TEST(RankPlace, TwoRanksOnOneGpuAreRefusedWithATable) {
  const std::vector<RankPlace> places{place("gpu1", kFirst, "GPU-aa", "nccl"), place("gpu1", kSecond, "GPU-bb", "nccl"),
                                      place("gpu10", kFirst, "GPU-cc", "nccl"),
                                      place("gpu10", kFirst, "GPU-cc", "nccl")};
  EXPECT_EQ(
      error_text([&] { check_places(places); }),
      "init: ranks 2 and 3 are on one GPU, which NCCL refuses. Start at most as many ranks on a host as it has GPUs, "
      "let the launcher show each rank its own or all of them all (CUDA_VISIBLE_DEVICES), or use backend gloo or mpi\n"
      "  rank  host   device  GPU     backend\n"
      "  0     gpu1   cuda:0  GPU-aa  nccl\n"
      "  1     gpu1   cuda:1  GPU-bb  nccl\n"
      "  2     gpu10  cuda:0  GPU-cc  nccl\n"
      "  3     gpu10  cuda:0  GPU-cc  nccl");
  std::vector<RankPlace> shared = places;
  for (RankPlace& rank : shared) rank.backend = "gloo";
  check_places(shared);
}

TEST(RankPlace, DifferentBackendsAndOthersErrorsAreNamed) {
  std::vector<RankPlace> places{place("gpu1", kFirst, "GPU-aa", "nccl"), place("login", kCpu, "", "gloo")};
  const std::string text = error_text([&] { check_places(places); });
  EXPECT_THAT(text, HasSubstr("init: rank 1 on login would use backend gloo, rank 0 on gpu1 nccl: name one backend"));
  EXPECT_THAT(text, HasSubstr("\n  1     login  cpu     -       gloo"));
  places[1].error = "init: no backend";
  EXPECT_EQ(error_text([&] { check_places(places); }), "init: no backend (rank 1 on login)");
}

TEST(RankPlace, TheTableOfALargeJobIsCut) {
  std::vector<RankPlace> places(1000, place("a", kCpu, "", "gloo"));
  places.back().backend = "mpi";
  const std::string text = error_text([&] { check_places(places); });
  EXPECT_THAT(text, ::testing::StartsWith("init: rank 999 on a would use backend mpi, rank 0 on a gloo: "));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + kTableRows) << "a title and its rows";
}

TEST(RankPlace, LocalRanksAreCountedByHost) {
  const std::vector<RankPlace> places{place("a", kCpu, "", ""), place("b", kCpu, "", ""), place("a", kCpu, "", ""),
                                      place("a", kCpu, "", "")};
  const std::vector<LocalRank> locals = local_ranks(places);
  EXPECT_EQ(locals[0].rank, 0);
  EXPECT_EQ(locals[2].rank, 1);
  EXPECT_EQ(locals[3].rank, 2);
  EXPECT_EQ(locals[3].size, 3);
  EXPECT_EQ(locals[1].rank, 0);
  EXPECT_EQ(locals[1].size, 1);
}

TEST(World, AloneWithoutALauncher) {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_STEP_ID", "SLURM_STEPID"})
    ::unsetenv(name);
  World world = init({.device = "cpu"});
  EXPECT_EQ(world.size(), 1);
  EXPECT_TRUE(world.is_first());
  EXPECT_EQ(world.local_rank(), 0);
  EXPECT_EQ(world.launcher(), "alone");
  EXPECT_EQ(world.device(), kCpu);
  EXPECT_EQ(world.group()->backend(), "alone");
  EXPECT_EQ(world.store(), nullptr);
  EXPECT_EQ(world.membership(), nullptr);
  world.end();
  EXPECT_EQ(init().device(), kernels::runtime(DeviceKind::cuda).device_count() > 0 ? kFirst : kCpu);
}

TEST(World, AroundAGroupOfThreads) {
  run_ranks(3, [](const ProcessGroupPtr& group) {
    const World world = World::around(group, kSecond);
    EXPECT_EQ(world.rank(), group->rank());
    EXPECT_EQ(world.local_size(), 3);
    EXPECT_EQ(world.device(), kSecond);
    EXPECT_EQ(world.launcher(), "threads");
  });
}

/// As nccl: a collective that a failure has ended reports so to later waiters.
class FailsAfterTheWait final : public ProcessGroup {
 public:
  FailsAfterTheWait() : ProcessGroup(std::make_shared<GroupRecord>("world", 0, 2, GroupOptions{})) {}
  std::string_view backend() const override { return "late"; }
  ProcessGroupPtr split(int, int, const std::string&) override { return nullptr; }
  void abort(const std::string&) override {}

 protected:
  WorkPtr enqueue(CollectivePtr c) override {
    struct Late final : Work {
      void wait() override {
        WEFT_CHECK(first, "half a sum");
        first = false;
      }
      bool done() override { return true; }
      bool first = true;
    };
    c->output.zero_();
    return std::make_shared<Late>();
  }
};

TEST(World, UsesNoResultOfACollectiveThatHasFailed) {
  const ProcessGroupPtr group = std::make_shared<FailsAfterTheWait>();
  const World world = World::around(group, kCpu);
  EXPECT_EQ(error_text([&] { world.sum({1}, "x"); }), "half a sum");
  EXPECT_EQ(error_text([&] { world.max(1, "x"); }), "half a sum");
  EXPECT_EQ(error_text([&] { group->all_gather_text("x"); }), "half a sum");
}

}  // namespace
}  // namespace weft::dist
