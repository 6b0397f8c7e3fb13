// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/launch_environment.h"

#include "tests/support/error_text.h"

namespace weft::dist {
namespace {

using ::testing::HasSubstr;

/// Both maps; the second one wins.
EnvironmentVariables with(EnvironmentVariables base, const EnvironmentVariables& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

/// The variables of mpirun of Open MPI 4.1.
EnvironmentVariables open_mpi(int rank, int size, int local_rank, int local_size) {
  return {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_SIZE", std::to_string(size)},
          {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(local_rank)},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(local_size)},
          {"PMIX_RANK", std::to_string(rank)},
          {"PMIX_NAMESPACE", "1949171713"}};
}

/// The variables of torchrun.
EnvironmentVariables torchrun(int rank, int size, int local_rank, int local_size, const std::string& run = "none") {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_RANK", std::to_string(local_rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(local_size)},
          {"GROUP_RANK", std::to_string(rank / local_size)},
          {"GROUP_WORLD_SIZE", std::to_string(size / local_size)},
          {"MASTER_ADDR", "gpu1"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_RESTART_COUNT", "0"},
          {"TORCHELASTIC_RUN_ID", run}};
}

/// The environment of a batch script under sbatch, for two nodes with two tasks each.
EnvironmentVariables allocation() {
  return {{"SLURM_JOB_ID", "4711"},
          {"SLURM_NTASKS", "4"},
          {"SLURM_NPROCS", "4"},
          {"SLURM_NNODES", "2"},
          {"SLURM_JOB_NUM_NODES", "2"},
          {"SLURM_PROCID", "0"},
          {"SLURM_LOCALID", "0"},
          {"SLURM_NODEID", "0"},
          {"SLURM_JOB_NODELIST", "jwb[0021-0022]"},
          {"SLURM_TASKS_PER_NODE", "2(x2)"}};
}

/// The variables that srun adds for each task.
EnvironmentVariables task(int rank, int size, int local_rank, int nodes) {
  return with(allocation(),
              {{"SLURM_PROCID", std::to_string(rank)},
               {"SLURM_LOCALID", std::to_string(local_rank)},
               {"SLURM_NODEID", std::to_string(rank * nodes / size)},
               {"SLURM_STEP_ID", "3"},
               {"SLURM_STEPID", "3"},
               {"SLURM_STEP_NUM_TASKS", std::to_string(size)},
               {"SLURM_STEP_NUM_NODES", std::to_string(nodes)},
               {"SLURM_STEP_NODELIST", nodes == 1 ? "jwb0021" : "jwb[0021-0022]"},
               {"SLURM_STEP_TASKS_PER_NODE", str(size / nodes, nodes == 1 ? "" : str("(x", nodes, ")"))}});
}

void expect_place(const LaunchEnvironment& place, const std::string& launcher, int rank, int size, int local_rank,
                  int local_size) {
  EXPECT_EQ(place.launcher, launcher);
  EXPECT_EQ(place.rank, rank);
  EXPECT_EQ(place.size, size);
  EXPECT_EQ(place.local_rank, local_rank);
  EXPECT_EQ(place.local_size, local_size);
}

// mpirun -np 2 --map-by ppr:1:node run.sh -> torchrun --nproc_per_node=1 --nnodes=2 --node_rank=$OMPI_COMM_WORLD_RANK
TEST(LaunchEnvironment, OneTorchrunForEachMpiRank) {
  const LaunchEnvironment place = read_launch_environment(with(open_mpi(1, 2, 0, 1), torchrun(1, 2, 0, 1)));
  expect_place(place, "RANK and WORLD_SIZE", 1, 2, 0, 1);
  EXPECT_FALSE(place.is_mpi_rank);
  EXPECT_EQ(place.nodes, 2);
  EXPECT_EQ(place.master, (Address{"gpu1", 29500}));
}

// mpirun --np NODES torchrun --nproc_per_node G --nnodes N --rdzv_endpoint HOST:29401 --rdzv_backend c10d: the four
// children of one torchrun share its identity, rank 1 of 2.
TEST(LaunchEnvironment, ChildrenOfTorchrunBelowMpirunAreNoMpiRanks) {
  for (int local = 0; local < 4; ++local) {
    const LaunchEnvironment place =
        read_launch_environment(with(open_mpi(1, 2, 0, 1), torchrun(4 + local, 8, local, 4, "job7")));
    expect_place(place, "RANK and WORLD_SIZE", 4 + local, 8, local, 4);
    EXPECT_FALSE(place.is_mpi_rank);
    EXPECT_EQ(place.nodes, 2);
    EXPECT_EQ(place.job, "run job7");
  }
}

// mpirun --np $SLURM_NTASKS -x … program, in a Slurm job: SLURM_PROCID is that of mpirun's daemon on the node.
TEST(LaunchEnvironment, MpirunWinsOverSlurm) {
  const LaunchEnvironment place = read_launch_environment(with(task(1, 2, 0, 2), open_mpi(3, 4, 1, 2)));
  expect_place(place, "Open MPI", 3, 4, 1, 2);
  EXPECT_TRUE(place.is_mpi_rank);
  EXPECT_EQ(place.nodes, 2);
  EXPECT_EQ(place.slurm_tasks, 0);
  EXPECT_EQ(place.master.host, "jwb0021");
}

TEST(LaunchEnvironment, MpirunOnOneHostMeetsOnLoopback) {
  const LaunchEnvironment place = read_launch_environment(open_mpi(1, 2, 1, 2));
  expect_place(place, "Open MPI", 1, 2, 1, 2);
  EXPECT_EQ(place.master.host, "127.0.0.1");
  EXPECT_GE(place.master.port, 20480);
  EXPECT_LT(place.master.port, 28672);
  EXPECT_EQ(place.master, read_launch_environment(open_mpi(0, 2, 0, 2)).master);
  EXPECT_NE(place.master,
            read_launch_environment(with(open_mpi(0, 2, 0, 2), {{"PMIX_NAMESPACE", "1949171714"}})).master);
}

// Nothing in the environment names rank 0's host: the caller must find another way.
TEST(LaunchEnvironment, MpirunOnSeveralHostsNamesNoMaster) {
  EXPECT_EQ(read_launch_environment(open_mpi(1, 2, 0, 1)).master.host, "");
  EXPECT_EQ(read_launch_environment(with(open_mpi(1, 2, 0, 1), {{"MASTER_ADDR", "gpu9"}})).master.host, "gpu9");
}

// srun -l bash -c "source export_DDP_vars.sh; program": RANK and friends copied from Slurm's, MASTER_ADDR=$(hostname).
TEST(LaunchEnvironment, VariablesExportedFromSlurm) {
  const LaunchEnvironment place = read_launch_environment(with(task(2, 4, 0, 2), {{"RANK", "2"},
                                                                                  {"WORLD_RANK", "2"},
                                                                                  {"LOCAL_RANK", "0"},
                                                                                  {"WORLD_SIZE", "4"},
                                                                                  {"MASTER_ADDR", "nid001"},
                                                                                  {"MASTER_PORT", "29500"}}));
  expect_place(place, "RANK and WORLD_SIZE", 2, 4, 0, 0);
  EXPECT_FALSE(place.is_mpi_rank);
  EXPECT_EQ(place.job, "slurm 4711");
  EXPECT_EQ(place.master, (Address{"nid001", 29500}));
}

// The variables with --mpi=pmix: every process has an identity of its own, RANK only repeats it.
TEST(LaunchEnvironment, VariablesThatRepeatTheMpiRank) {
  const EnvironmentVariables variables =
      with(task(2, 4, 0, 2), {{"PMIX_RANK", "2"}, {"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}});
  EXPECT_TRUE(read_launch_environment(variables).is_mpi_rank);
  EXPECT_FALSE(read_launch_environment(with(variables, {{"RANK", "3"}})).is_mpi_rank);
  EXPECT_FALSE(read_launch_environment(with(variables, {{"TORCHELASTIC_RUN_ID", "x"}})).is_mpi_rank);
}

// srun python3 ddp.py: SLURM_* alone, on a system where the fast network has names of its own.
TEST(LaunchEnvironment, SrunAlone) {
  const LaunchEnvironment place = read_launch_environment(with(task(3, 4, 1, 2), {{"SYSTEMNAME", "juwelsbooster"}}));
  expect_place(place, "Slurm", 3, 4, 1, 2);
  EXPECT_FALSE(place.is_mpi_rank);
  EXPECT_EQ(place.slurm_tasks, 4);
  EXPECT_EQ(place.nodes, 2);
  EXPECT_EQ(place.master.host, "jwb0021i");
  EXPECT_EQ(place.job, "slurm 4711.3");
  EXPECT_EQ(read_launch_environment(task(3, 4, 1, 2)).master.host, "jwb0021");
  EXPECT_EQ(read_launch_environment(task(1, 2, 1, 1)).master.host, "127.0.0.1");
}

TEST(LaunchEnvironment, SrunWithPmix) {
  const LaunchEnvironment place =
      read_launch_environment(with(task(3, 4, 1, 2), {{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "slurm.pmix.4711.3"}}));
  expect_place(place, "PMIx", 3, 4, 1, 2);
  EXPECT_TRUE(place.is_mpi_rank);
  EXPECT_EQ(place.slurm_tasks, 4);
}

TEST(LaunchEnvironment, MpichAndPmi2) {
  const LaunchEnvironment alone = read_launch_environment(
      {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  expect_place(alone, "PMI", 1, 2, 1, 2);
  EXPECT_TRUE(alone.is_mpi_rank);
  const LaunchEnvironment slurm =
      read_launch_environment(with(task(3, 4, 1, 2), {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}));
  expect_place(slurm, "PMI", 3, 4, 1, 2);
  EXPECT_EQ(slurm.slurm_tasks, 4);
}

// srun torchrun --nnodes $SLURM_JOB_NUM_NODES --nproc_per_node 2 …: SLURM_NTASKS is the number of nodes, 2, not 4.
TEST(LaunchEnvironment, TorchrunBelowSrunWins) {
  const LaunchEnvironment place = read_launch_environment(with(task(1, 2, 0, 2), torchrun(3, 4, 1, 2, "31415")));
  expect_place(place, "RANK and WORLD_SIZE", 3, 4, 1, 2);
  EXPECT_FALSE(place.is_mpi_rank);
}

// accelerate launch … --rdzv_backend static, under mpirun.
TEST(LaunchEnvironment, AccelerateBelowMpirun) {
  const LaunchEnvironment place =
      read_launch_environment(with(open_mpi(1, 2, 0, 1), with(torchrun(1, 2, 0, 1), {{"MASTER_PORT", "1234"}})));
  expect_place(place, "RANK and WORLD_SIZE", 1, 2, 0, 1);
  EXPECT_EQ(place.master.port, 1234);
}

// A plain program inside salloc, sbatch or an interactive shell of Slurm must not wait for others.
TEST(LaunchEnvironment, PlainProgramInAnAllocationIsAlone) {
  expect_place(read_launch_environment(allocation()), "alone", 0, 1, 0, 1);
  expect_place(
      read_launch_environment(with(allocation(), {{"SLURM_STEP_ID", "4294967291"}, {"SLURM_STEP_NUM_TASKS", "4"}})),
      "alone", 0, 1, 0, 1);
  expect_place(read_launch_environment(task(0, 1, 0, 1)), "Slurm", 0, 1, 0, 1);
  expect_place(read_launch_environment({}), "alone", 0, 1, 0, 1);
  EXPECT_EQ(read_launch_environment({}).master.host, "");
}

// srun --ntasks 8 --pty bash, and ./train in that shell: the seven other shells have ended.
TEST(LaunchEnvironment, APlainProgramInAnInteractiveShellOfSlurmIsAlone) {
  const EnvironmentVariables shell =
      with(task(0, 8, 0, 1),
           {{"SLURM_STEP_ID", "0"}, {"SLURM_STEPID", "0"}, {"SLURM_JOB_NAME", "bash"}, {"SLURM_PTY_PORT", "40123"}});
  expect_place(read_launch_environment(shell), "alone", 0, 1, 0, 1);
  // srun in that shell starts a step of its own, whose tasks have the shell's variables, too.
  expect_place(
      read_launch_environment(with(shell, {{"SLURM_STEP_ID", "1"}, {"SLURM_PROCID", "3"}, {"SLURM_LOCALID", "3"}})),
      "Slurm", 3, 8, 3, 8);
  // srun --pty ./train has two ranks.
  expect_place(read_launch_environment(with(shell, {{"SLURM_JOB_NAME", "train"}})), "Slurm", 0, 8, 0, 8);
  expect_place(read_launch_environment(with(shell, {{"SLURM_PTY_PORT", ""}})), "Slurm", 0, 8, 0, 8);
}

TEST(LaunchEnvironment, TasksOfUnequalNodes) {
  const EnvironmentVariables first =
      with(task(3, 6, 3, 2), {{"SLURM_STEP_TASKS_PER_NODE", "4,2"}, {"SLURM_NODEID", "0"}});
  expect_place(read_launch_environment(first), "Slurm", 3, 6, 3, 4);
  expect_place(
      read_launch_environment(with(first, {{"SLURM_PROCID", "5"}, {"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "1"}})),
      "Slurm", 5, 6, 1, 2);
  expect_place(read_launch_environment(with(task(4, 6, 0, 3), {{"SLURM_STEP_TASKS_PER_NODE", "2(x3)"}})), "Slurm", 4, 6,
               0, 2);
  expect_place(read_launch_environment(with(task(1, 2, 0, 2), {{"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}})), "Slurm", 1, 2,
               0, 1);
}

// Each of these launched processes that all took themselves for alone.
TEST(LaunchEnvironment, OtherLaunchers) {
  const LaunchEnvironment horovod = read_launch_environment({{"HOROVOD_RANK", "1"},
                                                             {"HOROVOD_SIZE", "4"},
                                                             {"HOROVOD_LOCAL_RANK", "1"},
                                                             {"HOROVOD_LOCAL_SIZE", "4"},
                                                             {"HOROVOD_GLOO_RENDEZVOUS_PORT", "7777"}});
  expect_place(horovod, "Horovod", 1, 4, 1, 4);
  EXPECT_FALSE(horovod.is_mpi_rank);
  EXPECT_EQ(horovod.master.host, "127.0.0.1");
  EXPECT_EQ(horovod.job, "horovod 7777");
  const LaunchEnvironment mvapich = read_launch_environment({{"MV2_COMM_WORLD_RANK", "3"},
                                                             {"MV2_COMM_WORLD_SIZE", "4"},
                                                             {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
                                                             {"MV2_COMM_WORLD_LOCAL_SIZE", "2"},
                                                             {"MASTER_ADDR", "n1"}});
  expect_place(mvapich, "MVAPICH2", 3, 4, 1, 2);
  EXPECT_TRUE(mvapich.is_mpi_rank);
  EXPECT_EQ(mvapich.master.host, "n1");
  const EnvironmentVariables flux{{"FLUX_TASK_RANK", "1"},
                                  {"FLUX_TASK_LOCAL_ID", "1"},
                                  {"FLUX_JOB_SIZE", "2"},
                                  {"FLUX_JOB_NNODES", "1"},
                                  {"FLUX_JOB_ID", "f2hVg"}};
  expect_place(read_launch_environment(flux), "Flux", 1, 2, 1, 2);
  EXPECT_EQ(read_launch_environment(flux).master.host, "127.0.0.1");
  expect_place(read_launch_environment(with(flux, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}})), "PMI", 1, 2, 1, 2);
  expect_place(read_launch_environment(with(flux, {{"PMIX_RANK", "1"}})), "PMIx", 1, 2, 1, 2);
  expect_place(read_launch_environment(with(flux, {{"FLUX_JOB_NNODES", "2"}, {"FLUX_TASK_LOCAL_ID", "0"}})), "Flux", 1,
               2, 0, 0);
  // HPE's mpiexec (PALS).
  expect_place(read_launch_environment(
                   {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"PALS_LOCAL_RANKID", "1"}, {"PALS_LOCAL_SIZE", "4"}}),
               "PMI", 5, 8, 1, 4);
}

TEST(LaunchEnvironment, MasterAddressMayHoldThePort) {
  const auto master = [](const std::string& address, const std::string& port) {
    return read_launch_environment(
               {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", address}, {"MASTER_PORT", port}})
        .master;
  };
  EXPECT_EQ(master("gpu1:29401", ""), (Address{"gpu1", 29401}));
  EXPECT_EQ(master("gpu1:29401", "29402"), (Address{"gpu1", 29402}));
  EXPECT_EQ(master("gpu1", ""), (Address{"gpu1", 29500}));
  EXPECT_EQ(master("10.0.0.1", "1234"), (Address{"10.0.0.1", 1234}));
  EXPECT_EQ(master("fe80::1", "1234"), (Address{"fe80::1", 1234}));
  EXPECT_EQ(master("[fe80::1]", ""), (Address{"fe80::1", 29500}));
  EXPECT_EQ(master("[fe80::1]:29401", ""), (Address{"fe80::1", 29401}));
  EXPECT_EQ(str(Address{"fe80::1", 29401}), "[fe80::1]:29401");
}

TEST(LaunchEnvironment, RestartsAndLonelyHosts) {
  EXPECT_EQ(read_launch_environment(with(torchrun(0, 2, 0, 2), {{"TORCHELASTIC_RESTART_COUNT", "3"}})).restarts, 3);
  const LaunchEnvironment place =
      read_launch_environment({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_EQ(place.master, (Address{"127.0.0.1", 29500}));
  EXPECT_EQ(place.local_rank, -1);
}

TEST(LaunchEnvironment, OneOfThePairMayRepeatTheLauncher) {
  EXPECT_EQ(read_launch_environment(with(task(3, 4, 1, 2), {{"WORLD_SIZE", "4"}})).launcher, "Slurm");
  EXPECT_EQ(read_launch_environment(with(task(3, 4, 1, 2), {{"RANK", "3"}})).launcher, "Slurm");
  EXPECT_EQ(read_launch_environment({{"WORLD_SIZE", "1"}}).launcher, "alone");
}

TEST(LaunchEnvironment, ContradictionsAreOneClearError) {
  const auto text = [](const EnvironmentVariables& variables) {
    return error_text([&] { read_launch_environment(variables); });
  };
  EXPECT_EQ(text({{"RANK", "0"}}), "launch environment: RANK=0 is set, but WORLD_SIZE is not. Set both, or neither");
  EXPECT_EQ(text(with(task(3, 4, 1, 2), {{"RANK", "1"}})),
            "launch environment: RANK=1 is set, but WORLD_SIZE is not, and Slurm says rank 3. Set both, or neither");
  EXPECT_EQ(text({{"WORLD_SIZE", "4"}}),
            "launch environment: WORLD_SIZE=4 is set, but RANK is not, and no launcher says that there are others. Set "
            "both, or neither");
  EXPECT_EQ(text(with(task(3, 4, 1, 2), {{"WORLD_SIZE", "8"}})),
            "launch environment: WORLD_SIZE=8 is set, but RANK is not, and Slurm says 4 ranks. Set both, or neither");
  EXPECT_EQ(text({{"RANK", "4"}, {"WORLD_SIZE", "4"}}),
            "launch environment: RANK=4 contradicts WORLD_SIZE=4: ranks run from 0 to size - 1");
  EXPECT_EQ(text({{"RANK", "one"}, {"WORLD_SIZE", "4"}}),
            "launch environment: RANK: expected a whole number, 0 to 1048576, got 'one'");
  EXPECT_EQ(text({{"RANK", "0"}, {"WORLD_SIZE", "-4"}}),
            "launch environment: WORLD_SIZE: expected a whole number, 0 to 1048576, got '-4'");
  EXPECT_EQ(text({{"RANK", "0"}, {"WORLD_SIZE", "4"}}),
            "launch environment: RANK=0 and WORLD_SIZE=4 are set, but MASTER_ADDR is not: set it to the host of rank 0 "
            "on all ranks");
  EXPECT_EQ(text(with(torchrun(0, 4, 0, 2), {{"LOCAL_RANK", "2"}})),
            "launch environment: LOCAL_RANK=2 contradicts LOCAL_WORLD_SIZE=2");
  EXPECT_EQ(text(with(torchrun(0, 4, 0, 2), {{"LOCAL_WORLD_SIZE", "8"}})),
            "launch environment: LOCAL_WORLD_SIZE=8 contradicts the 4 ranks of the job");
  EXPECT_EQ(text(with(task(1, 2, 1, 1), {{"SLURM_HET_SIZE", "2"}, {"SLURM_NTASKS", "6"}})),
            "launch environment: this component of a heterogeneous Slurm job has 2 of the step's 6 tasks. Set RANK, "
            "WORLD_SIZE and MASTER_ADDR for each task, or start the ranks in one component: srun --het-group=0");
  EXPECT_EQ(text({{"HOROVOD_RANK", "0"}}),
            "launch environment: HOROVOD_RANK=0 is set, but HOROVOD_SIZE is not. Set both, or neither");
  EXPECT_EQ(text({{"FLUX_TASK_RANK", "0"}}),
            "launch environment: FLUX_TASK_RANK=0 is set, but FLUX_JOB_SIZE is not. Set both, or neither");
  EXPECT_EQ(text({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "2"}}),
            "launch environment: PMI says rank 0 of 2, Flux says rank 1 of 2. Start the ranks by one launcher alone");
  EXPECT_EQ(text({{"OMPI_COMM_WORLD_RANK", "0"}}),
            "launch environment: OMPI_COMM_WORLD_RANK=0 is set, but OMPI_COMM_WORLD_SIZE is not. Set both, or neither");
  EXPECT_THAT(text({{"PMIX_RANK", "1"}}),
              HasSubstr("PMIX_RANK=1 is set, but no variable says how many ranks there are"));
  EXPECT_EQ(text(with(task(3, 4, 1, 2), {{"PMIX_RANK", "2"}})),
            "launch environment: PMIx says rank 2 of 4, Slurm says rank 3 of 4. Start the ranks by one launcher alone");
  EXPECT_EQ(text(with(torchrun(0, 4, 0, 2), {{"MASTER_PORT", "66000"}})),
            "MASTER_PORT: expected a port, 1 to 65535, got '66000'");
  EXPECT_EQ(text(with(torchrun(0, 4, 0, 2), {{"MASTER_ADDR", "[::1"}})),
            "MASTER_ADDR: expected a host, host:port or [IPv6]:port, got '[::1' (the bracket is not closed)");
  EXPECT_THAT(text(with(torchrun(0, 4, 0, 2), {{"MASTER_ADDR", ":29500"}})), HasSubstr("the host is empty"));
  EXPECT_THAT(text(with(torchrun(0, 4, 0, 2), {{"MASTER_ADDR", "a b"}})), HasSubstr("the host contains a character"));
  EXPECT_THAT(text(with(torchrun(0, 4, 0, 2), {{"MASTER_ADDR", "[::1]x"}})), HasSubstr("text after the bracket"));
  EXPECT_THAT(text(with(torchrun(0, 4, 0, 2), {{"MASTER_ADDR", std::string(300, 'a')}})),
              HasSubstr("longer than 255 characters"));
}

}  // namespace
}  // namespace weft::dist
