// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/record.h"

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/support/python_text.h"
#include "io/atomic_file.h"
#include "train/record/scalar_log.h"

namespace weft::finetune {
namespace {

using Json = nlohmann::ordered_json;
using support::python_number;

double rounded(double value, double digits) { return std::round(value * digits) / digits; }

void note(TrainerState& state, Json line) {
  line["step"] = state.step;
  state.history.push_back(line.dump());
}

/// Under the names of Hugging Face's TrainingArguments where it has them.
train::HyperParameters hyper_parameters(const Options& o) {
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  return {{"model", o.model},
          {"weights", o.weights},
          {"per_device_train_batch_size", number(o.batch_size)},
          {"gradient_accumulation_steps", number(o.accumulate)},
          {"num_train_epochs", number(o.epochs)},
          {"learning_rate", o.lr},
          {"weight_decay", o.weight_decay},
          {"warmup_ratio", o.warmup_ratio},
          {"max_grad_norm", o.clip_norm},
          {"bf16", o.precision == "bf16"},
          {"seed", number(o.seed)}};
}

}  // namespace

Record::Record(const Options& options, const train::RunFolder& folder, int64_t outputs, int64_t metrics_step,
               int64_t board_step)
    : folder_(folder),
      metrics_(folder_.metrics(), metrics_step),
      board_(folder_.path(), board_step),
      outputs_(outputs) {
  folder_.write_config(options.toml);
  const train::HyperParameters values = hyper_parameters(options);
  write_atomically(folder_.file("config.yaml"), train::wandb_config(values), "config");
  board_.hyper_parameters(values);
}

void Record::trained(TrainerState& state, const TrainLine& line) {
  std::cout << "{'loss': " << python_number(rounded(line.loss, 1e4))
            << ", 'grad_norm': " << python_number(line.gradient_norm) << ", 'learning_rate': " << python_number(line.lr)
            << ", 'epoch': " << python_number(rounded(state.epoch, 1e2)) << '}' << std::endl;
  note(state, {{"epoch", state.epoch},
               {"grad_norm", line.gradient_norm},
               {"learning_rate", line.lr},
               {"loss", rounded(line.loss, 1e4)}});
  board_.scalar("train/loss", line.loss, state.step);
  board_.scalar("train/grad_norm", line.gradient_norm, state.step);
  board_.scalar("train/learning_rate", line.lr, state.step);
}

void Record::evaluated(TrainerState& state, const Score& score, double lr, double texts_per_second,
                       int64_t peak_tensor_bytes) {
  std::cout << "{'eval_loss': " << python_number(rounded(score.loss, 1e4));
  for (const auto& [name, value] : named(score))
    std::cout << ", 'eval_" << name << "': " << python_number(rounded(value, 1e4));
  std::cout << ", 'epoch': " << python_number(rounded(state.epoch, 1e2)) << '}' << std::endl;
  Json line{{"epoch", state.epoch}, {"eval_loss", score.loss}};
  for (const auto& [name, value] : named(score)) line["eval_" + name] = value;
  note(state, line);
  metrics_.append({.epoch = std::llround(state.epoch),
                   .step = state.step,
                   .split = train::Split::val,
                   .loss = score.loss,
                   .accuracy = score.accuracy,
                   .lr = lr,
                   .images_per_second = texts_per_second,
                   .peak_tensor_bytes = peak_tensor_bytes});
  board_.scalar("texts_per_second", texts_per_second, state.step);
  board_.scalar("peak_tensor_bytes", static_cast<double>(peak_tensor_bytes), state.step);
  board_.scalar("eval/loss", score.loss, state.step);
  for (const auto& [name, value] : named(score)) board_.scalar("eval/" + name, value, state.step);
}

void Record::finished(const TrainerState& state, const Score& score, const Effort& effort) const {
  const auto steps = static_cast<double>(state.step);
  const double loss = state.run_loss / steps;
  std::cout << "{'train_runtime': " << python_number(rounded(effort.seconds, 1e4))
            << ", 'train_samples_per_second': " << python_number(rounded(effort.texts / effort.seconds, 1e3))
            << ", 'train_steps_per_second': " << python_number(rounded(steps / effort.seconds, 1e3))
            << ", 'train_loss': " << python_number(loss) << ", 'epoch': " << python_number(rounded(state.epoch, 1e2))
            << '}' << std::endl;
  train::Summary summary{{"steps", state.step}, {"train_loss", loss}, {"eval_loss", score.loss}};
  for (const auto& [name, value] : named(score)) summary.emplace_back("eval_" + name, value);
  summary.emplace_back("seconds", effort.seconds);
  summary.emplace_back("texts_per_second", effort.texts_per_second);
  summary.emplace_back("peak_tensor_bytes", effort.peak_tensor_bytes);
  folder_.write_summary(summary);
}

std::vector<std::pair<std::string, double>> Record::named(const Score& score) const {
  if (outputs_ == 1)
    return {{"pearson", score.pearson},
            {"spearmanr", score.spearman},
            {"combined_score", (score.pearson + score.spearman) / 2}};
  if (outputs_ == 2) return {{"accuracy", score.accuracy}, {"f1", score.f1}};
  return {{"accuracy", score.accuracy}};
}

}  // namespace weft::finetune
