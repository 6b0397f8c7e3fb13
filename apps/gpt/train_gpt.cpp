// SPDX-License-Identifier: Apache-2.0
// Trains a GPT; see docs/gpt.md.
#include <filesystem>
#include <iostream>

#include "apps/gpt/gpt_files.h"
#include "apps/gpt/trainer.h"
#include "core/choose_device.h"
#include "core/random.h"
#include "dist/group/same_lines.h"
#include "io/crc32c.h"
#include "io/file_reader.h"
#include "train/resume.h"
#include "train/training_main.h"

namespace weft::gpt {
namespace {

namespace fs = std::filesystem;

data::BytePair make_tokenizer(const Options& o, const std::string& text) {
  if (o.tokenizer == "auto" && o.weights != "random") return data::BytePair::from_folder(model_folder(o.weights));
  if (o.tokenizer == "auto" || o.tokenizer == "bytes") return data::BytePair::of_bytes(text);
  return data::BytePair::from_folder(model_folder(o.tokenizer));
}

std::shared_ptr<nn::Gpt> make_model(Options& o, const data::BytePair& tokenizer) {
  manual_seed(static_cast<uint64_t>(o.seed));
  const bool random = o.weights == "random";
  nn::GptOptions sizes = random ? nn::gpt_options(o.model) : read_gpt_options(model_folder(o.weights));
  if (random) {
    sizes.vocabulary = tokenizer.size();
    if (o.context > 0) sizes.positions = o.context;
  }
  WEFT_CHECK(tokenizer.size() <= sizes.vocabulary, "--tokenizer: expected at most the ", sizes.vocabulary,
             " tokens of the weights, got ", tokenizer.size());
  sizes.dropout = o.dropout;
  if (o.context == 0) o.context = sizes.positions;
  auto model = std::make_shared<nn::Gpt>(sizes);
  if (!random) load_gpt(*model, model_folder(o.weights));
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
  const dist::World ranks =
      dist::init({.alone = options.parallel == "none", .backend = options.backend, .device = options.device});
  train::require_same_settings(ranks, options.toml, "data weights tokenizer out device");
  const std::string text = read_text(options.data, "--data");
  dist::check_same_lines(*ranks.group(),
                         str(text.size(), " bytes with the checksum ", crc32c(text.data(), text.size())),
                         "data: the text is", "All ranks must read the same one");
  const data::BytePair tokenizer = make_tokenizer(options, text);
  const std::vector<int64_t> ids = tokenizer.encode(text);
  const auto kept = static_cast<int64_t>(static_cast<double>(ids.size()) * (1 - options.val_share));
  const Tokens train = std::make_shared<std::vector<int64_t>>(ids.begin(), ids.begin() + kept);
  const Tokens val = std::make_shared<std::vector<int64_t>>(ids.begin() + kept, ids.end());
  const auto model = make_model(options, tokenizer);
  check_grid(options, model->options.heads, ranks.size());
  std::optional<train::NewRun> fresh;
  if (!train::goes_on_in(options.out, options.resume))
    fresh = train::NewRun{.overwrite = options.overwrite,
                          .flags = "--resume auto continues it, --out names another folder",
                          .own_names = {"model"}};
  const auto folder = options.dry_run ? nullptr : train::open_run_folder(options.out, ranks, fresh);
  if (ranks.is_first()) {
    if (ranks.size() > 1) std::cout << "ranks   " << ranks.describe() << '\n';
    const nn::GptOptions& sizes = model->options;
    const int64_t row = options.tensor * options.pipeline;
    std::cout << "device  " << weft::describe(ranks.device()) << '\n'
              << "data    " << options.data << ": " << train->size() << " tokens, " << val->size()
              << " for validation, of " << tokenizer.size() << '\n'
              << "model   " << sizes.depth << " layers, " << sizes.width << " wide, " << sizes.heads << " heads, "
              << nn::parameter_count(*model) << " parameters, weights " << options.weights << ", " << options.precision
              << '\n'
              << (row > 1 ? str("grid    ", ranks.size() / row, " data x ", options.tensor, " model ranks x ",
                                options.pipeline, " stages\n")
                          : "")
              << "run     " << options.out << std::endl;
  }
  Trainer trainer(options, folder.get(), ranks, tokenizer, model, train, val);
  if (options.dry_run) {
    if (ranks.is_first()) std::cout << "dry run: would train " << trainer.plan() << std::endl;
    return train::kExitOk;
  }
  return train::exit_code(trainer.run());
}

}  // namespace
}  // namespace weft::gpt

int main(int argc, char** argv) {
  return weft::train::training_main("train_gpt", [&] { return weft::gpt::run(argc, argv); });
}
