// SPDX-License-Identifier: Apache-2.0
#include "data/text/tokenizer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/file_reader.h"
#include "io/json.h"

namespace weft::data {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostTokenIds = 1 << 24;  // an id is an index

/// The value of a key that may be missing or null.
template <class T>
T value_or(const Json& json, const char* key, T other) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? other : found->get<T>();
}

/// A part of the pipeline, or the parts of a Sequence, whose list is called `parts`.
std::vector<Json> parts_of(const Json& json, const char* key, const char* parts) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return {};
  if (found->at("type") != "Sequence") return {*found};
  return found->at(parts).get<std::vector<Json>>();
}

int64_t id_of(const Json& value, const std::string& token) {
  const auto id = json_integer<int64_t>(value, "the id of '" + token + "'");
  WEFT_CHECK(id >= 0 && id < kMostTokenIds, "expected an id below ", kMostTokenIds, " for '", printable(token),
             "', got ", id);
  return id;
}

std::vector<std::string> vocabulary_of(const Json& json) {
  std::vector<std::string> tokens;
  for (const auto& [token, value] : json.items()) {
    const auto id = static_cast<size_t>(id_of(value, token));
    if (tokens.size() <= id) tokens.resize(id + 1);
    WEFT_CHECK(tokens[id].empty(), "the id ", id, " is both of '", printable(tokens[id]), "' and of '",
               printable(token), "'");
    tokens[id] = token;
  }
  return tokens;
}

/// Two tokens: a list, or before tokenizers 0.20 a string with a space between them.
std::pair<std::string, std::string> merge_of(const Json& json) {
  if (json.is_array() && json.size() == 2) return {json[0].get<std::string>(), json[1].get<std::string>()};
  const std::string text = json.is_string() ? json.get<std::string>() : "";
  const size_t space = text.find(' ');
  WEFT_CHECK(space != std::string::npos && text.find(' ', space + 1) == std::string::npos,
             "expected a merge of two tokens, got ", printable(json.dump()));
  return {text.substr(0, space), text.substr(space + 1)};
}

void take_normalizer(const Json& one, TokenizerJson& result) {
  const std::string type = one.at("type");
  result.normalizers.push_back(type);
  if (type == "Lowercase") result.lowercase = true;
  if (type == "StripAccents") result.strip_accents = true;
  if (type != "BertNormalizer") return;
  result.lowercase = value_or(one, "lowercase", true);
  if (one.contains("strip_accents") && !one["strip_accents"].is_null()) result.strip_accents = one["strip_accents"];
  result.parts_ideographs = value_or(one, "handle_chinese_chars", true);
  result.cleans_text = value_or(one, "clean_text", true);
}

/// `[CLS] $A [SEP]`, in whichever of the three ways it is written.
void take_post_processor(const Json& one, TokenizerJson& result) {
  const std::string type = one.at("type");
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    result.first = one.at("cls").at(0);
    result.separator = one.at("sep").at(0);
  } else if (type == "TemplateProcessing") {
    const Json& single = one.at("single");
    std::string parts;  // `sAs`: a special token before the text and another after it
    for (const Json& part : single) parts += part.contains("SpecialToken") ? 's' : 'A';
    if (parts == "sA") result.begin = single[0]["SpecialToken"].at("id");
    if (parts == "sAs") result.first = single[0]["SpecialToken"].at("id");
    if (parts == "sAs") result.separator = single[2]["SpecialToken"].at("id");
    result.is_other_template = parts != "A" && parts != "sA" && parts != "As" && parts != "sAs";
  }
}

/// The parts of Llama-2's and Mistral's tokenizers that make and remove `▁`.
void take_metaspace(const Json& json, TokenizerJson& result) {
  const auto replace = [](const char* from, const char* to) {
    return Json{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  const std::vector<Json> normalizers = parts_of(json, "normalizer", "normalizers"),
                          cuts = parts_of(json, "pre_tokenizer", "pretokenizers");
  std::vector<Json> decoders = parts_of(json, "decoder", "decoders");
  if (cuts.empty() && normalizers == std::vector{Json{{"type", "Prepend"}, {"prepend", "▁"}}, replace(" ", "▁")})
    result.metaspace = Metaspace::prepend;
  if (normalizers.empty() && cuts.size() == 1 && cuts[0].at("type") == "Metaspace" &&
      !value_or(cuts[0], "split", true) && value_or<std::string>(cuts[0], "replacement", "▁") == "▁")
    result.metaspace = metaspace_named(value_or<std::string>(
        cuts[0], "prepend_scheme", value_or(cuts[0], "add_prefix_space", true) ? "always" : "never"));
  result.strips_space =
      !decoders.empty() && decoders.back() == Json{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  if (result.strips_space) decoders.pop_back();
  result.decodes_metaspace =
      decoders == std::vector{replace("▁", " "), Json{{"type", "ByteFallback"}}, Json{{"type", "Fuse"}}};
}

TokenizerJson parsed(const Json& json, const std::string& wanted) {
  TokenizerJson result;
  const Json& model = json.at("model");
  result.type = value_or<std::string>(model, "type", model.contains("merges") ? "BPE" : "WordPiece");
  WEFT_CHECK(result.type == wanted, "expected a model of type ", wanted, ", got '", printable(result.type), "'");
  result.vocabulary = vocabulary_of(model.at("vocab"));
  if (wanted == "BPE")
    for (const Json& merge : model.at("merges").get<std::vector<Json>>()) result.merges.push_back(merge_of(merge));
  result.unknown = value_or<std::string>(model, "unk_token", "");
  result.continuation = value_or<std::string>(model, "continuing_subword_prefix", wanted == "WordPiece" ? "##" : "");
  result.word_end = value_or<std::string>(model, "end_of_word_suffix", "");
  if (const auto most = model.find("max_input_chars_per_word"); most != model.end())
    result.longest_word = json_integer<int64_t>(*most, "max_input_chars_per_word");
  result.byte_fallback = value_or(model, "byte_fallback", false);
  result.ignores_merges = value_or(model, "ignore_merges", false);
  result.dropout = value_or(model, "dropout", 0.0);
  for (const Json& one : value_or(json, "added_tokens", Json::array())) {
    AddedToken token{.content = one.at("content")};
    token.id = id_of(one.at("id"), token.content);
    token.special = value_or(one, "special", false);
    token.normalized = value_or(one, "normalized", !token.special);
    token.lstrip = value_or(one, "lstrip", false);
    token.rstrip = value_or(one, "rstrip", false);
    token.single_word = value_or(one, "single_word", false);
    result.added.push_back(std::move(token));
  }
  std::stable_sort(result.added.begin(), result.added.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  for (const Json& one : parts_of(json, "normalizer", "normalizers")) take_normalizer(one, result);
  for (const Json& one : parts_of(json, "pre_tokenizer", "pretokenizers")) {
    result.pre_tokenizers.push_back(one.at("type"));
    if (result.pre_tokenizers.back() == "Split" && value_or<std::string>(one, "behavior", "") == "Isolated" &&
        !value_or(one, "invert", false))
      result.pattern = value_or<std::string>(one.at("pattern"), "Regex", "");
    if (result.pre_tokenizers.back() == "Digits") result.parts_digits = value_or(one, "individual_digits", false);
    if (result.pre_tokenizers.back() != "ByteLevel") continue;
    result.adds_prefix_space = value_or(one, "add_prefix_space", true);
    result.uses_pattern = value_or(one, "use_regex", true);
  }
  take_metaspace(json, result);
  for (const Json& one : parts_of(json, "post_processor", "processors")) take_post_processor(one, result);
  return result;
}

}  // namespace

TokenizerJson read_tokenizer_json(const std::filesystem::path& path, const std::string& type) {
  const std::string text = read_text(path, "tokenizer");
  check_nesting(text, path.string());
  try {
    return parsed(Json::parse(text), type);
  } catch (const Json::exception& error) {
    fail(path.string(), ": expected a tokenizer of Hugging Face's tokenizers, got '", printable(error.what()), "'");
  } catch (const Error& error) {
    fail(path.string(), ": ", error.what());
  }
}

}  // namespace weft::data
