// SPDX-License-Identifier: Apache-2.0
#include "data/text/chat_template.h"

#include <algorithm>

#include "core/text.h"
#include "io/file_reader.h"
#include "io/json.h"

namespace weft::data {
namespace {

using OrderedJson = nlohmann::ordered_json;
constexpr std::string_view kBlanks = " \t\r\n";

/// A template, or a list of named ones, of which `default` counts.
std::string source_of(const OrderedJson& value, const std::string& what) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array())
    for (const OrderedJson& one : value) {
      const auto is_text = [&](const char* key) { return one.contains(key) && one[key].is_string(); };
      WEFT_CHECK(one.is_object() && is_text("name") && is_text("template"), what,
                 ": expected objects with a text as their name and template, got ", printable(one.dump(), 80));
      if (one["name"] == "default") return one["template"].get<std::string>();
    }
  fail(what, ": expected a text, or a list with a template named default, got ", value.type_name());
}

void check_messages(const OrderedJson& messages) {
  WEFT_CHECK(messages.is_array() && !messages.empty(), "expected a list of messages, got ",
             printable(messages.dump(), 80));
  for (const OrderedJson& message : messages)
    WEFT_CHECK(message.is_object() && message.contains("role") && message["role"].is_string(),
               "expected a message with a role, got ", printable(message.dump(), 80));
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::from_folder(const std::filesystem::path& folder) {
  const std::filesystem::path own = folder / "chat_template.jinja", file = folder / "tokenizer_config.json";
  OrderedJson config = OrderedJson::object(), tokens = OrderedJson::object();
  if (std::filesystem::exists(file)) {
    const std::string text = read_text(file, "tokenizer");
    check_nesting(text, file.string());
    config = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
    WEFT_CHECK(config.is_object(), file.string(), ": expected an object of JSON");
  }
  for (const auto& [key, value] : config.items()) {
    if (!key.ends_with("_token")) continue;
    if (value.is_string()) tokens[key] = value;
    if (value.is_object() && value.contains("content") && value["content"].is_string()) tokens[key] = value["content"];
  }
  if (std::filesystem::exists(own)) return ChatTemplate(read_text(own, "chat template"), own.string(), tokens);
  if (!config.contains("chat_template") || config["chat_template"].is_null()) return std::nullopt;
  const std::string what = file.string() + ": chat_template";
  return ChatTemplate(source_of(config["chat_template"], what), what, tokens);
}

JinjaTemplate::Rendered ChatTemplate::rendered(const OrderedJson& messages, bool asks, const OrderedJson& tools) const {
  check_messages(messages);
  OrderedJson variables = tokens_;
  variables["messages"] = messages;
  variables["tools"] = tools;
  variables["documents"] = OrderedJson();
  variables["add_generation_prompt"] = asks;
  return template_.render(variables);
}

std::string ChatTemplate::render(const OrderedJson& messages, bool asks, const OrderedJson& tools) const {
  return rendered(messages, asks, tools).text;
}

std::vector<TextPart> ChatTemplate::parts(const OrderedJson& messages, const std::vector<AddedToken>& ends,
                                          const OrderedJson& tools) const {
  const JinjaTemplate::Rendered whole = rendered(messages, false, tools);
  const std::string& text = whole.text;
  std::vector<std::pair<size_t, size_t>> answers = whole.generated;
  OrderedJson before = OrderedJson::array();
  for (const OrderedJson& message : messages) {
    if (!template_.marks_generation() && message["role"] == "assistant") {
      WEFT_CHECK(message.contains("content") && message["content"].is_string(),
                 "expected a text as the assistant's content, got ", printable(message.dump(), 80));
      const std::string prompt = before.empty() ? "" : render(before, true, tools);
      const std::string content = trimmed(message["content"].get<std::string>());
      constexpr const char* kHint = ". `{% generation %}` blocks in the template would mark the assistant's texts";
      WEFT_CHECK(text.starts_with(prompt), what_, ": message ", before.size(),
                 " of the assistant does not follow the text of the messages before it", kHint);
      const size_t begin = std::max(prompt.size(), answers.empty() ? 0 : answers.back().second);
      size_t found = text.find(content, begin);
      WEFT_CHECK(found != std::string::npos, what_, ": the text lacks the content of message ", before.size(), kHint);
      const auto token_at = [&](size_t place) {  // the bytes of the token of `ends` there
        size_t longest = 0;
        for (const AddedToken& token : ends)
          if (text.compare(place, token.content.size(), token.content) == 0)
            longest = std::max(longest, token.content.size());
        return longest;
      };
      const auto after = [&](size_t place) {
        return std::min(text.find_first_not_of(kBlanks, place + content.size()), text.size());
      };
      // A short content may also be in the words of the template: the place with such a token after it counts.
      OrderedJson through = before;
      through.push_back(message);
      const std::string until = content.empty() || ends.empty() ? "" : render(through, false, tools);
      if (text.starts_with(until))
        for (size_t at = found; at != std::string::npos && at + content.size() <= until.size();
             at = text.find(content, at + 1))
          if (token_at(after(at)) > 0) {
            found = at;
            break;
          }
      const size_t next = after(found), longest = token_at(next);
      answers.emplace_back(begin, longest > 0 ? next + longest : found + content.size());
    }
    before.push_back(message);
  }
  std::sort(answers.begin(), answers.end());
  std::vector<TextPart> parts;
  size_t at = 0;
  for (const auto& [begin, end] : answers) {
    if (begin > at) parts.push_back({text.substr(at, begin - at), false});
    if (end > std::max(begin, at)) parts.push_back({text.substr(std::max(begin, at), end - std::max(begin, at)), true});
    at = std::max(at, end);
  }
  if (at < text.size()) parts.push_back({text.substr(at), false});
  return parts;
}

}  // namespace weft::data
