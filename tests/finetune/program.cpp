// SPDX-License-Identifier: Apache-2.0
// finetune as its users start it, on texts small enough for a test.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "io/safetensors.h"
#include "tests/finetune/program.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

void expect_refusal(const std::string& arguments, int exit_code, const std::string& text) {
  const TemporaryFolder folder;
  const Outcome run = finetune(arguments, folder);
  EXPECT_EQ(run.exit_code, exit_code) << arguments << '\n' << run.output;
  EXPECT_THAT(run.output, HasSubstr("finetune: error: " + text)) << arguments;
}

#if WEFT_HAVE_UTF8PROC

const std::string kNumber = R"(-?[0-9.]+(e-?[0-9]+)?)";
const std::string kLoss = R"(\{'loss': )" + kNumber + R"(, 'grad_norm': )" + kNumber + R"(, 'learning_rate': )" +
                          kNumber + R"(, 'epoch': [0-9.]+\})";
const std::string kEval = R"(\{'eval_loss': )" + kNumber + R"(, 'eval_accuracy': )" + kNumber + R"(, 'eval_f1': )" +
                          kNumber + R"(, 'epoch': [0-9.]+\})";
// 96 texts: 12 steps of 8 an epoch.
const std::string kTiny =
    " --model bert_tiny --vocab-size 100 --lr 1e-3 --epochs 3 --logging-steps 10 --save-steps 20 ";

TEST(Finetune, LearnsPrintsAndSavesAsTheTrainerDoes) {
  const TemporaryFolder folder;
  write_sentences(folder / "data");
  const Outcome run = finetune("--data " + (folder / "data") + kTiny, folder);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const std::vector<std::string> losses = lines(run.output, kLoss);
  ASSERT_EQ(losses.size(), 3u) << run.output;
  EXPECT_THAT(losses[0],
              HasSubstr("'learning_rate': 0.00075, 'epoch': 0.83}"));  // step 10, the tenth: 1e-3 (1 - 9 / 36)
  EXPECT_EQ(lines(run.output, kEval).size(), 3u) << run.output;
  EXPECT_THAT(run.output, HasSubstr("{'train_runtime': "));
  const auto summary = nlohmann::json::parse(read_text(folder / "run/summary.json"));
  EXPECT_EQ(summary["steps"], 36);
  EXPECT_GT(summary["texts_per_second"], 0);
  EXPECT_GT(summary["peak_tensor_bytes"], 4 * 4 * 400'000);  // bert_tiny's blocks, with gradients and two moments
  EXPECT_GE(summary["eval_accuracy"], 0.95) << run.output;   // one word decides
  EXPECT_THAT(read_text(folder / "run/config.yaml"), HasSubstr("num_train_epochs:\n  value: 3\n"));
  EXPECT_TRUE(std::filesystem::exists(folder / "run/checkpoint-20/model.safetensors"));
  const StateDict saved = read_safetensors(folder / "run/checkpoint-36/model.safetensors").state;
  EXPECT_EQ(saved.tensor("bert.encoder.layer.1.attention.self.key.weight").sizes(), (Shape{128, 128}));
  EXPECT_EQ(saved.tensor("bert.encoder.layer.0.attention.output.dense.bias").sizes(), (Shape{128}));
  EXPECT_EQ(saved.tensor("classifier.weight").sizes(), (Shape{2, 128}));

  // Its own checkpoint, at a rate of 0, scores the same: names, vocabulary and weights came back.
  const Outcome again = finetune("--data " + (folder / "data") + " --model bert_tiny --lr 0 --epochs 1 --weights " +
                                     (folder / "run/checkpoint-36"),
                                 folder, "again");
  ASSERT_EQ(again.exit_code, 0) << again.output;
  const auto same = nlohmann::json::parse(read_text(folder / "again/summary.json"));
  EXPECT_EQ(same["eval_accuracy"], summary["eval_accuracy"]);
  EXPECT_EQ(same["eval_loss"], summary["eval_loss"]);
}

TEST(Finetune, TakesPairs) {
  const TemporaryFolder folder;
  std::string table = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n";
  for (int i = 0; i < 12; ++i)
    table += std::to_string(i % 2) + "\t1\t2\tthe cat sat\t" + (i % 2 == 1 ? "the cat sat\n" : "a dog ran away\n");
  write(folder / "data/train.tsv", table);
  write(folder / "data/dev.tsv", table);
  const Outcome run = finetune("--data " + (folder / "data") + kTiny + "--max-length 8 --precision bf16", folder);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("train.tsv: 12 pairs, 2 classes"));
}

#if WEFT_HAVE_RANKS
TEST(Finetune, OnTwoRanks) {
  const WithoutGpus on_the_cpu;
  const TemporaryFolder folder;
  write_sentences(folder / "data");
  for (const char* parallel : {"ddp", "fsdp"}) {
    const Outcome run =
        shell("OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 " WEFT_RUN " --nproc_per_node 2 " FINETUNE " --data " +
              (folder / "data") + kTiny + "--batch-size 4 --min-num-params 100000 --parallel " + parallel + " --out " +
              (folder / parallel));
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_EQ(lines(run.output, kEval).size(), 3u) << run.output;
    const auto summary = nlohmann::json::parse(read_text(folder / (std::string(parallel) + "/summary.json")));
    EXPECT_EQ(summary["steps"], 36);
    EXPECT_GE(summary["eval_accuracy"], 0.95) << run.output;
    EXPECT_TRUE(std::filesystem::exists(folder / (std::string(parallel) + "/checkpoint-36/model.safetensors")));
  }
}
#endif

#if WEFT_HAVE_RANKS
TEST(Finetune, RanksWithOtherTextsAreNamed) {
  const WithoutGpus on_the_cpu;
  const TemporaryFolder folder;
  for (const char* own : {"data0", "data1"}) write_sentences(folder / own);
  const std::string changed = folder / "data1/dev.tsv";
  std::string text = read_text(changed);
  text.replace(text.find("story"), 5, "novel");
  std::ofstream(changed) << text;
  const Outcome run =
      shell("OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 " WEFT_RUN " --nproc_per_node 2 sh -c '" FINETUNE " --data " +
            (folder / "data") + "$RANK" + kTiny + " --out " + (folder / "run") + "'");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output,
              HasSubstr("data: the texts are not the same on all ranks: at entry 2 rank 0 has 'dev.tsv of "));
}
#endif

TEST(Finetune, NamesFilesOfOtherPrograms) {
  const TemporaryFolder folder;
  for (const auto& [name, cure] : {std::pair{"train.parquet", "In Python: datasets.load_dataset(DIR)[PART]"},
                                   {"train.csv.gz", "Unpack it first"}}) {
    const std::string data = folder / std::string(name + 6);
    std::filesystem::create_directories(data);
    write(data + '/' + name, "PAR1");
    expect_refusal(
        "--data " + data, 1,
        "--data: the folder " + data + " has " + name + ", expected train.tsv, .csv, .json or .jsonl. " + cure);
  }
}

TEST(Finetune, SaysWhichWeightsDoNotFit) {
  const TemporaryFolder folder;
  write_sentences(folder / "data");
  std::filesystem::create_directories(folder / "empty");
  expect_refusal(
      "--data " + (folder / "data") + " --weights " + (folder / "empty"), 1,
      "weights: " + (folder / "empty") +
          ": it is an empty folder, expected a file, or a folder with model.safetensors or pytorch_model.bin. Was "
          "it copied or downloaded in whole?");
  ASSERT_EQ(finetune("--data " + (folder / "data") + kTiny + "--epochs 1", folder).exit_code, 0);
  std::filesystem::remove(folder / "run/checkpoint-12/config.json");  // which says that they are bert_tiny's
  expect_refusal("--data " + (folder / "data") + " --model bert_base --weights " + (folder / "run/checkpoint-12"), 1,
                 "--weights " + (folder / "run/checkpoint-12/model.safetensors"));
}

TEST(Finetune, TakesSizesAndDropoutOfTheConfigurationBesideTheWeights) {
  const TemporaryFolder folder;
  write_sentences(folder / "data");
  const std::string data = "--data " + (folder / "data") + " --epochs 1 --max-steps 2 ";
  finetune(data + "--model bert_tiny --vocab-size 100 --dropout 0.25", folder, "first");
  const std::string weights = folder / "first/checkpoint-2", config = weights + "/config.json";
  // bert_base is the default of --model: its sizes would not fit.
  const Outcome run = finetune(data + "--weights " + weights, folder, "second");
  ASSERT_TRUE(run.exit_code == 0 || run.exit_code == 75) << run.output;
  auto json = nlohmann::json::parse(read_text(folder / "second/checkpoint-2/config.json"));
  EXPECT_EQ(json["hidden_size"], 128);
  EXPECT_EQ(json["hidden_dropout_prob"], 0.25);
  const auto error_of = [&](const char* key, const nlohmann::json& value) {
    auto changed = json;
    changed[key] = value;
    write(config, changed.dump());
    const Outcome refused = finetune(data + "--weights " + weights, folder, "third");
    EXPECT_EQ(refused.exit_code, 1) << refused.output;
    return refused.output;
  };
  EXPECT_THAT(error_of("model_type", "t5"),
              HasSubstr("config.json: expected model_type 'bert', 'roberta' or 'distilbert', got 't5'"));
  EXPECT_THAT(error_of("attention_probs_dropout_prob", 1.5),
              HasSubstr("config.json: expected attention_probs_dropout_prob of 0 to below 1, got 1.5"));
  EXPECT_THAT(error_of("num_hidden_layers", int64_t{1} << 40),
              HasSubstr("expected num_hidden_layers of 1 to 1024, got"));
  EXPECT_THAT(error_of("hidden_size", "wide"),
              HasSubstr("config.json: hidden_size: expected a whole number, got string"));
}

TEST(Finetune, SaysWhatIsWrongWithTheTexts) {
  const TemporaryFolder folder;
  write(folder / "one/train.tsv", "sentence\tlabel\na\t1\n");
  write(folder / "one/dev.tsv", "sentence\tlabel\nb\t1\n");
  expect_refusal("--data " + (folder / "one") + kTiny, 1,
                 "data: " + (folder / "one") + ": expected at least two classes, got 1");
  write(folder / "two/train.tsv", "sentence\tlabel\na\t1\nb\t0\n");
  write(folder / "two/dev.tsv", "sentence\tlabel\nb\t2\n");
  expect_refusal("--data " + (folder / "two") + kTiny, 1,
                 "data: dev.tsv: 1 sentences, 1 classes: the label '2' is none of the model's: 0, 1");
}

TEST(Finetune, ADryRunReadsAllAndWritesNothing) {
  const TemporaryFolder folder;
  write_sentences(folder / "data");
  const Outcome plan = finetune(
      "--model bert_tiny --vocab-size 100 --epochs 2 --batch-size 32 --device cpu --dry-run "
      "--data " +
          (folder / "data"),
      folder);
  EXPECT_EQ(plan.exit_code, 0) << plan.output;
  EXPECT_THAT(plan.output, HasSubstr("dry run: would train 2 epochs of 3 steps, 32 texts each, lr 5e-05, and write " +
                                     (folder / "run")));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

// The workflow gives no flags: MRPC, and the pretrained weights that lie beside it.
TEST(Finetune, WithoutArgumentsItIsTheWorkflow) {
  const TemporaryFolder folder;
  const auto run_here = [&](const std::string& arguments) {
    return shell("cd " + (folder / "") + " && OMP_WAIT_POLICY=passive " FINETUNE " --device cpu " + arguments);
  };
  EXPECT_THAT(run_here("").output, HasSubstr("finetune: error: --data: there is no folder mrpc, which should hold"));
  write_sentences(folder / "mrpc");
  const Outcome bare = run_here("");
  EXPECT_EQ(bare.exit_code, 1);
  EXPECT_THAT(bare.output, HasSubstr("finetune: error: --weights: there is no folder bert-base-uncased here"));
  EXPECT_FALSE(std::filesystem::exists(folder / "test-trainer"));
  for (const char* name : {"bert_base_uncased", "bert-base-uncased"}) {  // the second wins
    std::filesystem::create_directories(folder / name);
    EXPECT_THAT(run_here("").output, HasSubstr(std::string("weights: ") + name +
                                               ": it is an empty folder, expected a file, or a folder with "));
  }
  EXPECT_THAT(run_here("--model bert_tiny --vocab-size 100 --dry-run").output,
              HasSubstr("dry run: would train 3 epochs of 12 steps, 8 texts each, lr 5e-05, and write test-trainer"));
}

TEST(Finetune, PrintsNoProgressOfAShortEpochIntoALog) {
  const TemporaryFolder folder;
  write_sentences(folder / "data");
  const Outcome run = finetune(
      "--model bert_tiny --vocab-size 100 --epochs 1 --batch-size 32 --device cpu --data " + (folder / "data"), folder);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(lines(run.output, R"(.*epoch 1/1  step.*)").size(), 0u) << run.output;
}

#endif

TEST(Finetune, SaysWhatIsWrong) {
  expect_refusal("--data /nowhere", 1, "--data: there is no folder /nowhere, which should hold train.tsv and dev.tsv");
  expect_refusal("--model bert_large", 2, "--model: ");
  expect_refusal("--max-length 2", 2, "--max-length: ");
}

}  // namespace
}  // namespace weft::tests
