// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/trainer.h"

#include <chrono>
#include <cmath>
#include <iostream>

#include "apps/finetune/bert_files.h"
#include "apps/support/python_number.h"
#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/argmax.h"
#include "core/ops/cross_entropy.h"
#include "optim/schedule/linear.h"
#include "optim/schedule/sequential.h"

namespace weft::finetune {

using support::python_number;

namespace {

DType precision_of(const Options& options) { return options.precision == "bf16" ? DType::bf16 : DType::f32; }

double rounded(double value, double digits) { return std::round(value * digits) / digits; }

support::ParallelOptions parallel_options(const Options& o) {
  return {.kind = o.parallel,
          .bucket_mb = 25,
          .compress_bf16 = false,
          .sync_batch_norm = false,
          .strategy = "full_shard",
          .min_num_params = o.min_num_params,
          .shard_size = 0,
          .low_precision = o.precision == "bf16"};
}

/// As many steps on all ranks; the last texts come twice where they do not divide.
data::Sampler training_order(const Options& options, const support::Ranks& ranks, const Texts& texts) {
  return data::Sampler(static_cast<int64_t>(texts.labels.size()),
                       {.seed = static_cast<uint64_t>(options.seed), .rank = ranks.rank(), .world = ranks.size()});
}

optim::SchedulePtr make_schedule(double warmup_ratio, int64_t steps) {
  const auto warmup = static_cast<int64_t>(std::ceil(warmup_ratio * static_cast<double>(steps)));
  const auto decay =
      std::make_shared<optim::LinearSchedule>(std::max<int64_t>(steps - warmup, 1), optim::LinearScheduleOptions{1, 0});
  if (warmup == 0) return decay;
  const auto rise = std::make_shared<optim::LinearSchedule>(warmup, optim::LinearScheduleOptions{0, 1});
  return std::make_shared<optim::SequentialSchedule>(std::vector<optim::SchedulePtr>{rise, decay},
                                                     std::vector<int64_t>{warmup});
}

}  // namespace

Trainer::Trainer(const Options& options, const support::Ranks& ranks, const data::WordPiece& pieces,
                 const std::shared_ptr<Classifier>& model, const Texts& train, const Texts& dev)
    : options_(options),
      ranks_(ranks),
      pieces_(pieces),
      model_(model),
      train_(train),
      dev_(dev),
      loader_(train, training_order(options, ranks, train), options.batch_size, pieces.padding_id(), ranks.device()),
      parallel_(support::make_parallel(parallel_options(options), model, ranks)) {
  std::vector<optim::ParameterGroup> groups = optim::without_decay_on_vectors(parallel_->parameters());
  adam_ = std::make_unique<optim::AdamW>(groups,
                                         optim::AdamWOptions{.lr = options.lr, .weight_decay = options.weight_decay});
  if (precision_of(options) == DType::bf16 && !parallel_->is_sharded()) adam_->flat()->keep_compute_copy(DType::bf16);
  scheduler_ =
      std::make_unique<optim::Scheduler>(*adam_, make_schedule(options.warmup_ratio, options.epochs * loader_.steps()));
  if (!ranks_.is_first()) return;
  folder_ = std::make_unique<support::RunFolder>(options.out);
  folder_->write_config(options.toml);
  metrics_ = std::make_unique<support::Metrics>(folder_->metrics());
  board_ = std::make_unique<support::TensorBoard>(folder_->path());
}

double Trainer::epoch() const { return static_cast<double>(step_) / static_cast<double>(loader_.steps()); }

Score Trainer::run() {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  Score score;
  for (int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
    model_->train();
    loader_.start(epoch);
    while (const auto batch = loader_.next()) {
      step(*batch);
      if (step_ % options_.logging_steps == 0) log();
      if (step_ % options_.save_steps == 0) save();
    }
    images_per_second_ = static_cast<double>(step_ * options_.batch_size * ranks_.size()) / seconds();
    score = evaluate();
  }
  if (saved_ != step_) save();
  finish(seconds(), score);
  return score;
}

void Trainer::step(const TextBatch& batch) {
  Tensor loss;
  {
    const Autocast low(precision_of(options_));
    loss = cross_entropy(parallel_->forward(batch.input), batch.labels);
  }
  adam_->zero_grad();
  loss.backward();
  gradient_norm_ = parallel_->clip_grad_norm(options_.max_grad_norm);
  adam_->step();
  scheduler_->step();
  ++step_;
  const Tensor now = loss.detach().to(DType::f64).clone();
  losses_ = losses_.defined() ? losses_.add_(now) : now;
}

void Trainer::log() {
  const double sum = ranks_.sum({losses_.item()}, "losses")[0] / ranks_.size();
  const double loss = sum / static_cast<double>(step_ - logged_), norm = gradient_norm_.item();
  WEFT_CHECK(std::isfinite(loss), "the loss is not a number at step ", step_, ". Choose a smaller --lr");
  run_loss_ += sum;
  losses_ = {};
  logged_ = step_;
  if (!ranks_.is_first()) return;
  std::cout << "{'loss': " << python_number(rounded(loss, 1e4)) << ", 'grad_norm': " << python_number(norm)
            << ", 'learning_rate': " << python_number(adam_->lr())
            << ", 'epoch': " << python_number(rounded(epoch(), 1e2)) << '}' << std::endl;
  board_->scalar("train/loss", loss, step_);
  board_->scalar("train/grad_norm", norm, step_);
  board_->scalar("train/learning_rate", adam_->lr(), step_);
}

void Trainer::save() {
  saved_ = step_;
  const StateDict whole = parallel_->model_state();
  if (!folder_) return;
  StateDict state;
  for (const NamedTensor& entry : whole.tensors)
    state.tensors.push_back({entry.name.substr(std::string_view("model.").size()), entry.tensor});
  save_bert(folder_->file(str("checkpoint-", step_)), state, model_->model->options, pieces_);
}

Score Trainer::evaluate() {
  const NoGrad no_grad;
  model_->eval();
  const data::Sampler order(
      static_cast<int64_t>(dev_.labels.size()),
      {.shuffle = false, .rank = ranks_.rank(), .world = ranks_.size(), .tail = data::Tail::uneven});
  TextLoader texts(dev_, order, std::max<int64_t>(options_.batch_size, 32), pieces_.padding_id(), ranks_.device());
  const int64_t most = ranks_.max(texts.steps(), "steps of the evaluation");
  double loss = 0, count = 0, right = 0, hits = 0, guessed = 0, there = 0;
  const auto forward = [&](const Tensor& input) {
    const Autocast low(precision_of(options_));
    return parallel_->forward(input);
  };
  int64_t steps = 0;
  Tensor like;
  while (const auto batch = texts.next()) {
    like = batch->input;
    const Tensor logits = forward(batch->input);
    loss += cross_entropy(logits, batch->labels, {.reduction = Reduction::sum}).item();
    const std::vector<int64_t> guesses = argmax(logits, 1).to_vector<int64_t>(),
                               labels = batch->labels.to_vector<int64_t>();
    for (size_t i = 0; i < labels.size(); ++i) {
      right += guesses[i] == labels[i];
      hits += guesses[i] == 1 && labels[i] == 1;
      guessed += guesses[i] == 1;
      there += labels[i] == 1;
    }
    count += static_cast<double>(batch->count);
    ++steps;
  }
  if (!like.defined()) like = Tensor::zeros({1, 3, 2}, DType::i64, ranks_.device());
  for (; parallel_->is_sharded() && steps < most; ++steps) forward(like);  // the others need this rank's weights
  const std::vector<double> sums = ranks_.sum({loss, count, right, hits, guessed, there}, "evaluation");
  const Score score{.loss = sums[0] / sums[1],
                    .accuracy = sums[2] / sums[1],
                    .f1 = sums[4] + sums[5] > 0 ? 2 * sums[3] / (sums[4] + sums[5]) : 0};
  if (!ranks_.is_first()) return score;
  std::cout << "{'eval_loss': " << python_number(rounded(score.loss, 1e4))
            << ", 'eval_accuracy': " << python_number(rounded(score.accuracy, 1e4));
  if (model_->model->options.classes == 2) std::cout << ", 'eval_f1': " << python_number(rounded(score.f1, 1e4));
  std::cout << ", 'epoch': " << python_number(rounded(epoch(), 1e2)) << '}' << std::endl;
  metrics_->append({.epoch = std::llround(epoch()),
                    .step = step_,
                    .split = support::Split::val,
                    .loss = score.loss,
                    .accuracy = score.accuracy,
                    .lr = adam_->lr(),
                    .images_per_second = images_per_second_});
  board_->scalar("eval/loss", score.loss, step_);
  board_->scalar("eval/accuracy", score.accuracy, step_);
  board_->scalar("eval/f1", score.f1, step_);
  return score;
}

void Trainer::finish(double seconds, const Score& score) {
  if (losses_.defined()) run_loss_ += ranks_.sum({losses_.item()}, "losses")[0] / ranks_.size();
  if (!ranks_.is_first()) return;
  const double texts = static_cast<double>(train_.labels.size()) * static_cast<double>(options_.epochs);
  const double loss = run_loss_ / static_cast<double>(step_);
  std::cout << "{'train_runtime': " << python_number(rounded(seconds, 1e4))
            << ", 'train_samples_per_second': " << python_number(rounded(texts / seconds, 1e3))
            << ", 'train_steps_per_second': " << python_number(rounded(static_cast<double>(step_) / seconds, 1e3))
            << ", 'train_loss': " << python_number(loss) << ", 'epoch': " << python_number(rounded(epoch(), 1e2)) << '}'
            << std::endl;
  folder_->write_summary({{"steps", step_},
                          {"train_loss", loss},
                          {"eval_loss", score.loss},
                          {"eval_accuracy", score.accuracy},
                          {"eval_f1", score.f1},
                          {"seconds", seconds}});
}

}  // namespace weft::finetune
