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
#include "core/choose_device.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "data/text/corpus.h"
#include "data/text/documents.h"
#include "data/text/token_windows.h"
#include "dist/group/same_lines.h"
#include "dist/tensor/parallel_block.h"
#include "dist/tensor/parallel_embedding.h"
#include "io/crc32c.h"
#include "io/file_reader.h"
#include "optim/optimizers.h"
#include "optim/schedule.h"
#include "train/loader_task.h"
#include "train/memory.h"
#include "train/record/scalar_log.h"
#include "train/resume.h"
#include "train/training_main.h"

namespace weft::gpt {
namespace {

namespace fs = std::filesystem;
using Tokens = data::TokenNumbers;

/// The bytes of --data: of a file, or of train.bin and val.bin in a folder.
struct Data {
  fs::path path;
  bool tokens = false;                            ///< their numbers, and no text
  std::shared_ptr<const std::string> train, val;  ///< val: null for one file
  std::optional<std::vector<std::string>> texts;  ///< the texts of JSON lines that make one long text
  bool examples = false;                          ///< JSON lines, each for itself

  /// `rows`: the flag.
  Data(const fs::path& given, const std::string& rows) : path(given) {
    const bool pair = fs::is_directory(given);
    WEFT_CHECK(!pair || (fs::exists(given / "train.bin") && fs::exists(given / "val.bin")), "--data ", given.string(),
               ": expected a text, a file of tokens, or a folder of train.bin and val.bin, got another folder. `cat ",
               given.string(), "/*.txt > TEXT` makes one text");
    const auto read = [](const fs::path& file) {
      return std::make_shared<const std::string>(read_text(file, "--data"));
    };
    train = read(pair ? given / "train.bin" : given);
    if (pair) val = read(given / "val.bin");
    tokens = pair || data::holds_tokens(given, *train);
    const data::JsonLines lines = tokens ? data::JsonLines::none : data::kind_of_json_lines(*train);
    const bool alone = rows == "packed" || rows == "single";
    examples = lines == data::JsonLines::examples || (lines == data::JsonLines::texts && alone);
    if (alone && !examples)
      throw train::UsageError(str("--rows ", rows, ": expected JSON lines as --data, got another file"));
    if (examples && rows == "stream")
      throw train::UsageError("--rows stream: expected a text or JSON lines with a text as --data, got others");
    if (!tokens && !examples) texts = data::json_texts(*train, name(""));
  }
  /// The examples; `chat`: the tokenizer's template, or null.
  std::vector<data::TextExample> read_examples(const data::ChatTemplate* chat,
                                               const std::vector<data::AddedToken>& ends) const {
    return *data::text_examples(*train, name(""), chat, ends);
  }
  /// All of the text; JSON lines have a line break between their texts.
  std::string text() const {
    if (examples) {
      std::string all;
      for (const data::TextExample& example : read_examples(nullptr, {}))
        for (const data::TextPart& part : example.parts) all += part.text;
      return all;
    }
    if (!texts) return std::string(data::text_of(*train, name("")));
    std::string all;
    for (const std::string& one : *texts) all += one + "\n";
    return all;
  }
  std::string name(const char* part) const {
    return "--data " + (fs::is_directory(path) ? path / part : path).string();
  }
};

std::string sum_of(const std::string& bytes) {
  return str(bytes.size(), " bytes with the checksum ", crc32c(bytes.data(), bytes.size()), ' ');
}

/// The folder whose files --tokenizer auto means: of the weights, or of the model; "": none has a tokenizer.
fs::path tokenizer_folder(const Options& o) {
  if (o.weights != "random") return model_folder(o.weights);
  const fs::path folder = model_folder(o.model);
  return fs::exists(folder / "tokenizer.json") || fs::exists(folder / "vocab.json") ? folder : fs::path();
}

/// The folder of the tokenizer that a run reads; "": the bytes of the text.
fs::path read_folder(const Options& o) {
  if (o.tokenizer == "bytes") return {};
  return o.tokenizer == "auto" ? tokenizer_folder(o) : model_folder(o.tokenizer);
}

data::BytePair make_tokenizer(const Options& o, const Data& data) {
  const bool of_weights = o.tokenizer == "auto" && !tokenizer_folder(o).empty();
  if (!of_weights && (o.tokenizer == "auto" || o.tokenizer == "bytes")) {
    WEFT_CHECK(!data.tokens, data.name("train.bin"),
               ": expected a text, got the numbers of tokens. --tokenizer names the folder of the tokenizer that made "
               "them (vocab.json, merges.txt)");
    return data::BytePair::of_bytes(data.text());
  }
  return read_tokenizer(o.tokenizer, of_weights ? tokenizer_folder(o) : fs::path());
}

/// The tokens of a text; of JSON lines, each text's and the token that ends it.
std::vector<int64_t> encoded(const Data& data, const data::BytePair& tokenizer) {
  if (!data.texts || tokenizer.end_of_text() < 0) return tokenizer.encode(data.text());
  std::vector<int64_t> all;
  for (const std::string& one : *data.texts) {
    const std::vector<int64_t> tokens = tokenizer.encode(one);
    all.insert(all.end(), tokens.begin(), tokens.end());
    all.push_back(tokenizer.end_of_text());
  }
  return all;
}

/// The last --val-share of one file, or both files of a folder.
std::pair<Tokens, Tokens> make_tokens(const Options& o, const Data& data, const data::BytePair& tokenizer) {
  const Tokens all = data.tokens ? data::tokens_of(data.train, tokenizer.size(), data.name("train.bin"))
                                 : Tokens(std::make_shared<const std::vector<int64_t>>(encoded(data, tokenizer)));
  if (data.val) return {all, data::tokens_of(data.val, tokenizer.size(), data.name("val.bin"))};
  const auto kept = static_cast<int64_t>(static_cast<double>(all.size()) * (1 - o.val_share));
  return {all.part(0, kept), all.part(kept, all.size() - kept)};
}

/// Rows of documents for training and, of the last --val-share of them, for validation.
struct Rows {
  std::shared_ptr<const data::DocumentRows> train, val;

  Rows(const Options& o, const Data& data, const data::BytePair& tokenizer, const GptConfig& config) {
    const fs::path folder = read_folder(o);
    const auto chat = folder.empty() ? std::nullopt : data::ChatTemplate::from_folder(folder);
    const int64_t end = config.end && !config.end->empty() ? config.end->front() : tokenizer.end_of_text();
    std::vector<data::TokenDocument> documents, last;
    for (const data::TextExample& example : data.read_examples(chat ? &*chat : nullptr, tokenizer.added_tokens()))
      documents.push_back(data::encode_example(example, tokenizer, end, o.loss_on == "all"));
    const auto kept =
        std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(documents.size()) * (1 - o.val_share)), 1,
                            static_cast<int64_t>(documents.size()));
    last.assign(documents.begin() + kept, documents.end());
    documents.resize(static_cast<size_t>(kept));
    WEFT_CHECK(!last.empty(), data.name(""), ": expected at least 2 documents, one of them for validation, got 1");
    const bool packed = o.rows == "packed" || (o.rows == "auto" && o.tensor * o.pipeline == 1);
    using Fill = data::DocumentRows::Fill;
    const auto make = [&](std::vector<data::TokenDocument> some, const char* what) {
      try {
        return std::make_shared<const data::DocumentRows>(std::move(some), o.context,
                                                          packed ? Fill::packed : Fill::single);
      } catch (const Error& error) {
        fail(data.name(""), ": ", what, ": ", error.what());
      }
    };
    train = make(std::move(documents), "training");
    val = make(std::move(last), "validation");
  }
};

/// The model of `config`, whose sizes are set.
std::shared_ptr<nn::LanguageModel> make_model(Options& o, const data::BytePair& tokenizer, GptConfig& config) {
  manual_seed(static_cast<uint64_t>(o.seed));
  const bool random = o.weights == "random";
  config = random ? named_config(o.model) : read_gpt_config(model_folder(o.weights));
  const bool of_folder = !random || !config.decoder_text.empty();
  config.with_sizes([&](auto& sizes) {
    if (random && (!of_folder || tokenizer_folder(o).empty())) {
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
  if (o.sequence && o.context % o.tensor != 0)
    throw train::UsageError(str("--sequence: ", o.context, " tokens of --context do not divide by ", o.tensor));
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
  const Tokens &train, &val;
  const std::optional<Rows>& rows;  ///< in place of `train` and `val`
};

void require_windows(const char* part, const Tokens& tokens, int64_t context) {
  WEFT_CHECK(tokens.size() > context, "--context: expected fewer than the ", tokens.size(), " tokens of the ", part,
             " text, got ", context);
}

std::unique_ptr<data::Loader<data::Stacked>> make_validation(const Experiment& e) {
  const data::SamplerOptions order{
      .shuffle = false, .rank = e.grid.data_rank(), .world = e.grid.data()->size(), .tail = data::Tail::uneven};
  const auto make = [&](const auto& set) {
    return std::make_unique<data::Loader<data::Stacked>>(
        set, data::Sampler(set->size(), order),
        data::LoaderOptions{.batch_size = e.options.batch_size, .workers = 0, .device = e.world.device()});
  };
  if (e.rows) return make(e.rows->val);
  return make(std::make_shared<const data::TokenWindows>(e.val, e.options.context, e.options.context));
}

std::shared_ptr<data::BatchQueue> make_loader(const Experiment& e) {
  const Options& o = e.options;
  const int64_t step = o.batch_size * o.accumulate * e.grid.data()->size();
  const data::SamplerOptions order{.seed = static_cast<uint64_t>(o.seed),
                                   .rank = e.grid.data_rank(),
                                   .world = e.grid.data()->size(),
                                   .tail = data::Tail::drop};
  const auto make = [&](const auto& set) {
    return std::make_shared<data::Loader<data::Stacked>>(
        set, data::Sampler(set->size(), order),
        data::LoaderOptions{.batch_size = o.batch_size, .workers = 0, .drop_last = true, .device = e.world.device()});
  };
  if (e.rows) {
    WEFT_CHECK(e.rows->train->size() >= step, "--data: a step of ", step, " rows of ", o.context,
               " tokens needs more than the ", e.rows->train->size(), " rows of the training documents");
    return make(e.rows->train);
  }
  require_windows("training", e.train, o.context);
  require_windows("validation", e.val, o.context);
  const auto windows = std::make_shared<const data::TokenWindows>(e.train, o.context, 1);
  WEFT_CHECK(windows->size() >= step, "--data: a step of ", step, " sequences of ", o.context,
             " tokens needs more than the ", e.train.size(), " tokens of the training text");
  return make(windows);
}

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

train::EngineOptions engine_options(const Options& o) {
  train::EngineOptions options = train::engine_options(o);
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
  if (o.min_num_params == 0) how.kinds = {gpt ? gpt->h.front()->kind() : "DecoderBlock"};
  how.sharded_accumulation = o.fsdp_accumulate == "sharded";
  if (!in_grid) return train::make_strategy(how, e.model, e.world);
  return train::make_grid_strategy(
      e.model, e.grid,
      {.chunks = static_cast<int>(o.chunks),
       .ddp = {.compress_bf16 = o.grad_compression == "bf16"},
       .fsdp = o.parallel == "fsdp" ? std::optional(train::fsdp_options(how)) : std::nullopt,
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
  explicit Trainer(const Experiment& experiment);

  train::RunEnd run() { return engine_.run_in(e_.folder); }
  /// The line of --dry-run.
  std::string plan() const;

 private:
  int64_t samples() const override;
  train::Measured loss(const Sequences& batch) override;
  void log_steps(const train::StepSums::Totals& totals) override;
  train::Validation validate(const train::Epoch& epoch) override;
  void epoch_done(const train::Epoch& epoch, const train::Validation& validation) override;
  std::string save() override;
  void ended(train::RunEnd end) override;
  void resume();
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

Trainer::Trainer(const Experiment& e)
    : TypedTask(make_loader(e)),
      e_(e),
      options_(e.options),
      strategy_(make_strategy(e)),
      adam_(make_adam(options_, *strategy_)),
      engine_(*this, {e.world, *e.model, *strategy_, *adam_}, engine_options(options_)) {
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

/// Whole steps: all ranks have the same number of sequences, and one process with their batches together has the same
/// ones.
int64_t Trainer::samples() const {
  const int64_t step = batch_size() * options_.accumulate, tokens = e_.train.size();
  if (e_.rows) return e_.rows->train->size() / (step * e_.grid.data()->size()) * step;
  const int64_t wanted =
      std::min(tokens / options_.context, tokens - options_.context) / (step * e_.grid.data()->size());
  return std::max<int64_t>(wanted, 1) * step;
}

std::string Trainer::plan() const {
  return str(options_.epochs, " epochs of ", engine_.steps_per_epoch(), " steps, ", engine_.global_batch(),
             " sequences of ", options_.context, " tokens each, lr ", options_.lr,
             engine_.position().step > 0 ? str(", from step ", engine_.position().step) : "", ", and write ",
             options_.out);
}

void Trainer::resume() {
  const std::string path = train::checkpoint_to_resume(options_.resume, options_.out, e_.world);
  if (path.empty()) return;
  const Checkpoint saved = engine_.read(path);
  const auto changes = train::changed_settings(
      saved, options_, "tokenizer tensor sequence pipeline chunks micro-batches fsdp-accumulate recompute");
  bool others = false;
  for (const char* name : {"seed", "context", "rows", "loss-on"}) others = others || changes.contains(name);
  WEFT_CHECK(!others, "checkpoint ", path,
             " was made with other sequences: ", train::text_of(changes));
  engine_.note(train::note_of(changes));
  engine_.take(path, saved);
  engine_.note(str("resumed from ", path, " at step ", engine_.position().step));
}

/// Every trained token of packed or single rows has the same weight, in whichever row, batch or rank it is: a batch's
/// sum is divided by how many its rows have on average over the data.
train::Measured Trainer::loss(const Sequences& batch) {
  if (e_.rows) {
    const data::DocumentRows& rows = *e_.rows->train;
    const double trained = static_cast<double>(rows.trained()) / static_cast<double>(rows.size());
    return {loss_of(batch, Reduction::sum) / (trained * static_cast<double>(batch.next.size(0)))};
  }
  return {loss_of(batch, Reduction::mean)};
}

void Trainer::log_steps(const train::StepSums::Totals& totals) {
  const double gradient_norm = engine_.gradient_norm().item();
  if (!log_) return;
  log_->log(engine_.position().step, {{"train_loss", totals.loss / static_cast<double>(totals.samples)},
                                      {"lr", adam_->lr(0)},
                                      {"gradient_norm", gradient_norm}});
}

/// Each token of the validation text once, but for those after the last whole sequence; each trained token of rows.
train::Validation Trainer::validate(const train::Epoch&) {
  e_.model->eval();
  const auto loader = make_validation(e_);
  double sum = 0, count = 0;
  const auto each = [&](const data::Stacked& batch) {
    if (e_.rows) {
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

void Trainer::epoch_done(const train::Epoch& epoch, const train::Validation&) {
  const double per_row = e_.rows ? static_cast<double>(e_.rows->train->tokens()) /
                                       static_cast<double>(e_.rows->train->size())
                                 : static_cast<double>(options_.context);
  const double tokens = static_cast<double>(epoch.samples) * per_row;
  if (log_)
    log_->log(engine_.position().step,
              {{"epoch", static_cast<double>(epoch.number)},
               {"epoch_loss", epoch.loss},
               {"val_loss", val_loss_},
               {"tokens_per_second", tokens / epoch.seconds},
               {"peak_tensor_bytes", static_cast<double>(train::peak_tensor_bytes(e_.world.device()))}});
}

std::string Trainer::save() {
  const Checkpoint saved =
      engine_.save(e_.folder, train::RunFolder::kLastCheckpoint, {{"config", options_.toml}}, /*keep=*/2);
  if (!saved.parts.empty()) save_model(saved.part("model"));
  return (std::filesystem::path(options_.out) / train::RunFolder::kLastCheckpoint).string();
}

void Trainer::ended(train::RunEnd end) {
  if (options_.fsdp_checkpoints == "sharded" && strategy_->is_sharded())  // checkpoints left the published form out
    save_model(strategy_->model_state());
  if (!log_) return;
  const bool finished = end == train::RunEnd::finished;
  log_->end(finished);
  e_.folder->write_summary({{"finished", finished}, {"steps", engine_.position().step}, {"val_loss", val_loss_}});
}

std::string described(const Rows& rows, int64_t context) {
  const data::DocumentRows& train = *rows.train;
  const int64_t cut = train.cut() + rows.val->cut(), out = train.left_out() + rows.val->left_out();
  return str(train.tokens(), " tokens, ", train.trained(), " of them trained, in ", train.size(), " rows of ", context,
             ", ", rows.val->tokens(), " tokens for validation",
             cut > 0 ? str(", ", cut, " documents cut to the row") : "",
             out > 0 ? str(", ", out, " without a trained token left out") : "");
}

int run(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return train::kExitOk;
  const dist::World ranks = train::join_ranks(options);
  const Data data(options.data, options.rows);
  dist::check_same_lines(*ranks.group(), str(sum_of(*data.train), data.val ? sum_of(*data.val) : ""),
                         "data: the text is", "All ranks must read the same one");
  const data::BytePair tokenizer = make_tokenizer(options, data);
  const Tokens nothing(std::make_shared<const std::vector<int64_t>>());
  const auto [train, val] = data.examples ? std::pair(nothing, nothing) : make_tokens(options, data, tokenizer);
  GptConfig config;
  const auto model = make_model(options, tokenizer, config);
  const std::optional<Rows> rows =
      data.examples ? std::optional<Rows>(std::in_place, options, data, tokenizer, config) : std::nullopt;
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
              << "data    " << options.data << ": "
              << (rows ? described(*rows, options.context)
                       : str(train.size(), " tokens, ", val.size(), " for validation"))
              << ", of " << tokenizer.size() << '\n'
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
  const Experiment experiment{options, folder.get(), ranks, grid, tokenizer, config, model, train, val, rows};
  Trainer trainer(experiment);
  return train::run_or_plan(options, ranks, trainer);
}

}  // namespace
}  // namespace weft::gpt

int main(int argc, char** argv) {
  return weft::train::training_main("train_gpt", [&] { return weft::gpt::run(argc, argv); });
}
