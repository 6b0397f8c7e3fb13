// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/tokenizer_files.h"

#include <algorithm>

#include "apps/finetune/json_values.h"
#include "core/text.h"
#include "data/text/roberta_pairs.h"
#include "data/text/unigram.h"
#include "data/text/wordpiece.h"
#include "io/atomic_file.h"
#include "io/file_reader.h"
#include "io/json.h"
#include "kernels/error.h"

namespace weft::finetune {
namespace {

namespace fs = std::filesystem;
using data::AddedToken;
using data::TokenizerJson;

constexpr const char *kConfiguration = "tokenizer_config.json", *kSpecial = "special_tokens_map.json",
                     *kAdded = "added_tokens.json", *kWhole = "tokenizer.json";

/// An object; empty where there is no such file.
nlohmann::json read_object(const fs::path& path, std::map<std::string, std::string>* kept = nullptr) {
  if (!fs::exists(path)) return nlohmann::json::object();
  const std::string text = read_text(path, "tokenizer");
  check_nesting(text, path.string());
  try {
    nlohmann::json json = nlohmann::json::parse(text);
    WEFT_CHECK(json.is_object(), path.string(), ": expected an object, got ", json.type_name());
    if (kept != nullptr) (*kept)[path.filename().string()] = text;
    return json;
  } catch (const nlohmann::json::exception& error) {
    fail(path.string(), ": expected JSON, got '", printable(error.what()), "'");
  }
}

/// The content of the files other than the vocabulary.
struct Folder {
  nlohmann::json configuration = nlohmann::json::object(), special = configuration, added = configuration;
  std::optional<TokenizerJson> whole;  ///< tokenizer.json
  bool generic = false;  ///< tokenizer_class leaves all to tokenizer.json; else the class has the last word

  /// A value of the two files that name special tokens: text, or an object with flags.
  const nlohmann::json* find(const char* key) const {
    for (const nlohmann::json* file : {&configuration, &special})
      if (says(*file, key)) return &(*file)[key];
    return nullptr;
  }
};

std::string content_of(const nlohmann::json& value) {
  return value.is_object() ? value.at("content").get<std::string>() : value.get<std::string>();
}

void take_flags(const nlohmann::json& value, AddedToken& token) {
  if (!value.is_object()) return;
  token.special = value.value("special", token.special);
  token.normalized = value.value("normalized", token.normalized);
  token.lstrip = value.value("lstrip", token.lstrip);
  token.rstrip = value.value("rstrip", token.rstrip);
  token.single_word = value.value("single_word", token.single_word);
}

/// The added tokens of all files. `id_in_vocabulary`: of a token, -1 where there is none; ids from `next` on are free.
template <class IdOf>
std::vector<AddedToken> added_tokens(const Folder& folder, IdOf&& id_in_vocabulary, int64_t next) {
  std::vector<AddedToken> tokens;
  if (folder.whole) tokens = folder.whole->added;
  const auto find = [&](const std::string& content) {
    return std::find_if(tokens.begin(), tokens.end(), [&](const AddedToken& one) { return one.content == content; });
  };
  const auto add = [&](const std::string& content, int64_t id, bool special) -> AddedToken& {
    if (const auto known = find(content); known != tokens.end()) {
      WEFT_CHECK(known->id == id, "the added token '", printable(content), "' has the ids ", known->id, " and ", id);
      return *known;
    }
    WEFT_CHECK(id >= 0 && id < 1 << 24, "expected an id of 0 to below ", 1 << 24, " for the added token '",
               printable(content), "', got ", id);
    return tokens.emplace_back(AddedToken{.content = content, .id = id, .special = special, .normalized = !special});
  };
  if (says(folder.configuration, "added_tokens_decoder"))
    for (const auto& [key, value] : folder.configuration["added_tokens_decoder"].items()) {
      WEFT_CHECK(!key.empty() && key.size() < 9 && key.find_first_not_of("0123456789") == key.npos,
                 "added_tokens_decoder: expected an id, got '", printable(key), "'");
      take_flags(value, add(content_of(value), std::stol(key), value.value("special", false)));
    }
  for (const auto& [content, id] : folder.added.items())
    add(content, json_integer<int64_t>(id, kAdded), /*special=*/false);
  for (const AddedToken& token : tokens) next = std::max(next, token.id + 1);
  const auto name = [&](const nlohmann::json& value) {  // a special token, with its flags where the file has some
    const std::string content = content_of(value);
    if (content.empty()) return;
    auto known = find(content);
    if (known == tokens.end()) {
      const int64_t id = id_in_vocabulary(content);
      known = tokens.insert(known, {.content = content, .id = id >= 0 ? id : next++, .special = true});
    } else if (!value.is_object() && folder.added.contains(content)) {
      known->special = true;
      known->normalized = false;
    }
    take_flags(value, *known);
  };
  for (const char* key : {"unk_token", "cls_token", "sep_token", "pad_token", "mask_token"})
    if (const nlohmann::json* value = folder.find(key);
        value != nullptr && (value->is_object() || find(content_of(*value)) != tokens.end()))
      name(*value);
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"})
    if (const nlohmann::json* value = folder.find(key))
      for (const nlohmann::json& one : *value) name(one);
  return tokens;
}

/// Errors: a key of tokenizer_config.json asks for what no tokenizer here does.
void check_configuration(const nlohmann::json& json) {
  const auto only = [&](const char* key, const nlohmann::json& known, const char* why) {
    WEFT_CHECK(!says(json, key) || json[key] == known, "expected ", key, " ", known.dump(), ", got ",
               printable(json[key].dump()), ": ", why);
  };
  only("padding_side", "right", "Weft pads after the text");
  only("do_basic_tokenize", true, "Weft parts words before it cuts them");
  only("split_special_tokens", false, "special tokens in a text are themselves");
  WEFT_CHECK(!says(json, "truncation_side") || json["truncation_side"] == "left" || json["truncation_side"] == "right",
             "expected truncation_side \"left\" or \"right\", got ", printable(json["truncation_side"].dump()));
}

/// never_split: words that are kept as they are. Special tokens are such words anyway.
void check_never_split(const nlohmann::json& json, const std::vector<std::string>& special) {
  if (!says(json, "never_split")) return;
  for (const nlohmann::json& word : json["never_split"])
    WEFT_CHECK(std::find(special.begin(), special.end(), content_of(word)) != special.end(),
               "expected never_split of special tokens alone, got ", printable(word.dump()),
               ". Add it as a token: tokenizer.add_tokens");
}

/// tokenizer_class without `Fast`; "": the files say none.
std::string class_of(const Folder& folder) {
  std::string name = value_or<std::string>(folder.configuration, "tokenizer_class", "");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

/// Errors: the class is none of `known`, nor one that leaves all to tokenizer.json.
void check_class(Folder& folder, std::initializer_list<const char*> known) {
  const std::string name = class_of(folder);
  if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return;
  const std::vector<std::string> names(known.begin(), known.end());
  WEFT_CHECK(name == "PreTrainedTokenizer" || name == "TokenizersBackend", "expected tokenizer_class ", joined(names),
             ", got '", printable(name), "'");
  WEFT_CHECK(folder.whole.has_value(), "tokenizer_class '", name, "' needs a ", kWhole);
  folder.generic = true;
  WEFT_CHECK(!folder.whole->first.empty() && !folder.whole->separator.empty(), kWhole,
             ": expected a post_processor that puts one token before a text and one after it, got another");
}

void check_parts(const char* what, const std::vector<std::string>& parts, std::initializer_list<const char*> known) {
  const std::vector<std::string> names(known.begin(), known.end());
  for (const std::string& part : parts)
    WEFT_CHECK(std::find(names.begin(), names.end(), part) != names.end(), kWhole, ": expected ", what, " ",
               names.empty() ? "null" : joined(names), ", got '", printable(part), "'");
}

/// The special tokens and the side of the cut. Names that another file has said, or none, go into
/// tokenizer_config.json.
void take_special(Folder& folder, auto& options) {
  nlohmann::json& json = folder.configuration;
  for (const auto& [key, name] : {std::pair{"unk_token", &options.unknown}, std::pair{"cls_token", &options.first},
                                  std::pair{"sep_token", &options.separator}, std::pair{"pad_token", &options.padding},
                                  std::pair{"mask_token", &options.mask}}) {
    if (const nlohmann::json* const value = folder.find(key)) *name = content_of(*value);
    if (!folder.generic && !json.contains(key)) json[key] = *name;
  }
  options.cuts_front = value_or<std::string>(json, "truncation_side", "right") == "left";
}

std::unique_ptr<data::TextEncoder> read_word_piece(const fs::path& path, const fs::path& vocabulary, Folder& folder,
                                                   nn::BertKind kind) {
  check_class(folder, {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"});
  nlohmann::json& json = folder.configuration;
  data::WordPieceOptions options;
  std::vector<std::string> tokens;
  if (folder.whole) {
    const TokenizerJson& whole = *folder.whole;
    check_parts("normalizer", whole.normalizers, {"BertNormalizer"});
    check_parts("pre_tokenizer", whole.pre_tokenizers, {"BertPreTokenizer"});
    if (!whole.normalizers.empty() || folder.generic)
      options.words = {.lowercase = whole.lowercase,
                       .strip_accents = whole.strip_accents,
                       .parts_ideographs = whole.parts_ideographs && !whole.normalizers.empty(),
                       .cleans_text = whole.cleans_text && !whole.normalizers.empty()};
    tokens = whole.vocabulary;
    options.continuation = whole.continuation;
    if (whole.longest_word > 0) options.longest_word = whole.longest_word;
    if (!whole.unknown.empty()) options.unknown = whole.unknown;
    if (!whole.first.empty()) options.first = whole.first;
    if (!whole.separator.empty()) options.separator = whole.separator;
  }
  if (!vocabulary.empty()) {
    const std::vector<std::string> lines = data::read_vocabulary(vocabulary);
    const size_t common = std::min(lines.size(), tokens.size());
    const auto [a, b] = std::mismatch(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(common), tokens.begin());
    WEFT_CHECK(!folder.whole || b == tokens.begin() + static_cast<ptrdiff_t>(common), vocabulary.filename().string(),
               " and ", kWhole, " do not agree: the token ", a - lines.begin(), " is '", printable(*a), "' and '",
               printable(*b), "'. --vocab names the one that counts");
    if (lines.size() > tokens.size()) tokens = lines;
  }
  if (!folder.generic) {  // there the class leaves all to tokenizer.json
    if (says(json, "do_lower_case")) options.words.lowercase = json["do_lower_case"];
    if (says(json, "strip_accents")) options.words.strip_accents = json["strip_accents"].get<bool>();
    if (says(json, "tokenize_chinese_chars")) options.words.parts_ideographs = json["tokenize_chinese_chars"];
    json["do_lower_case"] = options.words.lowercase;
    json["strip_accents"] =
        options.words.strip_accents ? nlohmann::json(*options.words.strip_accents) : nlohmann::json(nullptr);
    json["tokenize_chinese_chars"] = options.words.parts_ideographs;
  }
  take_special(folder, options);
  const auto id_of = [&](const std::string& token) {
    const auto found = std::find(tokens.begin(), tokens.end(), token);
    return found == tokens.end() ? int64_t{-1} : found - tokens.begin();
  };
  options.added = added_tokens(folder, id_of, static_cast<int64_t>(tokens.size()));
  std::vector<std::string> special{options.unknown, options.first, options.separator, options.padding, options.mask};
  for (const AddedToken& token : options.added) special.push_back(token.content);
  check_never_split(json, special);
  const std::string name = value_or<std::string>(json, "tokenizer_class", "");
  options.marks_second = !name.starts_with("DistilBert") && kind != nn::BertKind::distilbert;
  if (says(json, "model_input_names")) {
    const nlohmann::json& inputs = json["model_input_names"];
    options.marks_second = std::find(inputs.begin(), inputs.end(), "token_type_ids") != inputs.end();
  }
  try {
    return std::make_unique<data::WordPiece>(std::move(tokens), options);
  } catch (const Error& error) {
    fail((vocabulary.empty() ? path / kWhole : vocabulary).string(), ": ", error.what());
  }
}

std::unique_ptr<data::TextEncoder> read_pairs(const fs::path& path, Folder& folder) {
  check_class(folder, {"RobertaTokenizer"});
  nlohmann::json& json = folder.configuration;
  data::RobertaOptions options;
  if (folder.whole) {
    check_parts("normalizer", folder.whole->normalizers, {});
    check_parts("pre_tokenizer", folder.whole->pre_tokenizers, {"ByteLevel"});
    options.adds_prefix_space = folder.whole->adds_prefix_space && !folder.whole->pre_tokenizers.empty();
    if (!folder.whole->first.empty()) options.first = folder.whole->first;
    if (!folder.whole->separator.empty()) options.separator = folder.whole->separator;
  }
  if (!folder.generic) {
    if (says(json, "add_prefix_space")) options.adds_prefix_space = json["add_prefix_space"];
    json["add_prefix_space"] = options.adds_prefix_space;
  }
  take_special(folder, options);
  data::BytePair pairs = data::BytePair::from_folder(path);
  options.added = added_tokens(
      folder, [&](const std::string& token) { return pairs.find(token); }, pairs.size());
  try {
    return std::make_unique<data::RobertaPairs>(std::move(pairs), options);
  } catch (const Error& error) {
    fail(path.string(), ": ", error.what());
  }
}

bool is_unigram(const fs::path& whole) {
  const nlohmann::json json = read_object(whole), model = value_or(json, "model", nlohmann::json::object());
  return value_or<std::string>(model, "type", says(model, "vocab") && model["vocab"].is_array() ? "Unigram" : "") ==
         "Unigram";
}

/// XLM-RoBERTa's and CamemBERT's tokens, of which tokenizer.json says everything: the other files may only agree.
std::unique_ptr<data::TextEncoder> read_unigram(const fs::path& path, const Folder& folder) {
  const std::string name = class_of(folder);
  WEFT_CHECK(name.empty() || name == "XLMRobertaTokenizer" || name == "CamembertTokenizer",
             "expected tokenizer_class XLMRobertaTokenizer or CamembertTokenizer of a unigram model, got '",
             printable(name), "'");
  auto tokens = std::make_unique<data::Unigram>(data::Unigram::from_tokenizer_json(path / kWhole));
  for (const auto& [key, known] : {std::pair{"cls_token", "<s>"}, {"sep_token", "</s>"}, {"pad_token", "<pad>"}}) {
    const nlohmann::json* const value = folder.find(key);
    WEFT_CHECK(value == nullptr || content_of(*value) == known, "expected ", key, " '", known,
               "' of a unigram model, got '", printable(content_of(*value)), "'");
    WEFT_CHECK(tokens->find(known) >= 0, kWhole, ": expected the token '", known, "', got none");
  }
  for (const AddedToken& token : added_tokens(
           folder, [&](const std::string& content) { return tokens->find(content); }, tokens->size()))
    WEFT_CHECK(tokens->find(token.content) == token.id, "the added token '", printable(token.content), "' has the id ",
               token.id, ", in ", kWhole, " ", tokens->find(token.content));
  WEFT_CHECK(value_or<std::string>(folder.configuration, "truncation_side", "right") == "right",
             "expected truncation_side \"right\" of a unigram model, got \"left\"");
  return tokens;
}

}  // namespace

Tokenizer read_tokenizer(const fs::path& path, nn::BertKind kind) {
  const bool pairs = kind == nn::BertKind::roberta, folder_given = fs::is_directory(path);
  const fs::path root = folder_given ? path : path.parent_path();
  const fs::path whole = folder_given || path.filename() == kWhole || pairs ? root / kWhole : fs::path();
  fs::path vocabulary;  // file of word pieces
  if (!pairs && (!folder_given ? path.filename() != kWhole : fs::exists(root / "vocab.txt")))
    vocabulary = folder_given ? root / "vocab.txt" : path;
  const bool whole_there = !whole.empty() && fs::exists(whole);
  WEFT_CHECK(whole_there || !vocabulary.empty() || (pairs && fs::exists(root / "vocab.json")) ||
                 (pairs && fs::exists(root / "encoder.json")),
             "--vocab: there is no ", (root / (pairs ? "vocab.json" : "vocab.txt")).string(), " nor ", kWhole,
             " beside the weights: name the vocabulary");
  Tokenizer result;
  Folder folder;
  const auto named = [&](const char* file, auto&& read) {
    try {
      return read();
    } catch (const nlohmann::json::exception& error) {
      fail((root / file).string(), ": expected a tokenizer of Hugging Face's, got '", printable(error.what()), "'");
    } catch (const Error& error) {
      const std::string message = error.what();
      fail(message.starts_with(root.string()) || message.starts_with("byte pairs") ? "" : root.string() + ": ",
           message);
    }
  };
  folder.configuration = read_object(root / kConfiguration);
  folder.special = read_object(root / kSpecial, &result.files);
  folder.added = read_object(root / kAdded, &result.files);
  const bool unigram = pairs && whole_there && is_unigram(whole);
  if (whole_there && !unigram) {
    folder.whole = data::read_tokenizer_json(whole, pairs ? "BPE" : "WordPiece");
    result.files[kWhole] = read_text(whole, "tokenizer");
  }
  named(kConfiguration, [&] {
    check_configuration(folder.configuration);
    result.encoder = unigram ? read_unigram(root, folder)
                     : pairs ? read_pairs(root, folder)
                             : read_word_piece(root, vocabulary, folder, kind);
    if (says(folder.configuration, "model_max_length")) {
      const double most = folder.configuration["model_max_length"];
      WEFT_CHECK(most >= 3, "expected model_max_length of at least 3, got ", most);
      if (most < 1e9) result.most = static_cast<int64_t>(most);  // else it is Hugging Face's word for no limit
    }
    return true;
  });
  result.configuration = folder.configuration.dump();
  return result;
}

Tokenizer tokenizer_of(std::unique_ptr<data::TextEncoder> encoder, nn::BertKind kind) {
  Tokenizer result;
  const nlohmann::json special{{"cls_token", "[CLS]"},
                               {"mask_token", "[MASK]"},
                               {"pad_token", "[PAD]"},
                               {"sep_token", "[SEP]"},
                               {"unk_token", "[UNK]"}};
  result.files[kSpecial] = special.dump(2) + '\n';
  nlohmann::json configuration = special;
  configuration.update(
      nlohmann::json{{"do_lower_case", true},
                     {"strip_accents", nullptr},
                     {"tokenize_chinese_chars", true},
                     {"tokenizer_class", kind == nn::BertKind::bert ? "BertTokenizer" : "DistilBertTokenizer"}});
  result.configuration = configuration.dump();
  result.encoder = std::move(encoder);
  return result;
}

void save_tokenizer(const fs::path& folder, const Tokenizer& tokenizer, int64_t most) {
  tokenizer.encoder->save(folder);
  for (const auto& [name, text] : tokenizer.files) write_atomically(folder / name, text, "tokenizer");
  nlohmann::json configuration = nlohmann::json::parse(tokenizer.configuration);
  if (!says(configuration, "model_max_length")) configuration["model_max_length"] = most;
  write_atomically(folder / kConfiguration, configuration.dump(2) + '\n', "tokenizer");
}

}  // namespace weft::finetune
