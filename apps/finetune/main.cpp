// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iostream>

#include "apps/finetune/bert_files.h"
#include "apps/finetune/trainer.h"
#include "core/choose_device.h"
#include "core/random.h"
#include "core/text.h"
#include "dist/group/same_lines.h"
#include "io/checkpoint_index.h"
#include "train/resume.h"
#include "train/training_main.h"

namespace weft::finetune {
namespace {

namespace fs = std::filesystem;

/// The model's sizes, but for its vocabulary: those of --model, as far as the weights' configuration says no others.
nn::BertOptions model_sizes(const Options& options, int64_t classes) {
  nn::BertOptions sizes = nn::bert_options(options.model);
  if (options.weights != "random") sizes = configured(options.weights, sizes, options.dropout < 0);
  sizes.classes = classes;
  if (options.dropout >= 0) sizes.dropout = sizes.head_dropout = options.dropout;
  return sizes;
}

/// --vocab, or the vocabulary beside the weights, or one made from the training texts.
std::unique_ptr<data::TextEncoder> make_tokens(const Options& options, nn::BertKind kind,
                                               const data::TextTable& train) {
  const bool pairs = kind == nn::BertKind::roberta;
  if (!options.vocab.empty()) return read_tokens(options.vocab, kind);
  if (options.weights != "random") {
    const fs::path folder = weights_file(options.weights).parent_path(),
                   beside = folder / (pairs ? "vocab.json" : "vocab.txt");
    WEFT_CHECK(fs::exists(beside), "--vocab: there is no ", beside.string(),
               " beside the weights: name the vocabulary");
    return read_tokens(folder, kind);
  }
  WEFT_CHECK(!pairs, "--vocab: the byte pairs of ", options.model,
             " cannot be made here: name a folder with their vocab.json and merges.txt");
  std::vector<std::string> texts;
  for (const data::LabelledText& row : train.rows) {
    texts.push_back(row.first);
    if (train.pairs) texts.push_back(row.second);
  }
  return std::make_unique<data::WordPiece>(data::make_vocabulary(texts, options.vocab_size));
}

std::shared_ptr<Classifier> make_model(const Options& options, nn::BertOptions sizes, const data::TextEncoder& tokens) {
  manual_seed(static_cast<uint64_t>(options.seed));
  sizes.vocabulary = tokens.size();
  auto model = std::make_shared<Classifier>(sizes);
  if (options.weights != "random") {
    const bool whole = load_bert(*model, options.weights);
    WEFT_CHECK(whole || options.resume.empty(), "checkpoint ", options.resume,
               ": the classifier is missing or of other classes");
  }
  return model;
}

/// What --resume-from-checkpoint (`wanted`) means now, as rank 0 sees it.
void choose_start(const std::string& wanted, Options& options, const dist::World& ranks) {
  std::string found, note, problem;
  try {
    if (ranks.is_first()) found = whole_checkpoint_folder(wanted, options.out, note);
  } catch (const Error& error) {
    problem = error.what();
  }
  if (!note.empty()) std::cerr << "warning: " + printable(note) + "\n" << std::flush;
  problem = ranks.first_says(problem, "checkpoint to resume");
  WEFT_CHECK(problem.empty(), problem);
  options.resume = ranks.first_says(found, "checkpoint to resume");
  if (!options.resume.empty()) options.weights = options.resume;
}

/// Makes room in the run's folder, which is open already, unless the run goes on there.
void make_room(const Options& o, const std::string& resume, const dist::World& ranks) {
  std::optional<train::NewRun> fresh;
  if (resume != "last" && !train::goes_on_in(o.out, resume)) {
    const fs::path weights = fs::weakly_canonical(o.weights), out = fs::weakly_canonical(o.out) / "";
    if (o.overwrite && weights.string().starts_with(out.string()))
      throw train::UsageError(str("--overwrite: would remove the --weights ", o.weights, ". Name another --out"));
    fresh = train::NewRun{.overwrite = o.overwrite,
                          .flags = "--resume-from-checkpoint last continues it, --out names another folder"};
  }
  train::open_run_folder(o.out, ranks, fresh);
}

int run(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return train::kExitOk;
  // A dry run on one machine does not wait for the others.
  const bool one_of_many = support::export_rank(options.accelerate) && options.dry_run;
  const dist::World ranks = dist::init(
      {.alone = options.parallel == "none" || one_of_many, .backend = options.backend, .device = options.device});
  train::require_same_settings(ranks, options.toml,
                               "data weights vocab out device config-file machine-rank main-process-ip "
                               "main-process-port num-processes");
  const std::string wanted = options.resume;
  options.may_resume = !wanted.empty();
  options.resume = checkpoint_folder(wanted, options.out);
  if (!options.resume.empty()) options.weights = options.resume;
  WEFT_CHECK(
      fs::is_directory(options.data), "--data: there is no folder ", options.data,
      ", which should hold train.tsv and dev.tsv: GLUE's MRPC or SST-2, or your own with columns text and label");
  const data::TextTable train = data::read_text_table(fs::path(options.data) / "train.tsv");
  const data::TextTable dev = data::read_text_table(fs::path(options.data) / "dev.tsv");
  WEFT_CHECK(train.classes == dev.classes && train.pairs == dev.pairs, "data: ", options.data,
             ": train.tsv and dev.tsv have other classes or columns");
  WEFT_CHECK(train.classes.size() >= 2, "data: ", options.data, ": expected at least two classes, got ",
             train.classes.size());
  std::string files;
  for (const char* name : {"train.tsv", "dev.tsv"}) {
    const auto [crc, bytes] = checksum_of(fs::path(options.data) / name);
    files += str(name, " of ", bytes, " bytes with the checksum ", crc, '\n');
  }
  dist::check_same_lines(*ranks.group(), files, "data: the texts are", "All ranks must read the same ones");
  if (options.weights == "auto") options.weights = standard_weights(options.model);
  const auto folder = options.dry_run ? nullptr : train::open_run_folder(options.out, ranks);
  choose_start(wanted, options, ranks);  // an attempt that was still ending may have written one more
  const nn::BertOptions sizes = model_sizes(options, static_cast<int64_t>(train.classes.size()));
  if (options.max_length > sizes.tokens())
    throw train::UsageError(
        str("--max-length: expected at most ", sizes.tokens(), ", the model's positions, got ", options.max_length));
  const auto tokens = make_tokens(options, sizes.kind, train);
  const Texts train_texts = encode(train, *tokens, options.max_length),
              dev_texts = encode(dev, *tokens, options.max_length);
  const auto model = make_model(options, sizes, *tokens);
  model->to(ranks.device());
  if (!options.dry_run) make_room(options, wanted, ranks);  // not before the weights could be read
  if (ranks.is_first()) {
    if (ranks.size() > 1) std::cout << "ranks   " << ranks.describe() << '\n';
    if (one_of_many)
      std::cout << "ranks   " << options.accelerate.num_processes << ", of which this is machine "
                << options.accelerate.machine_rank << "; the steps below are those of one alone\n";
    std::cout << "device  " << weft::describe(ranks.device()) << '\n'
              << "data    " << train.description << "; " << dev.description << "; " << tokens->size() << " tokens\n"
              << "model   " << options.model << ", " << nn::parameter_count(*model) << " parameters, weights "
              << options.weights << ", " << options.precision << '\n'
              << "run     " << options.out << std::endl;
  }
  Trainer trainer(options, folder.get(), ranks, *tokens, model, train_texts, dev_texts);
  if (options.dry_run) {
    if (ranks.is_first()) std::cout << "dry run: would train " << trainer.plan() << std::endl;
    return train::kExitOk;
  }
  return train::exit_code(trainer.run());
}

}  // namespace
}  // namespace weft::finetune

int main(int argc, char** argv) {
  return weft::train::training_main("finetune", [&] { return weft::finetune::run(argc, argv); });
}
