// SPDX-License-Identifier: Apache-2.0
#include "apps/support/accelerate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "apps/support/yaml_tree.h"
#include "tests/train/temporary_folder.h"
#include "train/exit.h"

namespace weft::support {
namespace {

using test::error_of;
using test::TemporaryFolder;
using test::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AccelerateFile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!have_yaml()) GTEST_SKIP() << "this build has no yaml-cpp";
  }
  AccelerateConfig read(const std::string& text) {
    write_file(path_, text);
    return read_accelerate_config(path_);
  }
  std::string error(const std::string& text) {
    return error_of([&] { read(text); });
  }
  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "multi_config.yaml";
};

TEST_F(AccelerateFile, IsRead) {
  // The Vista workflow's file, sorted as yaml.dump does.
  AccelerateConfig config = read(
      "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\ndynamo_backend: 'no'\nmixed_precision: 'no'\n"
      "num_machines: 2\n");
  EXPECT_EQ(config.num_machines, 2);
  EXPECT_EQ(config.mixed_precision, "no");
  EXPECT_EQ(config.num_processes, 0);
  EXPECT_EQ(config.machine_rank, -1);
  // The file of `accelerate config`.
  config = read(
      "compute_environment: LOCAL_MACHINE\ndebug: false\ndistributed_type: MULTI_GPU\ndowncast_bf16: 'no'\n"
      "enable_cpu_affinity: false\ngpu_ids: all\nmachine_rank: 1\nmain_process_ip: gpu1\nmain_process_port: 1234\n"
      "main_training_function: main\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 8\nrdzv_backend: static\n"
      "same_network: true\ntpu_env: []\ntpu_use_cluster: false\ntpu_use_sudo: false\nuse_cpu: false\n");
  EXPECT_EQ(config.machine_rank, 1);
  EXPECT_EQ(config.main_process_ip, "gpu1");
  EXPECT_EQ(config.main_process_port, 1234);
  EXPECT_EQ(config.processes_per_machine(), 4);
}

// accelerate 0.15's keys for plain GPUs, and those of 1.x with sections for every kind of job.
TEST_F(AccelerateFile, EmptySectionsAndNothingAreNoSettings) {
  AccelerateConfig config = read(
      "command_file: null\ncommands: null\ncompute_environment: LOCAL_MACHINE\ndeepspeed_config: {}\n"
      "distributed_type: MULTI_GPU\ndowncast_bf16: 'no'\ndynamo_backend: 'NO'\nfsdp_config: {}\ngpu_ids: all\n"
      "machine_rank: 0\nmain_process_ip: null\nmain_process_port: null\nmain_training_function: main\n"
      "megatron_lm_config: {}\nmixed_precision: 'no'\nnum_machines: 1\nnum_processes: 2\nrdzv_backend: static\n"
      "same_network: true\ntpu_name: null\ntpu_zone: null\nuse_cpu: false\n");
  EXPECT_EQ(config.num_processes, 2);
  EXPECT_EQ(config.main_process_ip, "");
  EXPECT_THAT(config.notes, ElementsAre());
  config = read(
      "distributed_type: MULTI_CPU\nuse_cpu: true\nipex_config:\n  ipex: false\n  use_xpu: false\nmpirun_config:\n"
      "  mpirun_ccl: '1'\n  mpirun_hostfile: ''\nparallelism_config:\n  parallelism_config_tp_size: 1\n"
      "  parallelism_config_cp_backend: torch\nfp8_config: {}\ndynamo_config: {}\ntpu_vm: []\n");
  EXPECT_TRUE(config.use_cpu);
  EXPECT_THAT(config.notes, ElementsAre());
}

TEST_F(AccelerateFile, SettingsWithoutAMeaningHereAreNoted) {
  const AccelerateConfig config = read(
      "distributed_type: MULTI_GPU\ndebug: true\nenable_cpu_affinity: true\nfsdp_config: {fsdp_version: 2}\n"
      "dynamo_config:\n  dynamo_backend: INDUCTOR\n");
  EXPECT_THAT(
      config.notes,
      ElementsAre(HasSubstr("multi_config.yaml:2: debug is passed over: collectives are always compared"),
                  HasSubstr("multi_config.yaml:3: enable_cpu_affinity is passed over: "),
                  HasSubstr("multi_config.yaml:5: dynamo_config is passed over: it is for Python alone"),
                  HasSubstr("multi_config.yaml:4: fsdp_config is passed over: distributed_type does not ask for it")));
}

TEST_F(AccelerateFile, OlderAndNewerSettingsAreFollowed) {
  EXPECT_EQ(read("fp16: true\n").mixed_precision, "fp16");  // accelerate 0.5
  EXPECT_EQ(read("fp16: false\n").mixed_precision, "");
  const AccelerateConfig config = read("rdzv_backend: c10d\ngpu_ids: 0,2\n");
  EXPECT_EQ(config.rdzv_backend, "c10d");
  EXPECT_EQ(config.gpu_ids, "0,2");
  // The file of to_json_file.
  const AccelerateConfig json = read(
      "{\n  \"compute_environment\": \"LOCAL_MACHINE\",\n  \"debug\": false,\n  \"distributed_type\": \"MULTI_GPU\",\n"
      "  \"main_process_ip\": null,\n  \"mixed_precision\": \"bf16\",\n  \"num_machines\": 1,\n"
      "  \"num_processes\": 4\n}\n");
  EXPECT_EQ(json.num_processes, 4);
  EXPECT_EQ(json.mixed_precision, "bf16");
}

TEST_F(AccelerateFile, WhatTheProgramDecidesIsRefusedWithTheCure) {
  EXPECT_THAT(
      error("distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: FULL_SHARD}\n"),
      HasSubstr("multi_config.yaml:1: distributed_type: FSDP: Weft's programs shard by a flag of their own: write "
                "MULTI_GPU here and give the program --parallel fsdp"));
  EXPECT_THAT(error("distributed_type: DEEPSPEED\n"), HasSubstr("DEEPSPEED: Weft shards as ZeRO's stage 3 does"));
  EXPECT_THAT(error("distributed_type: MEGATRON_LM\n"), HasSubstr("MEGATRON_LM: Weft has ddp and fsdp"));
  EXPECT_THAT(error("parallelism_config: {parallelism_config_tp_size: 2}\n"),
              HasSubstr("multi_config.yaml:1: parallelism_config: parallelism_config_tp_size 2: the program shards"));
  EXPECT_THAT(error("mpirun_config: {mpirun_hostfile: /hosts, mpirun_ccl: '1'}\n"),
              HasSubstr("multi_config.yaml:1: mpirun_config: start mpirun itself: mpirun --hostfile FILE PROGRAM"));
  EXPECT_THAT(error("compute_environment: AMAZON_SAGEMAKER\n"),
              HasSubstr("compute_environment: unknown value 'AMAZON_SAGEMAKER'. Known: LOCAL_MACHINE."));
}

TEST_F(AccelerateFile, SaysWhatIsWrong) {
  EXPECT_THAT(error("num_machines: 2\nnum_proceses: 2\n"), HasSubstr("multi_config.yaml:2: "));
  EXPECT_THAT(error("num_machines: two\n"), HasSubstr("multi_config.yaml:1: num_machines: expected "));
  EXPECT_THAT(error("distributed_type: TPU\n"),
              HasSubstr("distributed_type: unknown value 'TPU'. Known: NO, MULTI_CPU, MULTI_GPU."));
  EXPECT_THAT(error("mixed_precision: fp8\n"), HasSubstr("mixed_precision: unknown value 'fp8'. "));
  EXPECT_THAT(error_of([&] { read_accelerate_config(folder_ / "missing.yaml"); }), HasSubstr("missing.yaml"));
}

class ExportRank : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
      ::unsetenv(name);
  }
  static std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "(none)" : value;
  }
};

TEST_F(ExportRank, OneProcessOfItsMachine) {
  export_rank({.num_processes = 2, .machine_rank = 1, .main_process_ip = "gpu1", .main_process_port = 1234});
  EXPECT_EQ(variable("RANK"), "1");
  EXPECT_EQ(variable("WORLD_SIZE"), "2");
  EXPECT_EQ(variable("LOCAL_RANK"), "0");
  EXPECT_EQ(variable("LOCAL_WORLD_SIZE"), "1");
  EXPECT_EQ(variable("MASTER_ADDR"), "gpu1");
  EXPECT_EQ(variable("MASTER_PORT"), "1234");
  export_rank({.num_processes = 4, .machine_rank = 3, .main_process_ip = "gpu2"});  // below a launcher
  EXPECT_EQ(variable("RANK"), "1");
}

TEST_F(ExportRank, NothingIsSaid) {
  export_rank({});
  export_rank({.num_machines = 2, .mixed_precision = "no"});
  EXPECT_EQ(variable("RANK"), "(none)");
  EXPECT_EQ(variable("WORLD_SIZE"), "(none)");
}

TEST_F(ExportRank, SaysWhatIsMissing) {
  const auto error = [](const AccelerateConfig& config) { return error_of([&] { export_rank(config); }); };
  EXPECT_EQ(error({.num_processes = 2, .main_process_ip = "gpu1"}),
            "--machine-rank: expected 0 to 1 beside --num-processes");
  EXPECT_EQ(error({.num_processes = 2, .machine_rank = 0}),
            "--main-process-ip: expected the host of machine 0 beside --num-processes");
  EXPECT_EQ(error({.num_processes = 2, .machine_rank = 2, .main_process_ip = "gpu1"}),
            "--machine-rank: expected 0 to 1, got 2");
  EXPECT_EQ(error({.num_machines = 2, .num_processes = 4, .machine_rank = 0, .main_process_ip = "gpu1"}),
            "--num-processes: expected one process on each of the 2 machines, got 4. weft-run takes the same flags and "
            "starts several on each");
  EXPECT_EQ(error({.num_machines = 2, .num_processes = 3}),
            "--num-processes: expected a multiple of the 2 machines, got 3");
  EXPECT_EQ(variable("RANK"), "(none)");
}

}  // namespace
}  // namespace weft::support
