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

data::BytePair make_tokenizer(const Options& o, const Data& data) {
  const bool of_weights = o.tokenizer == "auto" && o.weights != "random";
  if (!of_weights && (o.tokenizer == "auto" || o.tokenizer == "bytes")) {
    WEFT_CHECK(!data.tokens, data.name("train.bin"),
               ": expected a text, got the numbers of tokens. --tokenizer names the folder of the tokenizer that made "
               "them (vocab.json, merges.txt)");
    return data::BytePair::of_bytes(data::text_of(*data.train, data.name("")));
  }
  return read_tokenizer(o.tokenizer, of_weights ? model_folder(o.weights) : fs::path());
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

/// The model, whose sizes become those of `config`.
std::shared_ptr<nn::Gpt> make_model(Options& o, const data::BytePair& tokenizer, GptConfig& config) {
  manual_seed(static_cast<uint64_t>(o.seed));
  const bool random = o.weights == "random";
  nn::GptOptions& sizes = config.sizes;
  if (random) {
    sizes = nn::gpt_options(o.model);
    sizes.vocabulary = tokenizer.size();
    if (o.context > 0) sizes.positions = o.context;
  } else {
    config = read_gpt_config(model_folder(o.weights));
  }
  require_room(tokenizer, sizes);
  sizes.dropout = o.dropout;
  sizes.recompute = o.recompute;
  if (o.context == 0) o.context = sizes.positions;
  train::defer_weights(o);
  const nn::DeferredInit::Scope deferred(o.deferred.get());
  auto model = std::make_shared<nn::Gpt>(sizes);
  if (!random) load_gpt(*model, model_folder(o.weights), o.weights_key);
  return model;
}

void check_grid(const Options& o, int64_t heads, int64_t ranks) {
  const std::string all = str(ranks, ranks == 1 ? " rank" : " ranks");
  if (ranks % o.pipeline != 0) throw train::UsageError(str("--pipeline: ", o.pipeline, " stages do not divide ", all));
  if (ranks / o.pipeline % o.tensor != 0)
    throw train::UsageError(str("--tensor: ", o.tensor, " does not divide ",
                                o.pipeline == 1 ? all : str(ranks / o.pipeline, " ranks of each stage")));
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
  GptConfig config{.dropout = options.dropout};
  const auto model = make_model(options, tokenizer, config);
  check_grid(options, model->options.heads, ranks.size());
  const int64_t row = options.tensor * options.pipeline;
  const dist::Grid grid =
      row > 1 ? dist::Grid(ranks.group(), static_cast<int>(options.tensor), static_cast<int>(options.pipeline))
              : dist::Grid(ranks.group(), dist::make_process_group_alone(), ranks.group());
  const auto folder =
      options.dry_run ? nullptr : train::open_run_folder(options.out, ranks, train::new_run(options, {"model"}));
  if (ranks.is_first()) {
    if (ranks.size() > 1) std::cout << "ranks   " << ranks.describe() << '\n';
    const nn::GptOptions& sizes = model->options;
    std::cout << "device  " << weft::describe(ranks.device()) << '\n'
              << "data    " << options.data << ": " << train.size() << " tokens, " << val.size()
              << " for validation, of " << tokenizer.size() << '\n'
              << "model   " << sizes.depth << " layers, " << sizes.width << " wide, " << sizes.heads << " heads, "
              << nn::parameter_count(*model) << " parameters, weights " << options.weights << ", " << options.precision
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
