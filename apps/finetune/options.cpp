// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/options.h"

#include <cstdlib>
#include <iostream>
#include <vector>

#include "apps/support/run_flags.h"
#include "nn/models/bert.h"

namespace weft::finetune {
namespace {

/// accelerate's word for the precision, from its file or from the launcher.
void take_precision(const std::string& word, Options& o) {
  if (word.empty()) return;
  if (word != "no" && word != "bf16")
    throw train::UsageError("mixed_precision: expected no or bf16, got '" + word + "'");
  o.precision = word == "no" ? "f32" : "bf16";
}

/// Hugging Face's bare --resume_from_checkpoint.
std::vector<std::string> spelled_out(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--overwrite-output-dir" || arguments[i] == "--overwrite_output_dir")
      arguments[i] = "--overwrite";
    const bool bare = i + 1 == arguments.size() || arguments[i + 1].starts_with("--");
    if (bare && (arguments[i] == "--resume-from-checkpoint" || arguments[i] == "--resume_from_checkpoint"))
      arguments[i] += "=last";
  }
  return arguments;
}

}  // namespace

bool parse_options(int argc, char** argv, Options& o) {
  support::Flags flags("finetune", "Trains BERT, RoBERTa or DistilBERT to classify sentences or pairs of them.");
  flags.group("Data and model");
  flags.add("data", o.data,
            "folder with train.tsv and dev.tsv (or .csv, .jsonl): a task of GLUE, or columns text and label");
  flags.add("train-file", o.train_file, "the training part; default: train.tsv, .csv, .json or .jsonl of --data");
  flags.add(
      "validation-file", o.validation_file,
      "the part that is scored; default: dev.tsv, validation.tsv or dev_matched.tsv of --data, or .csv, .json, .jsonl");
  flags.add("text-column-names", o.text_columns,
            "one or two columns of texts, with a comma; default: those of a known name");
  flags.add("label-column-name", o.label_column, "the column of labels; default: the one of a known name");
  flags.add_choice("problem-type", o.problem, {"auto", "single_label_classification", "regression"},
                   "auto: regression where labels are numbers with a point, or config.json beside the weights says so");
  flags.add_choice("model", o.model, nn::bert_names(),
                   "bert_base, roberta_base: 12 layers, 768 wide; distilbert_base: 6 layers; bert_tiny: 2 layers, 128 "
                   "wide; config.json "
                   "beside the weights says more");
  flags.add(
      "weights", o.weights,
      "auto, random, or a file or folder under Hugging Face's names (model.safetensors, pytorch_model.bin); auto: for "
      "bert_base the folder bert-base-uncased, for roberta_base roberta-base, for distilbert_base "
      "distilbert-base-uncased, for bert_tiny random");
  flags.add("weights-key", o.weights_key, "which dict of a PyTorch file, which part of a checkpoint; '': found");
  flags.add(
      "vocab", o.vocab,
      "vocab.txt or tokenizer.json, or a folder of one, of RoBERTa a folder with vocab.json and merges.txt; default: "
      "that beside the weights, or one made from the training texts");
  flags.add("vocab-size", o.vocab_size, "tokens of a vocabulary that is made", {.min = 100, .max = 1e6});
  flags.add("max-length", o.max_length,
            "tokens of the longest text; longer ones are cut; at most what the model has positions for",
            {.min = 3, .max = 1 << 20});
  flags.add("pad-to-multiple-of", o.pad_to_multiple_of,
            "training batches are padded to a multiple of so many tokens; 0: on a GPU to at most 16 lengths, for "
            "--graph, else 1",
            {.min = 0, .max = 1 << 20});
  flags.add("dropout", o.dropout, "of all layers; -1: as config.json beside the weights says, else 0.1",
            {.min = -1, .max = 0.9});
  flags.group("Training");
  flags.add("lr", o.lr, "learning rate of AdamW; falls to 0 along a line", {.min = 0});
  flags.add("weight-decay", o.weight_decay, "of matrices; biases and norms have none", {.min = 0});
  flags.add("layer-decay", o.layer_decay, "the rate of a layer by that of the layer after it (0.9); 1: one rate",
            {.min = 0, .max = 1, .above = true});
  flags.add("warmup-ratio", o.warmup_ratio, "share of the steps in which the rate rises from 0",
            {.min = 0, .max = 0.99});
  flags.add("max-grad-norm", o.clip_norm, "largest norm of the gradient", {.min = 0, .above = true});
  support::add_run_flags(
      flags, o,
      "epochs batch-size accumulate recompute ema precision graph device parallel backend grad-compression "
      "fsdp-strategy fsdp-shard-size fsdp-offload fsdp-checkpoints fsdp-accumulate min-num-params seed out overwrite "
      "max-steps dry-run");
  flags.add("logging-steps", o.log_interval, "a line of loss and rate after so many steps", {.min = 1});
  flags.add("save-steps", o.save_interval, "a folder checkpoint-N after so many steps, and at the end", {.min = 1});
  flags.add("resume-from-checkpoint", o.resume,
            "a folder checkpoint-N, last (the one of the largest N in --out), or auto (the last if there is one)");
  flags.group("As accelerate has them");
  support::AccelerateConfig& a = o.accelerate;
  std::string config_file;
  flags.add("config-file", config_file, "accelerate's YAML file, such as multi_config.yaml; flags win");
  flags.add("machine-rank", a.machine_rank, "accelerate's number of this machine, where it has one process",
            {.min = -1, .max = 1e6});
  flags.add("main-process-ip", a.main_process_ip, "host of machine 0");
  flags.add("main-process-port", a.main_process_port, "where rank 0 listens; 0: 29500", {.min = 0, .max = 65535});
  flags.add("num-processes", a.num_processes, "processes of the job; 0: as the launcher says", {.min = 0, .max = 1e6});
  flags.example("finetune");
  flags.example("finetune --data glue/mrpc --weights models/bert-base-uncased --precision bf16");
  flags.example("finetune --data glue/mrpc --model roberta_base --lr 2e-5");
  flags.example("weft-run --nproc_per_node 2 finetune --data sst2 --model bert_tiny --epochs 3 --lr 1e-3");
  if (!flags.parse(spelled_out(argc, argv))) return false;
  o.has_model = flags.given("model");
  if (!config_file.empty()) {
    const support::AccelerateConfig file = support::read_accelerate_config(config_file);
    a.num_machines = file.num_machines;
    if (!flags.given("machine-rank")) a.machine_rank = file.machine_rank;
    if (!flags.given("main-process-ip")) a.main_process_ip = file.main_process_ip;
    if (!flags.given("main-process-port")) a.main_process_port = file.main_process_port;
    if (!flags.given("num-processes")) a.num_processes = file.num_processes;
    a.mixed_precision = file.mixed_precision;
    if (!file.gpu_ids.empty() && file.gpu_ids != "all") ::setenv("CUDA_VISIBLE_DEVICES", file.gpu_ids.c_str(), 1);
    if (file.use_cpu && !flags.given("device")) o.device = "cpu";
    for (const std::string& note : file.notes) std::cerr << "finetune: " << note << '\n';
  }
  if (const char* word = std::getenv("ACCELERATE_MIXED_PRECISION"); word != nullptr && a.mixed_precision.empty())
    a.mixed_precision = word;
  if (!flags.given("precision")) take_precision(a.mixed_precision, o);
  o.toml = flags.toml();
  return true;
}

}  // namespace weft::finetune
