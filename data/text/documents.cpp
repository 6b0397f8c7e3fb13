// SPDX-License-Identifier: Apache-2.0
#include "data/text/documents.h"

#include <algorithm>
#include <map>

#include "core/text.h"
#include "io/json.h"

namespace weft::data {
namespace {

using OrderedJson = nlohmann::ordered_json;
constexpr int64_t kNotTrained = -100;  // cross_entropy()'s ignore_index

bool holds_texts(const OrderedJson& line, std::initializer_list<const char*> keys) {
  return line.is_object() && std::all_of(keys.begin(), keys.end(),
                                         [&](const char* key) { return line.contains(key) && line[key].is_string(); });
}

/// Calls `each` with the lines that are not empty and their numbers, until it returns false.
void each_line(std::string_view bytes, auto&& each) {
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  for (int64_t line = 1; !bytes.empty(); ++line) {
    const std::string_view row = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(row.size() + 1, bytes.size()));
    if (row.find_first_not_of(" \t\r") != std::string_view::npos && !each(line, row)) return;
  }
}

/// Null: no JSON, or one that nests too deep. NaN and Infinity, as Python writes them, are null.
OrderedJson json_of(std::string_view row) {
  if (json_nesting(row) > 64) return {};
  return OrderedJson::parse(standard_json(row), nullptr, /*allow_exceptions=*/false);
}

OrderedJson object_of(std::string_view row) {
  row.remove_prefix(std::min(row.find_first_not_of(" \t"), row.size()));
  return row.starts_with('{') ? json_of(row) : OrderedJson();
}

}  // namespace

JsonLines kind_of_json_lines(std::string_view bytes) {
  JsonLines kind = JsonLines::none;
  each_line(bytes, [&](int64_t, std::string_view row) {
    const OrderedJson line = object_of(row);
    if (line.is_object() && (line.contains("messages") || holds_texts(line, {"prompt", "completion"})))
      kind = JsonLines::examples;
    else if (holds_texts(line, {"text"}))
      kind = JsonLines::texts;
    return false;
  });
  return kind;
}

void refuse_other_json(std::string_view bytes, const std::filesystem::path& file, const std::string& what) {
  const std::string ending = file.extension().string();
  if (ending == ".txt") return;
  std::string got;
  each_line(bytes, [&](int64_t, std::string_view row) {
    const OrderedJson line = row.starts_with('{') || row.starts_with('[') ? json_of(row) : OrderedJson();
    if (line.is_array() && !line.empty() && line.front().is_object()) got = "a list of objects";
    if (line.is_object() && !line.empty()) {
      std::vector<std::string> keys;
      for (const auto& [key, value] : line.items()) keys.push_back(key);
      got = "an object of " + printable(joined(keys, 20));
    }
    return false;
  });
  if (got.empty() && ending != ".json" && ending != ".jsonl" && ending != ".ndjson") return;
  fail(what, ": expected JSON lines: a text, a prompt and a completion (two texts), or messages in each, got ",
       got.empty() ? "another first line" : got, ". A name that ends in .txt makes a text of any file");
}

std::optional<std::vector<TextExample>> text_examples(std::string_view bytes, const std::string& what,
                                                      const ChatTemplate* chat, const std::vector<AddedToken>& ends) {
  std::vector<TextExample> examples;
  bool none = false;
  each_line(bytes, [&](int64_t number, std::string_view row) {
    const OrderedJson line = object_of(row);
    const std::string where = str(what, ": line ", number);
    if (line.is_object() && line.contains("messages")) {
      WEFT_CHECK(chat, where,
                 ": expected a tokenizer with a chat template for messages (chat_template.jinja, or "
                 "chat_template in tokenizer_config.json), got none");
      try {
        examples.push_back(
            {chat->parts(line["messages"], ends, line.contains("tools") ? line["tools"] : OrderedJson()), true});
      } catch (const Error& error) {
        fail(where, ": ", error.what());
      }
    } else if (holds_texts(line, {"prompt", "completion"})) {
      examples.push_back({{{line["prompt"].get<std::string>(), false}, {line["completion"].get<std::string>(), true}}});
    } else if (holds_texts(line, {"text"})) {
      examples.push_back({{{line["text"].get<std::string>(), true}}});
    } else {
      none = examples.empty();
      WEFT_CHECK(none, where,
                 ": expected an object with messages, with a prompt and a completion, or with a text, got ",
                 printable(row, 80));
      return false;
    }
    return true;
  });
  if (none || examples.empty()) return std::nullopt;
  return examples;
}

TokenDocument encode_example(const TextExample& example, const BytePair& tokenizer, int64_t end, bool all) {
  TokenDocument document;
  const auto add = [&](int64_t token, bool trained) {
    document.tokens.push_back(token);
    document.trained.push_back(trained || (all && document.tokens.size() > 1));
  };
  if (!example.conversation && tokenizer.begin_of_text() >= 0) add(tokenizer.begin_of_text(), false);
  std::string before;
  for (const TextPart& part : example.parts) {
    for (const int64_t token : tokenizer.encode(part.text, before)) add(token, part.answer);
    before += part.text;
  }
  if (!example.conversation && end >= 0) add(end, true);
  return document;
}

DocumentRows::DocumentRows(std::vector<TokenDocument> documents, int64_t length, Fill fill)
    : documents_(std::move(documents)), length_(length), fill_(fill) {
  WEFT_CHECK(length > 0, "document rows: expected a positive length, got ", length);
  std::vector<size_t> order;
  for (size_t i = 0; i < documents_.size(); ++i) {
    TokenDocument& document = documents_[i];
    const auto most = static_cast<size_t>(length) + 1;
    const bool longer = document.tokens.size() > most;
    if (longer) document.tokens.resize(most), document.trained.resize(most);
    const auto trained =
        document.tokens.empty() ? 0 : std::count(document.trained.begin() + 1, document.trained.end(), true);
    if (trained == 0) {
      ++left_out_;
      continue;
    }
    cut_ += longer;
    trained_ += trained;
    tokens_ += static_cast<int64_t>(document.tokens.size());
    order.push_back(i);
  }
  WEFT_CHECK(!order.empty(), "expected documents with tokens to train, got none in ", documents_.size(), " of at most ",
             length + 1, " tokens. Longer ones lose their ends: longer rows may hold their answers");
  if (fill == Fill::single) {
    for (const size_t i : order) rows_.push_back({i});
    return;
  }
  const auto inputs = [&](size_t i) { return static_cast<int64_t>(documents_[i].tokens.size()) - 1; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return inputs(a) > inputs(b); });
  std::multimap<int64_t, size_t> rooms;  // rows by their room
  for (const size_t i : order) {
    const auto found = rooms.lower_bound(inputs(i));
    size_t row = rows_.size();
    int64_t room = length;
    if (found == rooms.end()) {
      rows_.emplace_back();
    } else {
      room = found->first, row = found->second;
      rooms.erase(found);
    }
    rows_[row].push_back(i);
    if (room > inputs(i)) rooms.emplace(room - inputs(i), row);
  }
}

std::tuple<Tensor, Tensor> DocumentRows::get(int64_t index) const {
  WEFT_CHECK(index >= 0 && index < size(), "document rows: expected an index below ", size(), ", got ", index);
  const auto count = static_cast<size_t>(length_);
  std::vector<int64_t> ids, starts, next;
  for (const size_t i : rows_[static_cast<size_t>(index)]) {
    const TokenDocument& document = documents_[i];
    const auto start = static_cast<int64_t>(ids.size());
    for (size_t t = 0; t + 1 < document.tokens.size(); ++t) {
      ids.push_back(document.tokens[t]);
      starts.push_back(start);
      next.push_back(document.trained[t + 1] ? document.tokens[t + 1] : kNotTrained);
    }
  }
  const auto pad = static_cast<int64_t>(ids.size());  // the padding is a document without training
  ids.resize(count, 0), next.resize(count, kNotTrained), starts.resize(count, pad);
  if (fill_ == Fill::single) return {Tensor::from(ids), Tensor::from(next)};
  ids.insert(ids.end(), starts.begin(), starts.end());
  return {Tensor::from(ids, {2, length_}), Tensor::from(next)};
}

}  // namespace weft::data
