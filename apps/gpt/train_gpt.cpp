// SPDX-License-Identifier: Apache-2.0
// Trains a GPT; see docs/gpt.md.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>
#include <optional>

#include "apps/gpt/gpt_files.h"
#include "apps/gpt/options.h"
#include "apps/gpt/training_text.h"
#include "core/choose_device.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "dist/group/same_lines.h"
#include "dist/tensor/parallel_block.h"
#include "dist/tensor/parallel_embedding.h"
#include "optim/optimizers.h"
#include "optim/schedule.h"
#include "train/loader_task.h"
#include "train/memory.h"
#include "train/record/scalar_log.h"
#include "train/resume.h"
#include "train/training_main.h"

namespace weft::gpt {
namespace {

/// The model of `config`, whose sizes are set.
std::shared_ptr<nn::LanguageModel> make_model(Options& o, const data::BytePair& tokenizer, GptConfig& config) {
  manual_seed(static_cast<uint64_t>(o.seed));
  const bool random = o.weights == "random";
  config = random ? named_config(o.model) : read_gpt_config(model_folder(o.weights));
  const bool of_folder = !random || !config.decoder_text.empty();
  config.with_sizes([&](auto& sizes) {
    if (random && (!of_folder || !has_tokenizer(o))) {
      sizes.vocabulary = tokenizer.size();
      config.decoder_text.clear();
    }
    if (random && o.context > 0) {
      sizes.positions = o.context;
      config.decoder_text.clear();
    }
    sizes.dropout = o.dropout;
    sizes.recompute = o.recompute;
    if (o.context == 0) o.context = sizes.positions;
  });
  if (random) config.dropout = o.dropout;
  require_room(tokenizer, config);
  train::defer_weights(o);
  const nn::DeferredInit::Scope deferred(o.deferred.get());
  auto model = make_language_model(config);
  if (!random) load_gpt(*model, model_folder(o.weights), o.weights_key);
  if (o.lora > 0) {
    config.lora = {.rank = o.lora, .alpha = o.lora_alpha > 0 ? o.lora_alpha : 2 * static_cast<double>(o.lora)};
    nn::add_lora(*model, *config.lora);
  }
  return model;
}

void check_grid(const Options& o, const GptConfig& config, int64_t ranks) {
  const std::string all = str(ranks, ranks == 1 ? " rank" : " ranks");
  if (ranks % o.pipeline != 0) throw train::UsageError(str("--pipeline: ", o.pipeline, " stages do not divide ", all));
  if (ranks / o.pipeline % o.tensor != 0)
    throw train::UsageError(str("--tensor: ", o.tensor, " does not divide ",
                                o.pipeline == 1 ? all : str(ranks / o.pipeline, " ranks of each stage")));
  if (config.decoder && o.tensor > 1)
    throw train::UsageError("--tensor: expected a GPT-2, whose layers can be divided, got a decoder");
  const int64_t heads = config.sizes.heads;
  if (heads % o.tensor != 0) throw train::UsageError(str("--tensor: ", heads, " heads do not divide by ", o.tensor));
}

/// The model and the texts of a run.
struct Experiment {
  const Options& options;
  const train::RunFolder* folder;  ///< rank 0 has it; null on the others and in a dry run
  const dist::World& world;
  const dist::Grid& grid;
  const data::BytePair& tokenizer;
  const GptConfig& config;
  const std::shared_ptr<nn::LanguageModel>& model;
  const TrainingText& text;
};

std::unique_ptr<optim::AdamW> make_adam(const Options& o, train::Strategy& strategy) {
  return std::make_unique<optim::AdamW>(
      optim::without_decay_on_vectors(strategy.parameters()),
      optim::AdamWOptions{.lr = o.lr, .beta2 = o.beta2, .weight_decay = o.weight_decay});
}

optim::SchedulePtr make_schedule(const Options& o, int64_t steps) {
  const int64_t warmup = std::min(o.warmup_steps, steps - 1);
  return optim::after_warmup(warmup, 1.0 / static_cast<double>(warmup + 1),
                             std::make_shared<optim::CosineSchedule>(std::max<int64_t>(steps - warmup, 1), o.lr / 10));
}

train::EngineOptions engine_options(const Options& o, const TrainingText& text) {
  train::EngineOptions options = train::engine_options(o);
  if (text.is_packed()) {
    if (o.graph == "on")
      throw train::UsageError("--graph on: expected --rows stream or single, got packed rows, which the host reads");
    options.graph = "off";
  }
  options.micro_batches = o.micro_batches > 0 ? o.micro_batches : std::max<int64_t>(4 * o.pipeline / o.accumulate, 1);
  return options;
}

std::unique_ptr<train::Strategy> make_strategy(const Experiment& e) {
  const Options& o = e.options;
  const Device device = e.world.device();
  const bool in_grid = o.tensor * o.pipeline > 1;
  auto* const gpt = dynamic_cast<nn::Gpt*>(e.model.get());
  if (in_grid && gpt) {
    const nn::DeferredInit::Scope deferred(o.deferred.get());
    dist::divide_blocks(*gpt, e.grid.model(), o.sequence ? dist::Tokens::own : dist::Tokens::all);
    dist::divide_vocabulary(*gpt, e.grid.model());
  }
  if (!in_grid) train::place(o, *e.model, device);
  train::StrategyOptions how = train::strategy_options(o, device);
  if (!in_grid) return train::make_strategy(how, e.model, e.world);
  return train::make_grid_strategy(
      e.model, e.grid,
      {.chunks = static_cast<int>(o.chunks),
       .ddp = {.compress_bf16 = o.grad_compression == "bf16"},
       .fsdp = o.parallel == "fsdp" ? std::optional(train::fsdp_options(how, *e.model)) : std::nullopt,
       .device = device});
}

/// Sequences, and the token that follows each of their tokens: i64 [sequences, context]. Packed rows have their
/// documents' starts beside the tokens: i64 [sequences, 2, context]; -100 follows where nothing is trained.
struct Sequences {
  Tensor tokens, next;
  void fields(auto& v) { v("tokens", tokens), v("next", next); }
};

/// Trains a language model to say the next token. An epoch has as many sequences as the training text has tokens for;
/// their beginnings are drawn again for each epoch, the same for any number of ranks.
class Trainer final : public train::TypedTask<Sequences> {
 public:
  /// Errors: a text that is too short for one step.
  explicit Trainer(const Experiment& e)
      : TypedTask(e.text.batches(*e.grid.data(), e.world.device())),
        e_(e),
        options_(e.options),
        strategy_(make_strategy(e)),
        adam_(make_adam(options_, *strategy_)),
        engine_(*this, {e.world, *e.model, *strategy_, *adam_}, engine_options(options_, e.text)) {
    const int64_t steps = options_.epochs * engine_.steps_per_epoch();
    engine_.follow(make_schedule(options_, steps));
    if (options_.warmup_steps >= steps && options_.warmup_steps != Options().warmup_steps && e.world.is_first())
      std::cerr << str("warning: --warmup-steps ", options_.warmup_steps, " is not shorter than the run of ", steps,
                       " steps: it is cut to end with the last one\n")
                << std::flush;
    if (!options_.resume.empty()) resume();
    if (e.folder == nullptr) return;
    e.folder->write_config(options_.toml);
    log_.emplace(e.folder->path(), options_.resume.empty() ? -1 : engine_.position().step);
  }

  train::RunEnd run() { return engine_.run_in(e_.folder); }
  /// The line of --dry-run.
  std::string plan() const {
    return str(options_.epochs, " epochs of ", engine_.steps_per_epoch(), " steps, ", engine_.global_batch(),
               " sequences of ", options_.context, " tokens each, lr ", options_.lr,
               engine_.position().step > 0 ? str(", from step ", engine_.position().step) : "", ", and write ",
               options_.out);
  }

 private:
  /// Whole steps: all ranks have the same number of sequences, and one process with their batches together has the
  /// same ones.
  int64_t samples() const override {
    return e_.text.samples(batch_size() * options_.accumulate, e_.grid.data()->size());
  }

  /// Every trained token of packed or single rows has the same weight, in whichever row, batch or rank it is: a batch's
  /// sum is divided by how many its rows have on average over the data.
  train::Measured loss(const Sequences& batch) override {
    if (e_.text.is_rows())
      return {loss_of(batch, Reduction::sum) /
              (e_.text.trained_per_sequence() * static_cast<double>(batch.next.size(0)))};
    return {loss_of(batch, Reduction::mean)};
  }

  void log_steps(const train::StepSums::Totals& totals) override {
    const double gradient_norm = engine_.gradient_norm().item();
    if (!log_) return;
    log_->log(engine_.position().step, {{"train_loss", totals.loss / static_cast<double>(totals.samples)},
                                        {"lr", adam_->lr(0)},
                                        {"gradient_norm", gradient_norm}});
  }

  /// Each token of the validation text once, but for those after the last whole sequence; each trained token of rows.
  train::Validation validate(const train::Epoch&) override {
    e_.model->eval();
    const auto loader = e_.text.validation(*e_.grid.data(), e_.world.device());
    double sum = 0, count = 0;
    const auto each = [&](const data::Stacked& batch) {
      if (e_.text.is_rows()) {
        const Sequences rows = typed(batch.tensors);
        sum += loss_of(rows, Reduction::sum).item();
        count += weft::sum(ge(rows.next, 0).to(DType::f64)).item();
        return;
      }
      const double mean = loss(typed(batch.tensors)).loss.item();
      sum += mean * static_cast<double>(batch.count);
      count += static_cast<double>(batch.count);
    };
    train::Progress quiet({.quiet = true});
    train::evaluate_batches(e_.world, *strategy_, quiet, "validation", loader.get(), each, [&] {
      engine_.forward(Tensor::zeros({1, options_.context}, DType::i64, e_.world.device()));
    });
    const std::vector<double> sums = e_.world.sum({sum, count}, "validation");
    val_loss_ = sums[0] / sums[1];
    return {.text = str("val loss ", std::round(val_loss_ * 1e4) / 1e4)};
  }

  void epoch_done(const train::Epoch& epoch, const train::Validation&) override {
    const double tokens = static_cast<double>(epoch.samples) * e_.text.tokens_per_sequence();
    if (log_)
      log_->log(engine_.position().step,
                {{"epoch", static_cast<double>(epoch.number)},
                 {"epoch_loss", epoch.loss},
                 {"val_loss", val_loss_},
                 {"tokens_per_second", tokens / epoch.seconds},
                 {"peak_tensor_bytes", static_cast<double>(train::peak_tensor_bytes(e_.world.device()))}});
  }

  std::string save() override {
    Checkpoint notes;
    notes.texts["config"] = options_.toml;
    const Checkpoint saved = engine_.save(e_.folder, train::RunFolder::kLastCheckpoint, std::move(notes), /*keep=*/2);
    if (!saved.parts.empty()) save_model(saved.part("model"));
    return (std::filesystem::path(options_.out) / train::RunFolder::kLastCheckpoint).string();
  }

  void ended(train::RunEnd end) override {
    if (options_.fsdp_checkpoints == "sharded" && strategy_->has_pieces())  // checkpoints left the published form out
      save_model(strategy_->model_state());
    if (!log_) return;
    const bool finished = end == train::RunEnd::finished;
    log_->end(finished);
    e_.folder->write_summary({{"finished", finished}, {"steps", engine_.position().step}, {"val_loss", val_loss_}});
  }

  void resume() {
    const std::string path = train::checkpoint_to_resume(options_.resume, options_.out, e_.world);
    if (path.empty()) return;
    const Checkpoint saved = engine_.read(path);
    const auto changes =
        train::changed_settings(saved, options_, "tokenizer tensor sequence pipeline chunks micro-batches");
    bool others = false;
    for (const char* name : {"seed", "context", "rows", "loss-on"}) others = others || changes.contains(name);
    WEFT_CHECK(!others, "checkpoint ", path, " was made with other sequences: ", train::text_of(changes));
    engine_.note(train::note_of(changes));
    engine_.take(path, saved);
    engine_.note(str("resumed from ", path, " at step ", engine_.position().step));
  }

  /// The loss of the batch's trained tokens. Ranks that divide the layers divide the vocabulary.
  Tensor loss_of(const Sequences& batch, Reduction reduction) {
    const int64_t vocabulary = e_.config.with_sizes([](const auto& sizes) { return sizes.vocabulary; });
    return dist::parallel_cross_entropy(engine_.forward(batch.tokens), batch.next, vocabulary, e_.grid.model(),
                                        {.reduction = reduction});
  }
  void save_model(const StateDict& state) const {
    if (e_.folder) save_gpt(e_.folder->file("model"), state, e_.config, e_.tokenizer);
  }

  const Experiment& e_;
  const Options& options_;
  std::unique_ptr<train::Strategy> strategy_;
  std::unique_ptr<optim::AdamW> adam_;
  train::Engine engine_;
  std::optional<train::ScalarLog> log_;  // on rank 0; none in a dry run
  double val_loss_ = std::numeric_limits<double>::quiet_NaN();
};

int run(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return train::kExitOk;
  const dist::World ranks = train::join_ranks(options);
  const TextFiles files(options);
  dist::check_same_lines(*ranks.group(), files.checksums(), "data: the text is", "All ranks must read the same one");
  const data::BytePair tokenizer = files.tokenizer(options);
  GptConfig config;
  const auto model = make_model(options, tokenizer, config);
  const TrainingText text(options, files, tokenizer, config);
  check_grid(options, config, ranks.size());
  const int64_t row = options.tensor * options.pipeline;
  const dist::Grid grid =
      row > 1 ? dist::Grid(ranks.group(), static_cast<int>(options.tensor), static_cast<int>(options.pipeline))
              : dist::Grid(ranks.group(), dist::make_process_group_alone(), ranks.group());
  const auto folder =
      options.dry_run ? nullptr : train::open_run_folder(options.out, ranks, train::new_run(options, {"model"}));
  if (ranks.is_first()) {
    if (ranks.size() > 1) std::cout << "ranks   " << ranks.describe() << '\n';
    const std::string sizes = config.with_sizes(
        [](const auto& o) { return str(o.depth, " layers, ", o.width, " wide, ", o.heads, " heads, "); });
    std::cout << "device  " << weft::describe(ranks.device()) << '\n'
              << "data    " << options.data << ": " << text.describe() << ", of " << tokenizer.size() << '\n'
              << "model   " << sizes << nn::parameter_count(*model) << " parameters, weights " << options.weights
              << ", " << options.precision
              << (config.dropout == options.dropout
                      ? ""
                      : str(", dropout ", options.dropout, " (the weights' configuration: ", config.dropout, ')'))
              << '\n'
              << (row > 1 ? str("grid    ", ranks.size() / row, " data x ", options.tensor, " model ranks x ",
                                options.pipeline, " stages\n")
                          : "")
              << "run     " << options.out << std::endl;
  }
  const Experiment experiment{options, folder.get(), ranks, grid, tokenizer, config, model, text};
  Trainer trainer(experiment);
  return train::run_or_plan(options, ranks, trainer);
}

}  // namespace
}  // namespace weft::gpt

int main(int argc, char** argv) {
  return weft::train::training_main("train_gpt", [&] { return weft::gpt::run(argc, argv); });
}
