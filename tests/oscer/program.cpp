// SPDX-License-Identifier: Apache-2.0
// The OUAI demo as its users start it: their flags, their launch line, their batch script; on a small transformer.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "kernels/error.h"
#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

const std::string kSmall =
    "--weights random --model vit_tiny4 --data random:40x32x32x3 --precision f32 --workers 1 --device cpu ";
const std::string kQuiet = "OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 ";

int count(const std::string& output, const std::string& pattern) {
  int found = 0;
  std::istringstream in(output);
  for (std::string line; std::getline(in, line);) found += std::regex_match(line, std::regex(pattern)) ? 1 : 0;
  return found;
}

const std::string kAccuracy = R"(\{'validation accuracy': tensor\([0-9]+\.[0-9]{4}\)\})";

/// The log in the place of the tracking service: `epochs` lines under its key, and its names.
void expect_tracked(const std::filesystem::path& folder, int epochs, const std::string& output) {
  std::istringstream lines(read_text(folder / "OUAI Demo/metrics.jsonl"));
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(rows.size(), static_cast<size_t>(epochs));
  std::smatch printed;
  auto from = output.cbegin();
  for (int i = 0; i < epochs; ++i) {
    EXPECT_EQ(rows[static_cast<size_t>(i)]["step"], i);
    ASSERT_TRUE(std::regex_search(from, output.cend(), printed, std::regex("tensor\\(([0-9.]+)\\)")));
    EXPECT_NEAR(rows[static_cast<size_t>(i)]["validation accuracy"].get<double>(), std::stod(printed[1]), 1e-4);
    from = printed.suffix().first;
  }
  const std::string config = read_text(folder / "OUAI Demo/config.yaml");
  for (const char* words : {"project:", "OUAI Demo", "entity:", "ai2es", "name:", "Tuning DINOv2", "batch_size:"})
    EXPECT_THAT(config, HasSubstr(words));
}

TEST(OuaiDemo, OneProcess) {
  const TemporaryFolder folder;
  const Outcome run = shell(kQuiet + BIN "/ouai_demo -e 2 -b 8 -lr 1e-3 " + kSmall + "--out " + (folder / "run"));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(count(run.output, "0 linear probe"), 1) << run.output;
  EXPECT_EQ(count(run.output, "0 finetuning"), 1);
  EXPECT_EQ(count(run.output, "0 epoch"), 4);
  EXPECT_EQ(count(run.output, kAccuracy), 4);
  expect_tracked(folder / "run", 4, run.output);
}

TEST(OuaiDemo, ItsDefaultsAreTheWorkflows) {
  const Outcome help = shell(BIN "/ouai_demo --help");
  ASSERT_EQ(help.exit_code, 0) << help.output;
  EXPECT_THAT(help.output, HasSubstr("OUAI demo of OSCER"));
  EXPECT_THAT(help.output, HasSubstr("hub/checkpoints/dinov2_vitl14_reg4_pretrain.pth"));
  EXPECT_THAT(help.output, HasSubstr("10000000"));
  const TemporaryFolder folder;
  const Outcome bare = shell("cd " + (folder / "") + " && " BIN "/ouai_demo -e 5 -b 256 -lr 1e-3");
  EXPECT_EQ(bare.exit_code, 1) << bare.output;
  EXPECT_THAT(bare.output, HasSubstr("ouai_demo: error: --weights hub/checkpoints/dinov2_vitl14_reg4_pretrain.pth: "));
  EXPECT_THAT(bare.output,
              HasSubstr("there is no such file. `tools/fetch_weights dinov2_vitl14_reg hub/checkpoints` brings"));
  const Outcome units = shell(BIN "/ouai_demo --explain-sharding");
  EXPECT_THAT(units.output, HasSubstr("min_num_params 10000000: 24 units and the root\n     2116708  root\n"));
  EXPECT_THAT(shell(BIN "/ouai_demo -x 3").output, HasSubstr("ouai_demo: error: "));
}

TEST(OuaiDemo, ADryRunTrainsNothingAndTouchesNothing) {
  const TemporaryFolder folder;
  const Outcome run = shell(kQuiet + BIN "/ouai_demo -e 3 -b 8 --dry-run " + kSmall + "--out " + (folder / "run"));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(
      run.output,
      HasSubstr("dry run: would train probe,finetune, 3 epochs each, 5 steps an epoch, none; nothing is written"));
  EXPECT_EQ(count(run.output, "0 linear probe"), 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

#if WEFT_HAVE_RANKS
/// A port that was free a moment ago.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(fd);
  WEFT_CHECK(bound, "no free port");
  return ntohs(address.sin_port);
}

TEST(OuaiDemo, ByTheWorkflowsLaunchLine) {
  const TemporaryFolder folder;
  const Outcome run = shell(kQuiet +
                            BIN
                            "/weft-run --nnodes 1 --nproc_per_node 2 --rdzv_id 7 --rdzv_backend c10d "
                            "--rdzv_endpoint 127.0.0.1:" +
                            std::to_string(free_port()) + " " BIN "/ouai_demo -e 1 -b 8 -lr 1e-3 " + kSmall +
                            "--min-num-params 100000 --out " + (folder / "run"));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  for (const char* line : {"0 linear probe", "1 linear probe", "0 finetuning", "1 finetuning"})
    EXPECT_EQ(count(run.output, line), 1) << line << '\n' << run.output;
  EXPECT_EQ(count(run.output, "[01] epoch"), 4);
  EXPECT_EQ(count(run.output, kAccuracy), 2) << run.output;
  expect_tracked(folder / "run", 2, run.output);
}

// The batch script, with Slurm's two programs as one machine: srun starts a task for each of two nodes.
TEST(OuaiDemo, ByTheBatchScript) {
  const TemporaryFolder folder;
  shell("mkdir " + (folder / "slurm") + " && cat > " + (folder / "slurm/scontrol") +
        " <<'END'\n#!/bin/sh\n[ \"$1 $2 $3\" = 'show hostnames localhost' ] && echo localhost\nEND\ncat > " +
        (folder / "slurm/srun") +
        " <<'END'\n#!/bin/bash\n[[ $1 = --nodes=1 ]] && { [[ $3$4 = -wlocalhost ]] && echo ::1 fe80::1%eth0 127.0.0.1 "
        "spare; exit; }\n"
        "\"$@\" & first=$!\n\"$@\" & second=$!\nwait $first && wait $second\nEND\nchmod +x " +
        (folder / "slurm/*"));
  const Outcome run = shell("cd " + (folder / "") + " && " + kQuiet +
                            "WEFT_START_TIMEOUT=60 SLURM_JOB_NODELIST=localhost SLURM_JOB_NUM_NODES=2 SLURM_JOB_ID=11 "
                            "GPUS_PER_NODE=1 WEFT_BIN=" BIN " PATH=" +
                            (folder / "slurm") + ":$PATH timeout 120 bash " SUBMIT " -e 1 -b 8 -lr 1e-3 " + kSmall +
                            "--phases probe --out run");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("Node IP: 127.0.0.1\n"));
  for (const char* line : {"0 linear probe", "1 linear probe"}) EXPECT_EQ(count(run.output, line), 1) << run.output;
  EXPECT_EQ(count(run.output, kAccuracy), 1) << run.output;
  const std::string script = read_text(SUBMIT);
  for (const char* wanted : {"--partition=gpu", "--nodes=2", "--ntasks=2", "--cpus-per-task=32", "--gres=gpu:2",
                             "--mem=64G", "--time=24:00:00", "-e 5 -b 256 -lr 1e-3", ":64425"})
    EXPECT_THAT(script, HasSubstr(wanted));
}
#endif

}  // namespace
}  // namespace weft::tests
