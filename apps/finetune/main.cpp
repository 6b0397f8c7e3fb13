// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "apps/finetune/bert_files.h"
#include "apps/finetune/labels.h"
#include "apps/finetune/trainer.h"
#include "apps/finetune/trainer_state.h"
#include "core/choose_device.h"
#include "core/random.h"
#include "core/text.h"
#include "data/text/wordpiece.h"
#include "dist/group/same_lines.h"
#include "io/checkpoint_index.h"
#include "io/file_reader.h"
#include "io/weights/weights_file.h"
#include "train/resume.h"
#include "train/training_main.h"

namespace weft::finetune {
namespace {

namespace fs = std::filesystem;

void warn(const dist::World& ranks, const std::string& text) {
  if (ranks.is_first() && !text.empty()) std::cerr << "warning: " + printable(text) + "\n" << std::flush;
}

/// The file of a part: `given`, of the folder or of anywhere, or the one that the folder has under these names.
fs::path part_file(const Options& options, const std::string& given, std::initializer_list<const char*> names) {
  const fs::path folder = options.data;
  if (!given.empty()) return fs::exists(folder / given) ? folder / given : fs::path(given);
  const auto has_name = [&](const std::string& file, std::initializer_list<std::string_view> endings) {
    const std::string small = lower_case(file);
    for (const std::string name : names)
      for (const std::string_view ending : endings)
        if (small.size() == name.size() + ending.size() && small.starts_with(name) && small.ends_with(ending))
          return true;
    return false;
  };
  std::vector<std::string> found, others;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (has_name(file, {".tsv", ".csv", ".json", ".jsonl"})) found.push_back(file);
    if (has_name(file, {".parquet", ".arrow", ".csv.gz", ".tsv.gz", ".json.gz", ".jsonl.gz"})) others.push_back(file);
  }
  std::sort(found.begin(), found.end());
  std::sort(others.begin(), others.end());
  const std::string first = *names.begin();
  const std::string flag = first == "train" ? "--train-file" : "--validation-file";
  if (found.empty() && !others.empty())
    fail("--data: the folder ", options.data, " has ", others[0], ", expected ",
         others[0].substr(0, others[0].find('.')), ".tsv, .csv, .json or .jsonl. ",
         others[0].ends_with(".gz") ? "Unpack it first"
                                    : "In Python: datasets.load_dataset(DIR)[PART].to_json(FILE) writes .jsonl");
  WEFT_CHECK(!found.empty(), "--data: there is no ", first, ".tsv in the folder ", options.data,
             ", nor .csv, .json or .jsonl. ", flag, " names another file");
  WEFT_CHECK(found.size() == 1, "--data: the folder ", options.data, " has ", joined(found), ". ", flag,
             " says which it is");
  return folder / found[0];
}

data::TextTableOptions table_options(const Options& options) {
  data::TextTableOptions result{.label = options.label_column};
  for (size_t begin = 0; begin < options.text_columns.size();) {
    const size_t end = std::min(options.text_columns.find(',', begin), options.text_columns.size());
    result.texts.push_back(options.text_columns.substr(begin, end - begin));
    begin = end + 1;
  }
  if (result.texts.size() > 2)
    throw train::UsageError("--text-column-names: expected one or two names, got '" + options.text_columns + "'");
  return result;
}

/// The folder of the weights; "": there are none.
fs::path weights_folder(const Options& options) {
  if (options.weights == "random") return {};
  const fs::path file = weights_in_folder(options.weights);
  return fs::is_directory(file) ? file : file.parent_path();
}

/// --vocab, or the vocabulary beside the weights, or one made from the training texts.
Tokenizer make_tokenizer(const Options& options, nn::BertKind kind, const data::TextTable& train) {
  if (!options.vocab.empty()) return read_tokenizer(options.vocab, kind);
  if (options.weights != "random") {
    const fs::path folder = weights_folder(options);
    return read_tokenizer(folder.empty() ? "." : folder, kind);
  }
  WEFT_CHECK(kind != nn::BertKind::roberta, "--vocab: the byte pairs of ", options.model,
             " cannot be made here: name a folder with their vocab.json and merges.txt");
  std::vector<std::string> texts;
  for (const data::LabelledText& row : train.rows) {
    texts.push_back(row.first);
    if (train.pairs) texts.push_back(row.second);
  }
  return tokenizer_of(std::make_unique<data::WordPiece>(data::make_vocabulary(texts, options.vocab_size)), kind);
}

/// The model's sizes: those of --model, as far as the weights' configuration says no others.
nn::BertOptions model_sizes(const Options& options, const Configuration& configuration, const Labels& labels,
                            const data::TextEncoder& tokens) {
  nn::BertOptions sizes = configuration.sizes;
  sizes.classes = labels.outputs();
  sizes.recompute = options.recompute;
  if (options.dropout >= 0) sizes.dropout = sizes.attention_dropout = sizes.head_dropout = options.dropout;
  sizes.vocabulary = tokens.size();
  if (options.weights != "random") {
    const fs::path file = weights_in_folder(options.weights);
    sizes.vocabulary = is_sharded(options.resume) ? configuration.vocabulary : vocabulary_in(file, options.weights_key);
    WEFT_CHECK(configuration.vocabulary == 0 || configuration.vocabulary == sizes.vocabulary, file.string(),
               ": the word embeddings have ", sizes.vocabulary, " rows, config.json says vocab_size ",
               configuration.vocabulary);
  }
  // RoBERTa counts its positions from there; of the others it is the row that is not trained.
  WEFT_CHECK(
      sizes.kind != nn::BertKind::roberta || configuration.text.empty() || sizes.padding_row() == tokens.padding_id(),
      "config.json says pad_token_id ", sizes.padding_row(), ", the padding token has the id ", tokens.padding_id());
  sizes.padding = tokens.padding_id();
  return sizes;
}

/// Tokens of the longest text.
int64_t longest_text(const Options& options, const nn::BertOptions& sizes, const Tokenizer& tokenizer,
                     const dist::World& ranks) {
  int64_t most = sizes.tokens();
  if (tokenizer.most > 0) most = std::min(most, tokenizer.most);
  if (most < options.max_length)
    warn(ranks, str("--max-length ", options.max_length, ": texts are cut after ", most,
                    " tokens, which is all that the model ",
                    most == sizes.tokens() ? "has positions for" : "takes (model_max_length)"));
  return std::min(most, options.max_length);
}

std::shared_ptr<Classifier> make_model(const Options& options, const nn::BertOptions& sizes, const Labels& labels,
                                       const dist::World& ranks) {
  manual_seed(static_cast<uint64_t>(options.seed));
  const nn::DeferredInit::Scope deferred(options.deferred.get());
  auto model = std::make_shared<Classifier>(sizes);
  if (options.weights != "random" && !is_sharded(options.resume)) {  // each rank reads its own shards later
    const LoadedBert loaded = load_bert(*model, options.weights, labels.fits_weights, options.weights_key);
    WEFT_CHECK(loaded.whole || options.resume.empty(), "checkpoint ", options.resume,
               ": the classifier is missing or of other classes");
    warn(ranks, loaded.note);
  }
  return model;
}

/// A run that goes on has the model of its checkpoint.
void take_model(Options& options) {
  const fs::path config = fs::path(options.resume).parent_path() / "config.toml";
  std::error_code none;
  if (options.resume.empty() || !fs::is_regular_file(config, none)) return;
  const std::string saved = train::setting_of(read_text(config, "config"), "model");
  if (saved.empty()) return;
  WEFT_CHECK(!options.has_model || options.model == saved, "checkpoint ", options.resume, ": is of --model ", saved,
             ", this run has --model ", options.model);
  options.model = saved;
}

/// The meaning of --resume-from-checkpoint (`wanted`) now, by rank 0's view.
void choose_start(const std::string& wanted, Options& options, const dist::World& ranks) {
  options.resume = train::on_first(ranks, "checkpoint to resume", [&] {
    std::string note, found = whole_checkpoint_folder(wanted, options.out, note);
    warn(ranks, note);
    return found;
  });
  if (!options.resume.empty()) options.weights = options.resume;
  take_model(options);
}

/// Makes room in the run's folder, which is open already, unless the run goes on there.
void make_room(const Options& o, const std::string& resume, const dist::World& ranks) {
  std::optional<train::NewRun> fresh;
  if (resume != "last" && !train::goes_on_in(o.out, resume)) {
    const fs::path weights = fs::weakly_canonical(o.weights), out = fs::weakly_canonical(o.out) / "";
    if (o.overwrite && weights.string().starts_with(out.string()))
      throw train::UsageError(str("--overwrite: would remove the --weights ", o.weights, ". Name another --out"));
    fresh = train::NewRun{.overwrite = o.overwrite,
                          .flags = "--resume-from-checkpoint last continues it, --out names another folder",
                          .own_names = {"model"}};
  }
  train::open_run_folder(o.out, ranks, fresh);
}

int run(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return train::kExitOk;
  // A dry run on one machine does not wait for the others.
  const bool one_of_many = support::export_rank(options.accelerate) && options.dry_run;
  if (one_of_many) options.parallel = "none";
  const dist::World ranks = train::join_ranks(options);
  const std::string wanted = options.resume;
  options.may_resume = !wanted.empty();
  options.resume = checkpoint_folder(wanted, options.out);
  if (!options.resume.empty()) options.weights = options.resume;
  WEFT_CHECK(
      fs::is_directory(options.data) || (!options.train_file.empty() && !options.validation_file.empty()),
      "--data: there is no folder ", options.data,
      ", which should hold train.tsv and dev.tsv: GLUE's MRPC or SST-2, or your own with columns text and label");
  const fs::path train_file = part_file(options, options.train_file, {"train"}),
                 dev_file = part_file(options, options.validation_file,
                                      {"dev", "validation", "valid", "val", "dev_matched", "validation_matched"});
  const data::TextTableOptions columns = table_options(options);
  const data::TextTable train = data::read_text_table(train_file, columns),
                        dev = data::read_text_table(dev_file, columns);
  WEFT_CHECK(train.pairs == dev.pairs, "data: ", options.data, ": ", train.description, "; ", dev.description);
  for (const data::TextTable* table : {&train, &dev}) {
    WEFT_CHECK(!table->rows.empty(), "data: ", options.data, ": ", table->description);
    if (!table->unused.empty())
      warn(ranks, str("data: ", table->description, ": these columns are not used: ", joined(table->unused, 20),
                      ". --text-column-names says which are the texts"));
    if (table->without_label > 0)
      warn(ranks, str("data: ", table->description, ": ", table->without_label, " rows of the label - are left out"));
  }
  if (dev_file.stem() == "dev_matched" || dev_file.stem() == "validation_matched")
    warn(ranks, str("data: only ", dev_file.filename().string(), " is scored; --validation-file names the other part"));
  std::string files;
  for (const fs::path& file : {train_file, dev_file}) {
    const auto [crc, bytes] = checksum_of(file);
    files += str(file.filename().string(), " of ", bytes, " bytes with the checksum ", crc, '\n');
  }
  dist::check_same_lines(*ranks.group(), files, "data: the texts are", "All ranks must read the same ones");
  if (options.weights == "auto") options.weights = standard_weights(options.model);
  const auto folder = options.dry_run ? nullptr : train::open_run_folder(options.out, ranks);
  choose_start(wanted, options, ranks);  // an attempt that was still ending may have written one more
  Configuration configuration{.sizes = nn::bert_options(options.model), .labels = {}};
  if (options.weights != "random")
    configuration = read_configuration(weights_folder(options), configuration.sizes, options.dropout < 0);
  Labels labels;
  try {
    labels = choose_labels(train, configuration, options.problem);
  } catch (const Error& error) {
    fail("data: ", options.data, ": ", error.what());
  }
  WEFT_CHECK(labels.fits_weights || options.resume.empty(), "checkpoint ", options.resume, ": ", labels.note);
  warn(ranks, labels.note);
  const Tokenizer tokenizer = make_tokenizer(options, configuration.sizes.kind, train);
  const data::TextEncoder* const tokens = tokenizer.encoder.get();
  const nn::BertOptions sizes = model_sizes(options, configuration, labels, *tokens);
  const int64_t most = longest_text(options, sizes, tokenizer, ranks);
  Texts train_texts = encode(train, labels, *tokens, sizes, most),
        dev_texts = encode(dev, labels, *tokens, sizes, most);
  train::defer_weights(options);
  const auto model = make_model(options, sizes, labels, ranks);
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
  return train_classifier(
      {options, folder.get(), ranks, tokenizer,
       SavedConfiguration{.from = configuration.text, .labels = labels.names, .regression = labels.regression}, model,
       std::move(train_texts), std::move(dev_texts)});
}

}  // namespace
}  // namespace weft::finetune

int main(int argc, char** argv) {
  return weft::train::training_main("finetune", [&] { return weft::finetune::run(argc, argv); });
}
