// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/trainer.h"

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/finetune/bert_files.h"
#include "apps/finetune/evaluation.h"
#include "apps/finetune/optimizer_files.h"
#include "apps/finetune/trainer_state.h"
#include "apps/support/python_text.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "io/atomic_file.h"
#include "io/file_reader.h"
#include "optim/layer_decay.h"
#include "optim/optimizers.h"
#include "optim/schedule.h"
#include "train/loader_task.h"
#include "train/memory.h"
#include "train/record/metrics.h"
#include "train/record/scalar_log.h"
#include "train/record/stopwatch.h"
#include "train/record/tensorboard.h"
#include "train/resume.h"
#include "train/shell_word.h"

namespace weft::finetune {
namespace {

using Json = nlohmann::ordered_json;
using support::python_number;

double rounded(double value, double digits) { return std::round(value * digits) / digits; }

/// `{'loss': 0.5, 'epoch': 1.0}`: a line as Python prints a dict.
void print_dict(const train::NamedNumbers& values) {
  std::string line;
  for (const auto& [name, value] : values) line += str(line.empty() ? "{'" : ", '", name, "': ", python_number(value));
  std::cout << line << '}' << std::endl;
}

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

train::StrategyOptions strategy_options(const Options& o, Classifier& model, Device device) {
  train::StrategyOptions options = train::strategy_options(o, device);
  if (o.layer_decay < 1)
    options.order = optim::in_order(optim::by_layer(model.parameters(), {.factor = o.layer_decay}));
  return options;
}

std::unique_ptr<optim::AdamW> make_adam(const Options& o, train::Strategy& strategy) {
  const std::vector<NamedTensor> parameters = strategy.parameters();
  const optim::LayerDecayOptions layers{.lr = o.lr, .factor = o.layer_decay, .weight_decay = o.weight_decay};
  return std::make_unique<optim::AdamW>(
      o.layer_decay < 1 ? optim::by_layer(parameters, layers) : optim::without_decay_on_vectors(parameters),
      optim::AdamWOptions{.lr = o.lr, .weight_decay = o.weight_decay});
}

optim::SchedulePtr make_schedule(double warmup_ratio, int64_t steps) {
  const auto warmup = static_cast<int64_t>(std::ceil(warmup_ratio * static_cast<double>(steps)));
  return optim::after_warmup(warmup, 0,
                             std::make_shared<optim::LinearSchedule>(std::max<int64_t>(steps - warmup, 1),
                                                                     optim::LinearScheduleOptions{1, 0}));
}

train::EngineOptions engine_options(const Options& o) {
  train::EngineOptions options = train::engine_options(o);
  options.sum = train::LossSum::per_step;
  options.graphs = kMostLengths;
  options.saves_epochs = false;
  options.line_before_validation = options.validates_after_saving = true;
  return options;
}

int64_t padded_to(const Experiment& e) {
  if (e.options.pad_to_multiple_of > 0) return e.options.pad_to_multiple_of;
  return e.world.device().kind == DeviceKind::cuda ? padding_step(e.train) : 1;
}

/// Trains a classifier of texts; prints lines as Hugging Face's Trainer does, which go into the state's history, too.
class Trainer final : public train::TypedTask<TextBatch> {
 public:
  explicit Trainer(const Experiment& e)
      : TypedTask(std::make_shared<TextLoader>(
            e.train,
            data::Sampler(static_cast<int64_t>(e.train.labels.size()), train::training_order(e.options, e.world)),
            e.options.batch_size, e.tokenizer.encoder->padding_id(), e.world.device(), padded_to(e))),
        e_(e),
        options_(e.options),
        folder_(e.folder),
        world_(e.world),
        strategy_(train::make_strategy(strategy_options(options_, *e.model, world_.device()), e.model, world_)),
        adam_(make_adam(options_, *strategy_)),
        averages_(train::make_averages(options_.averages, *adam_, *e.model)),
        engine_(*this, {world_, *e.model, *strategy_, *adam_, averages_.get()}, engine_options(options_)),
        state_{.total_steps = options_.epochs * engine_.steps_per_epoch(), .texts_per_step = engine_.global_batch()},
        scheduler_(*adam_, make_schedule(options_.warmup_ratio, state_.total_steps)) {
    if (!options_.resume.empty()) resume();
    if (folder_ == nullptr) return;
    const bool fresh = !options_.may_resume;
    // The validation of an epoch follows its last step.
    const int64_t validated = state_.step - (engine_.position().step_in_epoch == engine_.steps_per_epoch() ? 1 : 0);
    metrics_.emplace(folder_->metrics(), fresh ? -1 : validated);
    board_.emplace(folder_->path(), fresh ? -1 : state_.step);
    folder_->write_config(options_.toml);
    const train::HyperParameters values = hyper_parameters(options_);
    write_atomically(folder_->file("config.yaml"), train::wandb_config(values), "config");
    board_->hyper_parameters(values);
  }

  /// All epochs, or what the checkpoint of --resume-from-checkpoint has left of them. All ranks call it.
  train::RunEnd run() {
    watch_ = {};
    if (folder_) folder_->remove_summary();
    return engine_.run();
  }

  /// The plan of run(), for --dry-run.
  std::string plan() const {
    return str(options_.epochs, " epochs of ", engine_.steps_per_epoch(), " steps, ", state_.texts_per_step,
               " texts each, lr ", options_.lr, state_.step > 0 ? str(", from step ", state_.step) : "", ", and write ",
               options_.out);
  }

 private:
  train::Measured loss(const TextBatch& batch) override {
    const Tensor logits = engine_.forward(batch.input);
    if (!e_.train.regression) return {cross_entropy(logits, batch.labels)};
    return {mse_loss(logits.to(DType::f32).select(1, 0).contiguous(), batch.labels)};
  }

  void after_step() override {
    lr_of_step_ = lr();
    scheduler_.step();
    state_.step = engine_.position().step;
    state_.epoch = static_cast<double>(state_.step) / static_cast<double>(engine_.steps_per_epoch());
  }

  void log_steps(const train::StepSums::Totals& totals) override {
    const double sum = totals.loss / world_.size();
    state_.run_loss += sum;
    state_.logged = state_.step;
    if (!folder_) return;
    engine_.progress().make_way();
    print_training(sum / static_cast<double>(totals.steps), engine_.gradient_norm().item());
  }

  train::Validation validate(const train::Epoch& epoch) override {
    e_.model->eval();
    score_ = evaluate(engine_, options_, e_.dev, e_.tokenizer.encoder->padding_id());
    if (epoch.steps > 0) texts_per_second_ = static_cast<double>(epoch.samples) / epoch.seconds;
    if (folder_) print_evaluation();
    return {};
  }

  /// The folder appears under its name when it is whole.
  std::string save() override {
    if (saved_ == state_.step) return "";
    if (folder_) folder_->confirm();
    saved_ = state_.step;
    state_.losses.assign(static_cast<size_t>(world_.size()), 0);
    state_.losses[static_cast<size_t>(world_.rank())] = engine_.since_log().own_loss;
    state_.losses = world_.sum(state_.losses, "losses");
    const std::vector<RandomGenerator> generators = generators_of_ranks(world_);
    const std::string name = str("checkpoint-", state_.step);
    const auto save_rest = [&](const std::filesystem::path& made) {
      save_scheduler(made, *adam_, state_.step);
      save_generators(made, generators);
      write_trainer_state(made / "trainer_state.json", state_, options_);
    };
    if (saves_shards()) {
      engine_.save_sharded(folder_, name, {}, /*keep=*/1, [&](const std::filesystem::path& made) {
        save_configuration(made, e_.model->options, e_.configuration, e_.tokenizer);
        save_rest(made);
      });
      return (std::filesystem::path(options_.out) / name).string();
    }
    const StateDict whole = strategy_->model_state(), moments = strategy_->optimizer_state(*adam_);
    const StateDict averages = averages_ ? strategy_->gathered(averages_->state_dict()) : StateDict();
    if (!folder_) return "";
    const std::filesystem::path made = folder_->file("." + name + ".tmp"), final = folder_->file(name);
    std::filesystem::remove_all(made);
    save_bert(made, whole, e_.model->options, e_.configuration, e_.tokenizer);
    save_optimizer(made, moments, *adam_, e_.model->options);
    if (averages_) save_averages(made, averages, e_.model->options.kind);
    save_rest(made);
    std::filesystem::remove_all(final);
    std::filesystem::rename(made, final);
    return final.string();
  }

  void stopped(train::StopRule& rule) override {
    if (!folder_) return;
    std::cout << "stopped by " << rule.reason() << " after step " << state_.step
              << "; continue with: finetune --config " << train::shell_word(folder_->file("config.toml").string())
              << " --max-steps 0 --resume-from-checkpoint last --out " << train::shell_word(folder_->path().string())
              << std::endl;
  }

  void ended(train::RunEnd end) override {
    if (saves_shards()) {  // checkpoints left the published form out
      const StateDict whole = strategy_->model_state();
      if (folder_) save_bert(folder_->file("model"), whole, e_.model->options, e_.configuration, e_.tokenizer);
    }
    if (!folder_ || end != train::RunEnd::finished) return;
    state_.run_loss += engine_.since_log().loss / world_.size();
    print_end();
  }

  bool saves_shards() const { return options_.fsdp_checkpoints == "sharded" && strategy_->has_pieces(); }

  /// Weights are in the model already, but for a sharded checkpoint's: main() has read them from the same folder.
  void resume() {
    const std::filesystem::path folder = options_.resume;
    const TrainerState saved = read_trainer_state(folder / "trainer_state.json");
    const bool own = saved.texts_per_step > 0;
    WEFT_CHECK(own || saved.total_steps == state_.total_steps, "checkpoint ", folder.string(), " was made in a run of ",
               saved.total_steps, " steps, this run has ", state_.total_steps);
    WEFT_CHECK(!own || (saved.texts_per_step == state_.texts_per_step && saved.total_steps == state_.total_steps),
               "checkpoint ", folder.string(), " was made in a run of ", saved.total_steps, " steps of ",
               saved.texts_per_step, " texts, this run has ", state_.total_steps, " of ", state_.texts_per_step);
    check_settings(folder);
    const int64_t texts_per_step = state_.texts_per_step;
    state_ = saved;
    state_.texts_per_step = texts_per_step;
    saved_ = saved.step;
    if (is_sharded(folder)) {
      engine_.take_parts(folder.string());
    } else {
      load_optimizer(folder, *strategy_, *adam_, e_.model->options);
      if (averages_) load_averages(folder, saved.step, e_.model->options.kind, *strategy_, *averages_);
    }
    scheduler_.set_step(load_scheduler(folder));
    WEFT_CHECK(scheduler_.steps() == saved.step && adam_->steps() == saved.step, "checkpoint ", folder.string(),
               ": trainer_state.json is of step ", saved.step, ", scheduler.pt of ", scheduler_.steps(),
               ", optimizer.pt of ", adam_->steps());
    if (!own || !load_generator(folder, world_.rank(), world_.size(), generator(world_.device())))
      std::cout << "rank " << world_.rank() << ": " << folder.string()
                << " has no random state for it: dropout starts from its seed" << std::endl;
    // After the last step of an epoch its validation is still to come.
    const int64_t steps = engine_.steps_per_epoch(), epoch = std::max<int64_t>(saved.step - 1, 0) / steps;
    engine_.position() = {.epoch = epoch, .step_in_epoch = saved.step - epoch * steps, .step = saved.step};
    // The mean over the ranks goes on where there are as many as before, else from the first one.
    train::StepSums::Totals& sums = engine_.since_log();
    sums.steps = saved.step - saved.logged;
    if (saved.losses.size() == static_cast<size_t>(world_.size()))
      sums.own_loss = saved.losses[static_cast<size_t>(world_.rank())];
    else if (world_.is_first())
      sums.own_loss = std::accumulate(saved.losses.begin(), saved.losses.end(), 0.0) * world_.size() /
                      static_cast<double>(saved.losses.size());
    sums.loss = world_.sum({sums.own_loss}, "losses")[0];
    if (world_.is_first()) std::cout << "resumed from " << folder.string() << " at step " << saved.step << std::endl;
  }

  /// The run folder around the checkpoint names its settings. Rank 0 looks, before it writes there.
  void check_settings(const std::filesystem::path& checkpoint) const {
    const std::filesystem::path config = checkpoint.parent_path() / "config.toml";
    train::on_first(world_, "settings", [&] {
      std::error_code ignored;
      if (!std::filesystem::is_regular_file(config, ignored)) return "";
      const auto changes = train::changed_settings(read_text(config, "config"), options_,
                                                   "resume-from-checkpoint save-steps logging-steps model vocab "
                                                   "config-file machine-rank main-process-ip main-process-port "
                                                   "num-processes train-file validation-file");
      WEFT_CHECK(!changes.contains("seed"), "checkpoint ", checkpoint.string(), " was made with another --seed (",
                 changes.at("seed"), "), on which the order of texts depends");
      if (!changes.empty()) std::cout << train::note_of(changes) << std::endl;
      return "";
    });
  }

  void print_training(double loss, double gradient_norm) {
    print_dict({{"loss", rounded(loss, 1e4)},
                {"grad_norm", gradient_norm},
                {"learning_rate", lr_of_step_},
                {"epoch", rounded(state_.epoch, 1e2)}});
    note(state_, {{"epoch", state_.epoch},
                  {"grad_norm", gradient_norm},
                  {"learning_rate", lr_of_step_},
                  {"loss", rounded(loss, 1e4)}});
    board_->scalar("train/loss", loss, state_.step);
    board_->scalar("train/grad_norm", gradient_norm, state_.step);
    board_->scalar("train/learning_rate", lr_of_step_, state_.step);
  }

  void print_evaluation() {
    const int64_t peak = train::peak_tensor_bytes(world_.device());
    train::NamedNumbers shown{{"eval_loss", rounded(score_.loss, 1e4)}};
    for (const auto& [name, value] : scores()) shown.emplace_back("eval_" + name, rounded(value, 1e4));
    shown.emplace_back("epoch", rounded(state_.epoch, 1e2));
    print_dict(shown);
    Json line{{"epoch", state_.epoch}, {"eval_loss", score_.loss}};
    for (const auto& [name, value] : scores()) line["eval_" + name] = value;
    note(state_, line);
    metrics_->append({.epoch = std::llround(state_.epoch),
                      .step = state_.step,
                      .split = train::Split::val,
                      .loss = score_.loss,
                      .accuracy = score_.accuracy,
                      .lr = lr(),
                      .images_per_second = texts_per_second_,
                      .peak_tensor_bytes = peak});
    board_->scalar("texts_per_second", texts_per_second_, state_.step);
    board_->scalar("peak_tensor_bytes", static_cast<double>(peak), state_.step);
    board_->scalar("eval/loss", score_.loss, state_.step);
    for (const auto& [name, value] : scores()) board_->scalar("eval/" + name, value, state_.step);
  }

  void print_end() {
    const double seconds = watch_.seconds();
    const double texts = static_cast<double>(e_.train.labels.size()) * static_cast<double>(options_.epochs);
    const auto steps = static_cast<double>(state_.step);
    const double loss = state_.run_loss / steps;
    print_dict({{"train_runtime", rounded(seconds, 1e4)},
                {"train_samples_per_second", rounded(texts / seconds, 1e3)},
                {"train_steps_per_second", rounded(steps / seconds, 1e3)},
                {"train_loss", loss},
                {"epoch", rounded(state_.epoch, 1e2)}});
    train::Summary summary{{"steps", state_.step}, {"train_loss", loss}, {"eval_loss", score_.loss}};
    for (const auto& [name, value] : scores()) summary.emplace_back("eval_" + name, value);
    summary.emplace_back("seconds", seconds);
    summary.emplace_back("texts_per_second", texts_per_second_);
    summary.emplace_back("peak_tensor_bytes", train::peak_tensor_bytes(world_.device()));
    folder_->write_summary(summary);
  }

  /// The names and values of what is known of the last score but the loss.
  train::NamedNumbers scores() const {
    const int64_t outputs = e_.model->options.classes;
    if (outputs == 1)
      return {{"pearson", score_.pearson},
              {"spearmanr", score_.spearman},
              {"combined_score", (score_.pearson + score_.spearman) / 2}};
    if (outputs == 2) return {{"accuracy", score_.accuracy}, {"f1", score_.f1}};
    return {{"accuracy", score_.accuracy}};
  }

  double lr() const { return adam_->lr(adam_->groups() - 1); }  // the classifier's

  const Experiment& e_;
  const Options& options_;
  const train::RunFolder* folder_;
  const dist::World& world_;
  std::unique_ptr<train::Strategy> strategy_;
  std::unique_ptr<optim::AdamW> adam_;
  std::unique_ptr<optim::Ema> averages_;
  train::Engine engine_;
  TrainerState state_;
  optim::Scheduler scheduler_;
  std::optional<train::Metrics> metrics_;  // as the next: where there is a folder
  std::optional<train::TensorBoard> board_;
  Score score_;
  train::Stopwatch watch_;       // since run() began
  int64_t saved_ = 0;            // step of the last checkpoint
  double lr_of_step_ = 0;        // rate of the last step, which the Trainer prints
  double texts_per_second_ = 0;  // on all ranks, over the last epoch's steps alone
};

}  // namespace

Tensor Classifier::forward(const Tensor& x) const {
  const Tensor lengths = sum(x.select(1, 2), {1});
  return Bert::forward(nn::TokenBatch{x.select(1, 0).contiguous(), x.select(1, 1).contiguous(), lengths});
}

int train_classifier(const Experiment& e) {
  Trainer trainer(e);
  return train::run_or_plan(e.options, e.world, trainer);
}

}  // namespace weft::finetune
