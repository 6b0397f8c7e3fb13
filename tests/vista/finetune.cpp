// SPDX-License-Identifier: Apache-2.0
// finetune below accelerate's flags, without a launcher and with weft-run in accelerate's place.
#include "tests/vista/program.h"

#if WEFT_HAVE_UTF8PROC && WEFT_HAVE_RANKS && WEFT_HAVE_YAML

namespace weft::tests {
namespace {

using testing::HasSubstr;

class Accelerate : public testing::Test {
 protected:
  Accelerate() {
    std::filesystem::create_directories(folder_ / "data");
    for (const char* part : {"train", "dev"}) {
      std::ofstream out(folder_ / (std::string("data/") + part + ".tsv"));
      out << "sentence\tlabel\n";
      for (int i = 0; i < 8; ++i) out << "a good film " << i << "\t1\na bad film " << i << "\t0\n";
    }
    std::ofstream(folder_ / "multi_config.yaml")
        << "distributed_type: MULTI_GPU\nnum_machines: 2\nmixed_precision: bf16\n";
  }
  void expect_two_ranks(const Outcome& run) {
    ASSERT_EQ(run.exit_code, 0) << run.output << said(folder_);
    EXPECT_THAT(run.output, HasSubstr("ranks   2 over "));
    EXPECT_THAT(run.output, HasSubstr("weights random, bf16"));  // as the file says
    EXPECT_EQ(lines_with(run.output, "{'eval_loss'").find('\n'), lines_with(run.output, "{'eval_loss'").size() - 1);
    EXPECT_TRUE(std::filesystem::exists(folder_ / "test-trainer/checkpoint-2/model.safetensors"));
  }

  const TemporaryFolder folder_;
  const std::string port_ =
      "port=$(python3 -c 'import socket; s = socket.socket(); s.bind((\"\", 0)); print(s.getsockname()[1])'); "
      "export WEFT_JOB_SECRET=known-to-two-ranks; ";
  const std::string arguments_ = " --data data --model bert_tiny --vocab-size 100 --epochs 1 --batch-size 4 ";
};

TEST_F(Accelerate, FinetuneTakesItsFlags) {
  const WithoutGpus on_the_cpu;
  const std::string rank =
      "finetune --config_file multi_config.yaml --main_process_ip localhost --main_process_port $port "
      "--num_processes 2" +
      arguments_ + "--machine_rank ";
  expect_two_ranks(run_in(folder_, port_ + rank + "1 & " + rank + "0; wait $!"));
}

TEST_F(Accelerate, WeftRunTakesItsPlace) {
  const WithoutGpus on_the_cpu;
  const std::string node =
      "weft-run --config_file multi_config.yaml --main_process_ip=localhost --main_process_port=$port --rdzv_backend "
      "static "
      "--num_processes 2 ";
  const std::string program = " " BIN "/finetune" + arguments_;
  expect_two_ranks(run_in(
      folder_, port_ + node + "--machine_rank=1" + program + "& " + node + "--machine_rank=0" + program + "; wait $!"));
}

TEST_F(Accelerate, ADryRunDoesNotWaitForTheOtherMachine) {
  const Outcome run = run_in(folder_,
                             "timeout 60 finetune --dry-run --main_process_ip 192.0.2.1 --main_process_port 1234 "
                             "--num_processes 2 --machine_rank 1" +
                                 arguments_);
  ASSERT_EQ(run.exit_code, 0) << said(folder_);
  EXPECT_THAT(run.output, HasSubstr("ranks   2, of which this is machine 1; the steps below are those of one alone\n"));
  EXPECT_THAT(run.output, HasSubstr("dry run: would train "));
}

TEST_F(Accelerate, SaysWhatIsWrong) {
  const auto refusal = [&](const std::string& arguments) {
    EXPECT_EQ(run_in(folder_, "finetune " + arguments + arguments_).exit_code, 2) << said(folder_);
    return said(folder_);
  };
  EXPECT_THAT(refusal("--num_processes 2 --machine_rank 0"),
              HasSubstr("finetune: error: --main-process-ip: expected the host of machine 0 beside --num-processes"));
  std::ofstream(folder_ / "bad.yaml") << "num_machines: 2\nmixed_precison: bf16\n";
  EXPECT_THAT(refusal("--config_file bad.yaml"), HasSubstr("bad.yaml:2: "));
  std::ofstream(folder_ / "half.yaml") << "mixed_precision: fp16\n";
  EXPECT_THAT(refusal("--config_file half.yaml"), HasSubstr("mixed_precision: expected no or bf16, got 'fp16'"));
}

}  // namespace
}  // namespace weft::tests

#endif
