// SPDX-License-Identifier: Apache-2.0
#include "apps/gpt/training_text.h"

#include <algorithm>

#include "data/text/corpus.h"
#include "data/text/token_windows.h"
#include "io/crc32c.h"
#include "io/file_reader.h"
#include "train/exit.h"

namespace weft::gpt {

namespace fs = std::filesystem;

TextFiles::TextFiles(const Options& options) : path_(options.data) {
  const std::string& rows = options.rows;
  const bool pair = fs::is_directory(path_);
  WEFT_CHECK(!pair || (fs::exists(path_ / "train.bin") && fs::exists(path_ / "val.bin")), "--data ", path_.string(),
             ": expected a text, a file of tokens, or a folder of train.bin and val.bin, got another folder. `cat ",
             path_.string(), "/*.txt > TEXT` makes one text");
  const auto read = [](const fs::path& file) { return std::make_shared<const std::string>(read_text(file, "--data")); };
  train_ = read(pair ? path_ / "train.bin" : path_);
  if (pair) val_ = read(path_ / "val.bin");
  tokens_ = pair || data::holds_tokens(path_, *train_);
  const data::JsonLines lines = tokens_ ? data::JsonLines::none : data::kind_of_json_lines(*train_);
  const bool alone = rows == "packed" || rows == "single";
  examples_ = lines == data::JsonLines::examples || (lines == data::JsonLines::texts && alone);
  if (alone && !examples_)
    throw train::UsageError(str("--rows ", rows, ": expected JSON lines as --data, got another file"));
  if (examples_ && rows == "stream")
    throw train::UsageError("--rows stream: expected a text or JSON lines with a text as --data, got others");
  if (tokens_ || examples_) return;
  if (lines == data::JsonLines::none) data::refuse_other_json(*train_, path_, name());
  texts_ = data::json_texts(*train_, name());
}

std::string TextFiles::checksums() const {
  const auto one = [](const std::string& bytes) {
    return str(bytes.size(), " bytes with the checksum ", crc32c(bytes.data(), bytes.size()), ' ');
  };
  return one(*train_) + (val_ ? one(*val_) : "");
}

std::string TextFiles::name(const char* part) const {
  return "--data " + (fs::is_directory(path_) ? path_ / part : path_).string();
}

/// `chat`: the tokenizer's template, or null.
std::vector<data::TextExample> TextFiles::examples(const data::ChatTemplate* chat,
                                                   const std::vector<data::AddedToken>& ends) const {
  return *data::text_examples(*train_, name(), chat, ends);
}

/// All of the text; JSON lines have a line break between their texts.
std::string TextFiles::text() const {
  if (!texts_ && !examples_) return std::string(data::text_of(*train_, name()));
  std::string all;
  if (examples_)
    for (const data::TextExample& example : examples(nullptr, {}))
      for (const data::TextPart& part : example.parts) all += part.text;
  else
    for (const std::string& one : *texts_) all += one + "\n";
  return all;
}

/// The tokens of a text; of JSON lines, each text's and the token that ends it.
std::vector<int64_t> TextFiles::encode(const data::BytePair& tokenizer) const {
  if (!texts_ || tokenizer.end_of_text() < 0) return tokenizer.encode(text());
  std::vector<int64_t> all;
  for (const std::string& one : *texts_) {
    const std::vector<int64_t> tokens = tokenizer.encode(one);
    all.insert(all.end(), tokens.begin(), tokens.end());
    all.push_back(tokenizer.end_of_text());
  }
  return all;
}

namespace {

/// The folder whose files --tokenizer auto means: of the weights, or of the model; "": none has a tokenizer.
fs::path tokenizer_folder(const Options& o) {
  if (o.weights != "random") return model_folder(o.weights);
  const fs::path folder = model_folder(o.model);
  return fs::exists(folder / "tokenizer.json") || fs::exists(folder / "vocab.json") ? folder : fs::path();
}

/// The template in the folder of the run's tokenizer.
std::optional<data::ChatTemplate> read_chat_template(const Options& o) {
  if (o.tokenizer == "bytes") return {};
  const fs::path folder = o.tokenizer == "auto" ? tokenizer_folder(o) : model_folder(o.tokenizer);
  return folder.empty() ? std::nullopt : data::ChatTemplate::from_folder(folder);
}

/// How many of `count` are for training; the rest is for validation.
int64_t kept(const Options& o, int64_t count) {
  return static_cast<int64_t>(static_cast<double>(count) * (1 - o.val_share));
}

template <class Set>
auto make_loader(const std::shared_ptr<const Set>& set, const Options& o, const dist::ProcessGroup& group,
                 Device device, bool training) {
  data::SamplerOptions order{.shuffle = training, .rank = group.rank(), .world = group.size()};
  if (training) order.seed = static_cast<uint64_t>(o.seed);
  order.tail = training ? data::Tail::drop : data::Tail::uneven;
  return std::make_unique<data::Loader<data::Stacked>>(
      set, data::Sampler(set->size(), order),
      data::LoaderOptions{.batch_size = o.batch_size, .workers = 0, .drop_last = training, .device = device});
}

}  // namespace

bool has_tokenizer(const Options& options) { return !tokenizer_folder(options).empty(); }

data::BytePair TextFiles::tokenizer(const Options& o) const {
  const bool beside = o.tokenizer == "auto" && has_tokenizer(o);
  if (!beside && (o.tokenizer == "auto" || o.tokenizer == "bytes")) {
    WEFT_CHECK(!tokens_, name("train.bin"),
               ": expected a text, got the numbers of tokens. --tokenizer names the folder of the tokenizer that made "
               "them (vocab.json, merges.txt)");
    return data::BytePair::of_bytes(text());
  }
  return read_tokenizer(o.tokenizer, beside ? tokenizer_folder(o) : fs::path());
}

TrainingText::TrainingText(const Options& o, const TextFiles& files, const data::BytePair& tokenizer,
                           const GptConfig& config)
    : options_(o), train_(nullptr, nullptr, 0, 2), val_(train_) {
  if (!files.examples_) {
    const auto read = [&](const auto& bytes, const char* part) {
      return data::tokens_of(bytes, tokenizer.size(), files.name(part));
    };
    const data::TokenNumbers all =
        files.tokens_ ? read(files.train_, "train.bin")
                      : data::TokenNumbers(std::make_shared<const std::vector<int64_t>>(files.encode(tokenizer)));
    const int64_t first = files.val_ ? all.size() : kept(o, all.size());
    train_ = all.part(0, first);
    val_ = files.val_ ? read(files.val_, "val.bin") : all.part(first, all.size() - first);
    return;
  }
  const std::optional<data::ChatTemplate> chat = read_chat_template(o);
  const int64_t end = config.end && !config.end->empty() ? config.end->front() : tokenizer.end_of_text();
  std::vector<data::TokenDocument> documents, last;
  for (const data::TextExample& example : files.examples(chat ? &*chat : nullptr, tokenizer.added_tokens()))
    documents.push_back(data::encode_example(example, tokenizer, end, o.loss_on == "all"));
  const auto count = static_cast<int64_t>(documents.size());
  const int64_t first = std::clamp<int64_t>(kept(o, count), 1, count);
  last.assign(documents.begin() + first, documents.end());
  documents.resize(static_cast<size_t>(first));
  WEFT_CHECK(!last.empty(), files.name(), ": expected at least 2 documents, one of them for validation, got 1");
  packed_ = o.rows != "single";
  using Fill = data::DocumentRows::Fill;
  const auto make = [&](std::vector<data::TokenDocument> some, const char* what) {
    try {
      return std::make_shared<const data::DocumentRows>(std::move(some), o.context,
                                                        packed_ ? Fill::packed : Fill::single);
    } catch (const Error& error) {
      fail(files.name(), ": ", what, ": ", error.what(), " (--context)");
    }
  };
  rows_ = make(std::move(documents), "training");
  val_rows_ = make(std::move(last), "validation");
}

std::shared_ptr<data::BatchQueue> TrainingText::batches(const dist::ProcessGroup& group, Device device) const {
  const int64_t context = options_.context, step = options_.batch_size * options_.accumulate * group.size();
  if (rows_) {
    WEFT_CHECK(rows_->size() >= step, "--data: a step of ", step, " rows of ", context, " tokens needs more than the ",
               rows_->size(), " rows of the training documents");
    return make_loader(rows_, options_, group, device, true);
  }
  for (const auto& [part, tokens] : {std::pair("training", &train_), std::pair("validation", &val_)})
    WEFT_CHECK(tokens->size() > context, "--context: expected fewer than the ", tokens->size(), " tokens of the ", part,
               " text, got ", context);
  const auto windows = std::make_shared<const data::TokenWindows>(train_, context, 1);
  WEFT_CHECK(windows->size() >= step, "--data: a step of ", step, " sequences of ", context,
             " tokens needs more than the ", train_.size(), " tokens of the training text");
  return make_loader(windows, options_, group, device, true);
}

std::unique_ptr<data::Loader<data::Stacked>> TrainingText::validation(const dist::ProcessGroup& group,
                                                                      Device device) const {
  if (val_rows_) return make_loader(val_rows_, options_, group, device, false);
  const int64_t context = options_.context;
  return make_loader(std::make_shared<const data::TokenWindows>(val_, context, context), options_, group, device,
                     false);
}

int64_t TrainingText::samples(int64_t step, int ranks) const {
  if (rows_) return rows_->size() / (step * ranks) * step;
  const int64_t tokens = train_.size(), context = options_.context;
  return std::max<int64_t>(std::min(tokens / context, tokens - context) / (step * ranks), 1) * step;
}

double TrainingText::tokens_per_sequence() const {
  return rows_ ? static_cast<double>(rows_->tokens()) / static_cast<double>(rows_->size())
               : static_cast<double>(options_.context);
}

double TrainingText::trained_per_sequence() const {
  return rows_ ? static_cast<double>(rows_->trained()) / static_cast<double>(rows_->size())
               : static_cast<double>(options_.context);
}

std::string TrainingText::describe() const {
  if (!rows_) return str(train_.size(), " tokens, ", val_.size(), " for validation");
  const int64_t cut = rows_->cut() + val_rows_->cut(), out = rows_->left_out() + val_rows_->left_out();
  return str(rows_->tokens(), " tokens, ", rows_->trained(), " of them trained, in ", rows_->size(), " rows of ",
             options_.context, ", ", val_rows_->tokens(), " tokens for validation",
             cut > 0 ? str(", ", cut, " documents cut to the row") : "",
             out > 0 ? str(", ", out, " without a trained token left out") : "");
}

}  // namespace weft::gpt
