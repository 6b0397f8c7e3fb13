// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_run/options.h"

#include "apps/support/yaml_tree.h"
#include "tests/support/error_text.h"
#include "tests/train/temporary_folder.h"
#include "train/exit.h"

namespace weft::weft_run {
namespace {

using dist::Address;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Options, TorchrunsLinesAreRead) {
  // nersc, ml-dist, oscer and vista; docs/launching.md.
  Options o = *parse_options(
      {"--nproc_per_node=1", "--nnodes=2", "--node_rank=1", "--master_addr=gpu1", "./multinode", "50", "10"});
  EXPECT_EQ(o.ranks_per_node, "1");
  EXPECT_EQ(o.nodes, 2);
  EXPECT_EQ(o.node_rank, 1);
  EXPECT_EQ(*o.meeting, (Address{"gpu1", 29500}));
  EXPECT_THAT(o.command, ElementsAre("./multinode", "50", "10"));

  o = *parse_options({"--nproc_per_node", "4", "--nnodes", "2", "--rdzv_endpoint", "gpu1:29401", "--rdzv_backend",
                      "c10d", "main", "--lr", "1"});
  EXPECT_EQ(o.ranks_per_node, "4");
  EXPECT_EQ(*o.meeting, (Address{"gpu1", 29401}));
  EXPECT_FALSE(o.node_rank.has_value());
  EXPECT_THAT(o.command, ElementsAre("main", "--lr", "1"));

  o = *parse_options({"--nnodes", "2", "--nproc_per_node", "2", "--rdzv_id", "31415", "--rdzv_backend", "c10d",
                      "--rdzv_endpoint", "10.0.0.1:64425", "main"});
  EXPECT_EQ(o.run, "31415");

  o = *parse_options(
      {"--standalone", "--nproc-per-node=gpu", "--max-restarts=3", "--log-dir", "logs", "--", "--odd-name"});
  EXPECT_EQ(o.max_restarts, 3);
  EXPECT_EQ(o.log_folder, "logs");
  EXPECT_THAT(o.command, ElementsAre("--odd-name"));

  o = *parse_options(
      {"--rdzv_backend=static", "--nnodes=2", "--node-rank=0", "--master_addr=fe80::1", "--master_port=1234", "x"});
  EXPECT_EQ(*o.master, (Address{"fe80::1", 1234}));
  EXPECT_EQ(*o.meeting, (Address{"fe80::1", 1234}));
  EXPECT_EQ(parse_options({"--rdzv-endpoint=localhost:0", "x"})->meeting->host, "localhost");
  EXPECT_FALSE(parse_options({"x"})->meeting.has_value());
}

TEST(Options, AcceleratesLinesAreRead) {
  Options alone = *parse_options({"--multi_gpu", "--num_processes=4", "--mixed_precision", "bf16", "x"});
  EXPECT_EQ(alone.nodes, 1);
  EXPECT_EQ(alone.ranks_per_node, "4");
  EXPECT_EQ(alone.mixed_precision, "bf16");
  if (!support::have_yaml()) GTEST_SKIP() << "files need yaml-cpp";
  const test::TemporaryFolder folder;
  const std::string file = (folder / "multi_config.yaml").string();
  test::write_file(file, "distributed_type: MULTI_GPU\nnum_machines: 2\nmixed_precision: 'no'\ndynamo_backend: 'no'\n");
  Options o =
      *parse_options({"--config_file", file, "--machine_rank=1", "--main_process_ip=gpu1", "--main_process_port=1234",
                      "--rdzv_backend", "static", "--num_processes", "8", "./finetune", "--lr", "1"});
  EXPECT_EQ(o.nodes, 2);
  EXPECT_EQ(o.node_rank, 1);
  EXPECT_EQ(o.ranks_per_node, "4");
  EXPECT_EQ(*o.meeting, (Address{"gpu1", 1234}));
  EXPECT_EQ(o.mixed_precision, "no");
  EXPECT_THAT(o.command, ElementsAre("./finetune", "--lr", "1"));

  test::write_file(file, "num_machines: 3\nnum_processes: 3\nmachine_rank: 2\nmain_process_ip: gpu1\n");
  o = *parse_options({"--config_file", file, "--num_machines", "1", "--machine_rank", "0", "x"});
  EXPECT_EQ(o.nodes, 1);  // flags win
  EXPECT_EQ(o.ranks_per_node, "3");
}

TEST(Options, MistakesAreUsageErrors) {
  const auto text = [](const std::vector<std::string>& arguments) -> std::string {
    try {
      parse_options(arguments);
    } catch (const train::UsageError& error) {
      return error.what();
    }
    return "(no usage error)";
  };
  EXPECT_THAT(text({}), HasSubstr("expected a program to run"));
  EXPECT_EQ(text({"--nproc-pre-node", "2", "x"}), "unknown flag '--nproc-pre-node'. Did you mean 'nproc-per-node'?");
  EXPECT_EQ(text({"--num_machines", "2", "--num_processes", "3", "--main_process_ip", "a", "--machine_rank", "0", "x"}),
            "--num-processes: expected a multiple of the 2 machines, got 3");
  EXPECT_THAT(text({"--config_file", "missing.yaml", "x"}), HasSubstr("missing.yaml"));
  EXPECT_EQ(text({"--nnodes"}), "--nnodes: expected a value");
  EXPECT_EQ(text({"--nnodes", "0", "x"}), "--nnodes: expected 1 to 65536, got 0");
  EXPECT_EQ(text({"--nnodes", "1:4", "x"}),
            "--nnodes: expected one number, got '1:4': jobs do not grow or shrink here");
  EXPECT_THAT(text({"--nnodes", "two", "x"}), HasSubstr("--nnodes"));
  EXPECT_THAT(text({"--nnodes", "2", "x"}), HasSubstr("--nnodes 2: expected --rdzv-endpoint HOST:PORT"));
  EXPECT_EQ(text({"--nnodes", "2", "--rdzv-endpoint", "gpu1", "x"}),
            "--rdzv-endpoint: expected HOST:PORT, got no port");
  EXPECT_THAT(text({"--nnodes", "2", "--master-addr", "a", "x"}),
              HasSubstr("--rdzv-backend static: expected --node-rank, 0 to 1"));
  EXPECT_EQ(text({"--nnodes", "2", "--node-rank", "2", "--master-addr", "a", "x"}),
            "--node-rank: expected 0 to 1, got 2");
  EXPECT_THAT(text({"--rdzv_backend", "etcd", "x"}), HasSubstr("--rdzv-backend: expected c10d or static, got 'etcd'"));
  EXPECT_THAT(text({"--rdzv_endpoint", "a:b", "x"}),
              HasSubstr("--rdzv-endpoint: expected a port, 1 to 65535, got 'b'"));
  EXPECT_THAT(text({"--master_port", "70000", "x"}), HasSubstr("--master-port: expected a port"));
  EXPECT_EQ(text({"--max_restarts", "-1", "x"}), "--max-restarts: expected 0 to 1000000, got -1");
  EXPECT_EQ(text({"--standalone", "--nnodes", "2", "--rdzv-endpoint", "a:1", "x"}),
            "--standalone: expected one node, got --nnodes 2");
}

TEST(Options, RanksPerNode) {
  EXPECT_EQ(count_ranks("3", 0, 8), 3);
  EXPECT_EQ(count_ranks("gpu", 4, 8), 4);
  EXPECT_EQ(count_ranks("cpu", 4, 8), 8);
  EXPECT_EQ(count_ranks("auto", 4, 8), 4);
  EXPECT_EQ(count_ranks("auto", 0, 8), 8);
  EXPECT_THAT(error_text([] { count_ranks("gpu", 0, 8); }), HasSubstr("--nproc-per-node gpu: this node has no GPU"));
  for (const char* text : {"0", "", "-1", "2x", "999999"})
    EXPECT_THAT(error_text([&] { count_ranks(text, 0, 8); }),
                HasSubstr("expected a number of 1 or more, auto, gpu or cpu"));
}

}  // namespace
}  // namespace weft::weft_run
