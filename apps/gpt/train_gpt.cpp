// SPDX-License-Identifier: Apache-2.0
// Trains a GPT; see docs/gpt.md.
#include <filesystem>
#include <iostream>

#include "apps/gpt/gpt_files.h"
#include "apps/gpt/trainer.h"
#include "core/choose_device.h"
#include "core/random.h"
#include "data/text/corpus.h"
#include "dist/group/same_lines.h"
#include "io/crc32c.h"
#include "io/file_reader.h"
#include "train/training_main.h"

namespace weft::gpt {
namespace {

namespace fs = std::filesystem;

/// The bytes of --data: of a file, or of train.bin and val.bin in a folder.
struct Data {
  fs::path path;
  bool tokens = false;                            ///< their numbers, and no text
  std::shared_ptr<const std::string> train, val;  ///< val: null for one file

  explicit Data(const fs::path& given) : path(given) {
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

data::BytePair make_tokenizer(const Options& o, const Data& data) {
  const bool of_weights = o.tokenizer == "auto" && !tokenizer_folder(o).empty();
  if (!of_weights && (o.tokenizer == "auto" || o.tokenizer == "bytes")) {
    WEFT_CHECK(!data.tokens, data.name("train.bin"),
               ": expected a text, got the numbers of tokens. --tokenizer names the folder of the tokenizer that made "
               "them (vocab.json, merges.txt)");
    return data::BytePair::of_bytes(data::text_of(*data.train, data.name("")));
  }
  return read_tokenizer(o.tokenizer, of_weights ? tokenizer_folder(o) : fs::path());
}

/// The last --val-share of one file, or both files of a folder.
std::pair<Tokens, Tokens> make_tokens(const Options& o, const Data& data, const data::BytePair& tokenizer) {
  const Tokens all = data.tokens ? data::tokens_of(data.train, tokenizer.size(), data.name("train.bin"))
                                 : Tokens(std::make_shared<const std::vector<int64_t>>(
                                       tokenizer.encode(data::text_of(*data.train, data.name("")))));
  if (data.val) return {all, data::tokens_of(data.val, tokenizer.size(), data.name("val.bin"))};
  const auto kept = static_cast<int64_t>(static_cast<double>(all.size()) * (1 - o.val_share));
  return {all.part(0, kept), all.part(kept, all.size() - kept)};
}

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
  const int64_t heads = config.sizes.heads;
  if (heads % o.tensor != 0) throw train::UsageError(str("--tensor: ", heads, " heads do not divide by ", o.tensor));
}

int run(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return train::kExitOk;
  const dist::World ranks = train::join_ranks(options);
  const Data data(options.data);
  dist::check_same_lines(*ranks.group(), str(sum_of(*data.train), data.val ? sum_of(*data.val) : ""),
                         "data: the text is", "All ranks must read the same one");
  const data::BytePair tokenizer = make_tokenizer(options, data);
  const auto [train, val] = make_tokens(options, data, tokenizer);
  GptConfig config;
  const auto model = make_model(options, tokenizer, config);
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
              << "data    " << options.data << ": " << train.size() << " tokens, " << val.size()
              << " for validation, of " << tokenizer.size() << '\n'
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
  Trainer trainer(options, folder.get(), ranks, grid, tokenizer, config, model, train, val);
  return train::run_or_plan(options, ranks, trainer);
}

}  // namespace
}  // namespace weft::gpt

int main(int argc, char** argv) {
  return weft::train::training_main("train_gpt", [&] { return weft::gpt::run(argc, argv); });
}
