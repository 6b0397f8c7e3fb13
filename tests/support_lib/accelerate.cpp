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
  // What the Vista workflow writes, sorted as yaml.dump does.
  AccelerateConfig config = read(
      "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\ndynamo_backend: 'no'\nmixed_precision: 'no'\n"
      "num_machines: 2\n");
  EXPECT_EQ(config.num_machines, 2);
  EXPECT_EQ(config.mixed_precision, "no");
  EXPECT_EQ(config.num_processes, 0);
  EXPECT_EQ(config.machine_rank, -1);
  // What `accelerate config` writes.
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
