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

// Further flags that job scripts give torchrun (axolotl, NeMo, torchx): followed, or passed over with a line.
TEST(Options, TorchrunsOtherFlags) {
  const auto notes = [](std::vector<std::string> flags) {
    flags.emplace_back("x");
    const Options o = *parse_options(flags);
    EXPECT_THAT(o.command, ElementsAre("x"));
    return o.notes;
  };
  EXPECT_THAT(notes({"--monitor_interval=5"}),
              ElementsAre("--monitor-interval is passed over: the end of a rank is seen at once"));
  EXPECT_THAT(notes({"-r3", "-t", "0:1,1:2"}),
              ElementsAre(HasSubstr("--redirects is passed over: "), HasSubstr("--tee is passed over: ")));
  for (const char* name :
       {"start_method", "event_log_handler", "logs_specs", "log_line_prefix_template", "local_ranks_filter",
        "duplicate_stdout_filters", "duplicate_stderr_filters", "local_addr", "numa_binding", "signals_to_handle"}) {
    EXPECT_THAT(notes({str("--", name, "=v")}), ElementsAre(HasSubstr(" is passed over: "))) << name;
    EXPECT_THAT(notes({str("--", name), "v"}), ElementsAre(HasSubstr(" is passed over: "))) << name;
  }
  for (const char* name : {"--virtual_local_rank", "--use_env"})
    EXPECT_THAT(notes({name}), ElementsAre(HasSubstr(" is passed over: "))) << name;
  EXPECT_THAT(notes({"--no_python"}), ElementsAre());

  EXPECT_EQ(parse_options({"--role=trainer", "x"})->role, "trainer");
  EXPECT_EQ(parse_options({"--shutdown_timeout", "7", "x"})->grace, 7);
  EXPECT_EQ(parse_options({"--nnodes=1:1", "x"})->nodes, 1);
  const Options two = *parse_options({"--nnodes=2:2", "--rdzv_endpoint=gpu1", "x"});
  EXPECT_EQ(two.nodes, 2);
  EXPECT_EQ(*two.meeting, (Address{"gpu1", 29400}));
  EXPECT_EQ(*parse_options({"--nnodes=2", "--rdzv_endpoint=[fe80::1]", "--rdzv_backend=c10d", "x"})->meeting,
            (Address{"fe80::1", 29400}));

  const Options waits = *parse_options({"--rdzv_conf", "timeout=900,read_timeout=60,store_type=tcp", "x"});
  EXPECT_EQ(waits.start_timeout, 900);
  EXPECT_THAT(waits.notes,
              ElementsAre("--rdzv-conf read_timeout is passed over: launchers meet at a store of their own"));
  EXPECT_EQ(parse_options({"--rdzv-conf=join_timeout=1800", "x"})->start_timeout, 1800);
  EXPECT_EQ(parse_options({"--rdzv-conf=timeout=900", "--start_timeout=5", "x"})->start_timeout, 5);

  const Options alone = *parse_options({"--standalone", "--rdzv_backend=c10d", "--rdzv_endpoint=gpu1:1", "x"});
  EXPECT_FALSE(alone.meeting.has_value());
  EXPECT_THAT(alone.notes, ElementsAre("--rdzv-endpoint is passed over: --standalone meets nobody",
                                       "--rdzv-backend is passed over: --standalone meets nobody"));
}

// Kubeflow's PyTorchJob gives torchrun's flags by variables.
TEST(Options, TorchrunsVariablesAreFlags) {
  const dist::EnvironmentVariables variables{
      {"PET_NNODES", "2"},          {"PET_NPROC_PER_NODE", "4"}, {"PET_NODE_RANK", "1"}, {"PET_MASTER_ADDR", "job-0"},
      {"PET_MASTER_PORT", "23456"}, {"PET_RDZV_ID", ""},         {"PET_MODULE", "0"},    {"PET_STANDALONE", "0"},
      {"PET_NO_PYTHON", "1"},       {"PET_GRACE", "3"}};
  const Options o = *parse_options({"--nproc_per_node", "8", "x"}, variables);
  EXPECT_EQ(o.nodes, 2);
  EXPECT_EQ(o.ranks_per_node, "8");  // the line wins
  EXPECT_EQ(o.node_rank, 1);
  EXPECT_EQ(*o.meeting, (Address{"job-0", 23456}));
  EXPECT_EQ(o.run, "none");
  EXPECT_EQ(o.grace, 10);
  EXPECT_THAT(o.notes, testing::UnorderedElementsAre("--nnodes 2, from PET_NNODES", "--node-rank 1, from PET_NODE_RANK",
                                                     "--master-addr job-0, from PET_MASTER_ADDR",
                                                     "--master-port 23456, from PET_MASTER_PORT",
                                                     "--no-python, from PET_NO_PYTHON"));
  EXPECT_THAT(parse_options({"x"}, {{"PET_TEE", "3"}})->notes,
              ElementsAre("--tee 3, from PET_TEE", HasSubstr("--tee is passed over: ")));
  EXPECT_THAT(error_text([] {
                parse_options({"x"}, {{"PET_MODULE", "1"}});
              }),
              HasSubstr("PET_MODULE: a program is started"));
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

  // The machines share the file: its machine_rank is nobody's where they number themselves.
  test::write_file(file,
                   "rdzv_backend: c10d\nnum_machines: 2\nnum_processes: 4\nmachine_rank: 0\nmain_process_ip: gpu1\n"
                   "gpu_ids: '0,2'\ndebug: true\n");
  o = *parse_options({"--config_file", file, "x"});
  EXPECT_FALSE(o.node_rank.has_value());
  EXPECT_EQ(*o.meeting, (Address{"gpu1", 29500}));
  EXPECT_EQ(o.gpus, "0,2");
  EXPECT_THAT(o.notes, ElementsAre(HasSubstr("multi_config.yaml:7: debug is passed over: ")));
  EXPECT_EQ(parse_options({"--config_file", file, "--machine_rank=1", "x"})->node_rank, 1);
  EXPECT_EQ(parse_options({"--config_file", file, "--cpu", "x"})->gpus, "");
  test::write_file(file, "rdzv_backend: etcd\nnum_machines: 2\nmain_process_ip: gpu1\nmachine_rank: 0\n");
  EXPECT_THAT(error_text([&] {
                parse_options({"--config_file", file, "x"});
              }),
              HasSubstr("--rdzv-backend: expected c10d or static, got 'etcd'"));
}

TEST(Options, AcceleratesOtherFlags) {
  const Options o = *parse_options({"--gpu_ids=1,3", "--num_cpu_threads_per_process=4", "--same_network", "x"});
  EXPECT_EQ(o.gpus, "1,3");
  EXPECT_EQ(o.threads, 4);
  EXPECT_FALSE(parse_options({"--gpu_ids=all", "x"})->gpus.has_value());
  for (const char* flag : {"--quiet", "-q", "--debug", "--enable_cpu_affinity", "--main_training_function=main",
                           "--downcast_bf16", "--dynamo_backend=inductor", "--dynamo_use_dynamic"})
    EXPECT_THAT(parse_options({flag, "x"})->notes, ElementsAre(HasSubstr(" is passed over: "))) << flag;
  const auto error = [](const std::string& flag) { return error_text([&] { parse_options({flag, "x"}); }); };
  for (const char* flag : {"--use_fsdp", "--use_deepspeed", "--fsdp_sharding_strategy=1", "--zero_stage=2",
                           "--megatron_lm_tp_degree=2", "--deepspeed_config_file=a.json"})
    EXPECT_THAT(error(flag), HasSubstr("sharding is the program's choice: give it --parallel fsdp")) << flag;
  for (const char* flag : {"--tpu", "--ipex", "--tpu_use_sudo"})
    EXPECT_THAT(error(flag), HasSubstr("ranks use GPUs of NVIDIA, or the CPU (--cpu). Leave it out")) << flag;
  EXPECT_EQ(error("--gradient_clipping=1"), "--gradient-clipping: it is the program's choice: give it its own flag");
  EXPECT_EQ(error("--mpirun_hostfile=h"), "--mpirun-hostfile: start mpirun itself: mpirun --hostfile FILE PROGRAM");
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
  EXPECT_EQ(text({"--nnodes", "2", "--rdzv-endpoint", "gpu1:0", "x"}),
            "--rdzv-endpoint: expected HOST:PORT, got no port");
  EXPECT_EQ(text({"--nnodes", "2", "--rdzv-endpoint", "gpu1", "--rdzv-backend", "static", "--node-rank", "0", "x"}),
            "--rdzv-endpoint: expected HOST:PORT, got no port");
  EXPECT_EQ(text({"--nnodes=", "x"}), "--nnodes: expected a whole number, got ''");
  EXPECT_EQ(text({"-m", "package.train"}),
            "--module: a program is started, no module of Python: write python3 -m MODULE");
  EXPECT_EQ(text({"--run_path", "/a/train.py"}),
            "--run-path: a program is started, no script of Python: write python3 SCRIPT");
  EXPECT_EQ(text({"--print-completion=bash"}), "--print-completion: --help lists the flags");
  EXPECT_EQ(text({"--standalone=false", "x"}), "--standalone: expected no value, got 'false'");
  EXPECT_EQ(text({"--rdzv_conf=timeout", "x"}), "--rdzv-conf: expected NAME=VALUE,…, got 'timeout'");
  EXPECT_EQ(text({"--rdzv_conf=timeout=0", "x"}), "--rdzv-conf timeout: expected 1 to 604800, got 0");
  EXPECT_EQ(text({"--rdzv_conf=store_type=file", "x"}), "--rdzv-conf store_type: expected tcp, got 'file'");
  EXPECT_EQ(text({"--rdzv_conf=time_out=5", "x"}), "--rdzv-conf: unknown setting 'time_out'. Did you mean 'timeout'?");
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
                HasSubstr("expected a number from 1 to 4096, auto, gpu or cpu"));
}

}  // namespace
}  // namespace weft::weft_run
