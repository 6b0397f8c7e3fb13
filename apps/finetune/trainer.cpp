// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/trainer.h"

#include <chrono>
#include <cmath>
#include <iostream>
#include <numeric>
#include <sstream>

#include "apps/finetune/bert_files.h"
#include "apps/finetune/optimizer_files.h"
#include "apps/finetune/step_clock.h"
#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/mul.h"
#include "kernels/allocator.h"
#include "optim/layer_decay.h"
#include "optim/schedule/linear.h"
#include "optim/schedule/sequential.h"

namespace weft::finetune {

namespace {

constexpr int64_t kReadEvery = 20;  // steps between two looks at signals on a GPU

support::ParallelOptions parallel_options(const Options& o, Classifier& model) {
  support::ParallelOptions options{
      .kind = o.parallel, .min_num_params = o.min_num_params, .low_precision = o.precision == "bf16"};
  if (o.layer_decay < 1)
    options.order = optim::in_order(optim::by_layer(model.parameters(), {.factor = o.layer_decay}));
  return options;
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

constexpr std::string_view kPrefix = "model.";  // of what Classifier holds

StateDict without_prefix(const StateDict& state) {
  StateDict result{{}, state.scalars};
  for (const NamedTensor& entry : state.tensors)
    result.tensors.push_back({entry.name.substr(kPrefix.size()), entry.tensor});
  return result;
}

StateDict with_prefix(const StateDict& state) {
  StateDict result{{}, state.scalars};
  for (const NamedTensor& entry : state.tensors)
    result.tensors.push_back({std::string(kPrefix) + entry.name, entry.tensor});
  return result;
}

GroupNames groups(const optim::Optimizer& optimizer) {
  GroupNames names(static_cast<size_t>(optimizer.groups()));
  for (int group = 0; group < optimizer.groups(); ++group)
    for (const NamedTensor& parameter : optimizer.parameters(group))
      names[static_cast<size_t>(group)].push_back(parameter.name.substr(kPrefix.size()));
  return names;
}

}  // namespace

Trainer::Trainer(const Options& options, const support::RunFolder* folder, const support::Ranks& ranks,
                 const data::WordPiece& pieces, const std::shared_ptr<Classifier>& model, const Texts& train,
                 const Texts& dev)
    : options_(options),
      ranks_(ranks),
      pieces_(pieces),
      model_(model),
      train_(train),
      dev_(dev),
      loader_(train, training_order(options, ranks, train), options.batch_size, pieces.padding_id(), ranks.device()),
      parallel_(support::make_parallel(parallel_options(options, *model), model, ranks)),
      sums_(ranks, signals_),
      stop_(sums_, {.max_steps = options.max_steps}) {
  const std::vector<optim::ParameterGroup> groups =
      options.layer_decay < 1
          ? optim::by_layer(parallel_->parameters(),
                            {.lr = options.lr, .factor = options.layer_decay, .weight_decay = options.weight_decay})
          : optim::without_decay_on_vectors(parallel_->parameters());
  adam_ = std::make_unique<optim::AdamW>(groups,
                                         optim::AdamWOptions{.lr = options.lr, .weight_decay = options.weight_decay});
  if (precision_of(options) == DType::bf16 && !parallel_->is_sharded()) adam_->flat()->keep_compute_copy(DType::bf16);
  averages_ = support::make_averages(options.averages, *adam_, *model_);
  state_.total_steps = options.epochs * steps_per_epoch();
  state_.texts_per_step = options.batch_size * options.accumulate * ranks.size();
  scheduler_ = std::make_unique<optim::Scheduler>(*adam_, make_schedule(options.warmup_ratio, state_.total_steps));
  losses_ = Tensor::zeros({}, DType::f64, ranks.device());
  resume();
  if (folder == nullptr) return;
  progress_ = std::make_unique<support::Progress>(support::ProgressOptions{.unit = "texts", .clock = {}});
  const bool fresh = options.resume.empty(), two_classes = model_->model->options.classes == 2;
  // An epoch's evaluation is behind its last step.
  const int64_t evaluated = state_.step - (state_.step % steps_per_epoch() == 0 ? 1 : 0);
  record_ = std::make_unique<Record>(options, *folder, two_classes, fresh ? -1 : evaluated, fresh ? -1 : state_.step);
}

std::string Trainer::plan() const {
  return str(options_.epochs, " epochs of ", steps_per_epoch(), " steps, ", state_.texts_per_step, " texts each, lr ",
             options_.lr, state_.step > 0 ? str(", from step ", state_.step) : "", ", and write ", options_.out);
}

int64_t Trainer::steps_per_epoch() const { return (loader_.steps() + options_.accumulate - 1) / options_.accumulate; }

/// Weights are in the model already: main() has read them from the same folder.
void Trainer::resume() {
  if (options_.resume.empty()) return;
  const std::filesystem::path folder = options_.resume;
  const TrainerState saved = read_trainer_state(folder / "trainer_state.json");
  WEFT_CHECK(saved.texts_per_step == state_.texts_per_step && saved.total_steps == state_.total_steps, "checkpoint ",
             folder.string(), " was made in a run of ", saved.total_steps, " steps of ", saved.texts_per_step,
             " texts, this run has ", state_.total_steps, " of ", state_.texts_per_step);
  state_ = saved;
  saved_ = saved.step;
  adam_->load_state_dict(parallel_->part_of(with_prefix(load_optimizer(folder, groups(*adam_), depth()))));
  if (averages_) averages_->load_state_dict(parallel_->part_of(with_prefix(load_averages(folder, saved.step))), {});
  scheduler_->set_step(load_scheduler(folder));
  WEFT_CHECK(scheduler_->steps() == state_.step && adam_->steps() == state_.step, "checkpoint ", folder.string(),
             ": trainer_state.json is of step ", state_.step, ", scheduler.pt of ", scheduler_->steps(),
             ", optimizer.pt of ", adam_->steps());
  if (!load_generator(folder, ranks_.rank(), ranks_.size(), generator(ranks_.device())))
    std::cout << "rank " << ranks_.rank() << ": " << folder.string()
              << " has no random state for it: dropout begins anew" << std::endl;
  // The mean over the ranks goes on where there are as many as before, else from the first one.
  double own = 0;
  if (saved.losses.size() == static_cast<size_t>(ranks_.size()))
    own = saved.losses[static_cast<size_t>(ranks_.rank())];
  else if (ranks_.is_first())
    own = std::accumulate(saved.losses.begin(), saved.losses.end(), 0.0) * ranks_.size() /
          static_cast<double>(saved.losses.size());
  losses_.fill_(own);
  if (ranks_.is_first()) std::cout << "resumed from " << folder.string() << " at step " << state_.step << std::endl;
}

support::RunEnd Trainer::run() {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  // Behind the last step of an epoch its evaluation is still to come.
  int64_t epoch = std::max<int64_t>(state_.step - 1, 0) / steps_per_epoch();
  int64_t first = state_.step - epoch * steps_per_epoch();
  Score score;
  bool stopped = must_stop();
  for (; !stopped && epoch < options_.epochs; ++epoch, first = 0) {
    stopped = !train_epoch(epoch, first);
    if (stopped) break;
    score = evaluate_all();
  }
  if (stopped) {
    if (saved_ != state_.step) save();
    if (ranks_.is_first())
      std::cout << "stopped by " << stop_.reason() << " after step " << state_.step
                << "; go on with: finetune --config " << record_->folder().file("config.toml").string()
                << " --max-steps 0 --resume-from-checkpoint last --out " << record_->folder().path().string()
                << std::endl;
  } else {
    finish(seconds(), score);
  }
  // A launcher may end the others when one rank ends with another code than 0: not before rank 0's files are whole.
  ranks_.wait_for_all("end of the run");
  return stopped ? stop_.end() : support::RunEnd::finished;
}

bool Trainer::must_stop() { return stop_.must_stop(state_.step) && state_.step < state_.total_steps; }

/// False: the run is to stop, before the epoch's evaluation.
bool Trainer::train_epoch(int64_t epoch, int64_t first_step) {
  const int64_t steps = steps_per_epoch(), end = (epoch + 1) * steps;
  model_->train();
  if (progress_) progress_->begin(str("epoch ", epoch + 1, '/', options_.epochs), steps, first_step);
  loader_.start(epoch, first_step * options_.accumulate);
  StepClock clock(ranks_.device());
  const int64_t begin = state_.step;
  bool stop = false;
  while (!stop && state_.step < end) {
    step();
    if (state_.step % options_.logging_steps == 0) log();
    sums_.count(0, 0);
    if (sums_.unread_steps() >= (ranks_.device().kind == DeviceKind::cuda ? kReadEvery : 1)) sums_.read();
    const bool wanted = stop_.wants_checkpoint();
    if (wanted || state_.step % options_.save_steps == 0 || state_.step == state_.total_steps) {
      clock.pause();
      save();
      clock.go_on();
    }
    stop = must_stop();
  }
  clock.pause();
  if (state_.step > begin)  // else the checkpoint was behind the epoch's last step
    texts_per_second_ = static_cast<double>((state_.step - begin) * state_.texts_per_step) / clock.seconds();
  if (progress_) progress_->end();
  return !stop;
}

/// On the next batches, each weighing by its share of their texts, so that gradients add up to those of one batch.
void Trainer::step() {
  adam_->zero_grad();
  const int64_t in_a_step = options_.batch_size * options_.accumulate;
  const int64_t first = state_.step % steps_per_epoch() * in_a_step;
  const int64_t count = std::min(in_a_step, loader_.texts() - first);
  for (int64_t done = 0; done < count;) {
    const auto batch = loader_.next();
    WEFT_CHECK(batch, "expected ", loader_.texts(), " texts in an epoch, got ", first + done);
    done += batch->count;
    const std::shared_ptr<void> own = done < count ? parallel_->no_sync() : nullptr;
    Tensor loss;
    {
      const Autocast low(precision_of(options_));
      loss = cross_entropy(parallel_->forward(batch->input), batch->labels);
    }
    const double share = static_cast<double>(batch->count) / static_cast<double>(count);
    if (share != 1) loss = mul(loss, share);
    loss.backward();
    const NoGrad no_grad;
    losses_.add_(loss.detach().to(DType::f64));
  }
  gradient_norm_ = parallel_->clip_grad_norm(options_.max_grad_norm);
  adam_->step();
  if (averages_) averages_->update();
  scheduler_->step();
  ++state_.step;
  state_.epoch = static_cast<double>(state_.step) / static_cast<double>(steps_per_epoch());
  if (progress_) progress_->step({.images = count * ranks_.size()});
}

void Trainer::log() {
  const double sum = ranks_.sum({losses_.item()}, "losses")[0] / ranks_.size();
  const double loss = sum / static_cast<double>(state_.step - state_.logged), norm = gradient_norm_.item();
  WEFT_CHECK(std::isfinite(loss), "the loss is not a number at step ", state_.step, ". Choose a smaller --lr");
  state_.run_loss += sum;
  state_.logged = state_.step;
  losses_.zero_();
  if (!record_) return;
  progress_->make_way();
  record_->trained(state_, {loss, norm, lr()});
}

/// The folder appears under its name when it is whole.
void Trainer::save() {
  saved_ = state_.step;
  const StateDict whole = parallel_->model_state(), moments = parallel_->optimizer_state(*adam_);
  StateDict averages;
  if (averages_) averages = parallel_->gathered(averages_->state_dict());
  std::vector<double> losses(static_cast<size_t>(ranks_.size()));
  losses[static_cast<size_t>(ranks_.rank())] = losses_.item();
  state_.losses = ranks_.sum(losses, "losses");
  const Generator own = generator(ranks_.device());
  const std::vector<std::string> all = ranks_.texts(str(own.seed, ' ', own.offset), "random states");
  if (!record_) return;
  std::vector<Generator> generators;
  for (const std::string& text : all) {
    std::istringstream in(text);
    in >> generators.emplace_back().seed >> generators.back().offset;
  }
  const std::string name = str("checkpoint-", state_.step);
  const std::filesystem::path made = record_->folder().file("." + name + ".tmp"), final = record_->folder().file(name);
  std::filesystem::remove_all(made);
  save_bert(made, without_prefix(whole), model_->model->options, pieces_);
  save_optimizer(made, without_prefix(moments), *adam_, groups(*adam_), {}, depth());
  if (averages_) save_averages(made, without_prefix(averages));
  save_scheduler(made, *adam_, state_.step);
  save_generators(made, generators);
  write_trainer_state(made / "trainer_state.json", state_, options_);
  std::filesystem::remove_all(final);
  std::filesystem::rename(made, final);
}

Score Trainer::evaluate_all() {
  const auto swapped = support::averaged(averages_.get());
  model_->eval();
  const Score score = evaluate(options_, ranks_, *parallel_, dev_, pieces_.padding_id(), progress_.get());
  if (record_) record_->evaluated(state_, score, lr(), texts_per_second_);
  return score;
}

void Trainer::finish(double seconds, const Score& score) {
  if (state_.logged < state_.step) state_.run_loss += ranks_.sum({losses_.item()}, "losses")[0] / ranks_.size();
  const double texts = static_cast<double>(train_.labels.size()) * static_cast<double>(options_.epochs);
  const size_t peak = kernels::CachingAllocator::of(ranks_.device()).stats().peak_live;
  if (record_)
    record_->finished(state_, score,
                      {.seconds = seconds,
                       .texts = texts,
                       .texts_per_second = texts_per_second_,
                       .peak_tensor_bytes = static_cast<int64_t>(peak)});
}

}  // namespace weft::finetune
