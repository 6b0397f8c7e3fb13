// SPDX-License-Identifier: Apache-2.0
// Writes text with a trained GPT; see docs/gpt.md.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/gpt/gpt_files.h"
#include "apps/support/flags.h"
#include "core/autocast.h"
#include "core/choose_device.h"
#include "core/random.h"
#include "core/text.h"
#include "data/text/chat_template.h"
#include "io/file_reader.h"
#include "io/json.h"
#include "train/engine.h"
#include "train/exit.h"

namespace weft::gpt {
namespace {

using Json = nlohmann::ordered_json;

struct SampleOptions {
  std::string weights = "gpt-run", tokenizer = "auto", prompt_file, system, precision = "f32", device = "auto";
  std::vector<std::string> prompts, stops;
  int64_t samples = 1, tokens = 200, top_k = 0, seed = 1337, batch_size = 16;
  double temperature = 1, top_p = 1;
  bool chat = false;
};

bool parse(int argc, char** argv, SampleOptions& o) {
  support::Flags flags("sample_gpt", "Writes text with a trained GPT.");
  flags.add("weights", o.weights,
            "the folder of a run of train_gpt, or one under Hugging Face's names (config.json, model.safetensors, "
            "tokenizer.json, or vocab.json and merges.txt), or nanoGPT's ckpt.pt");
  flags.add("tokenizer", o.tokenizer, "the tokenizer's folder; auto: the folder of the weights");
  flags.add_texts("prompt", o.prompts,
                  "what a text begins with; several flags: several texts; default: the token that begins a text, or a "
                  "new line");
  flags.add("prompt-file", o.prompt_file,
            "a file with a prompt in each line, as it is or as JSON: {\"prompt\": …} or {\"messages\": […]}");
  flags.add("batch-size", o.batch_size, "prompts that are continued together", {.min = 1, .max = 1e6});
  flags.add("chat", o.chat,
            "prompts are a user's messages, which the tokenizer's chat template writes; without a prompt: the lines of "
            "the standard input, one conversation");
  flags.add_text("system", o.system, "the system's message before them");
  flags.add("samples", o.samples, "texts", {.min = 1, .max = 1e6});
  flags.add("tokens", o.tokens, "of each text, after the prompt", {.min = 1, .max = 1e9});
  flags.add_texts("stop", o.stops, "a text ends before this one, which may be a special token; several: the first");
  flags.add("temperature", o.temperature, "below 1 likely tokens are drawn more often; 0: the likeliest always",
            {.min = 0, .max = 1e6});
  flags.add("top-k", o.top_k, "only so many of the likeliest tokens; 0: all", {.min = 0});
  flags.add("top-p", o.top_p, "only the likeliest tokens whose shares reach this sum; 1: all",
            {.min = 0, .max = 1, .above = true});
  flags.add("seed", o.seed, "of the draws: one seed gives one text; sample i has the seed + i", {.min = 0});
  flags.add_choice("precision", o.precision, {"f32", "bf16"}, "bf16: products in bf16");
  flags.add_device(o.device);
  flags.example("sample_gpt --weights gpt-run --prompt ROMEO: --tokens 300");
  flags.example("sample_gpt --weights gpt2 --prompt 'Once upon a time' --top-k 40 --temperature 0.8 --samples 3");
  flags.example("sample_gpt --weights SmolLM2-135M-Instruct --chat --prompt 'What is a weft?' --temperature 0");
  if (!flags.parse(argc, argv)) return false;
  if (!o.system.empty() && !o.chat) throw train::UsageError("--system: expected --chat");
  if (!o.prompts.empty() && !o.prompt_file.empty())
    throw train::UsageError("--prompt-file: expected no --prompt beside it");
  if (std::find(o.stops.begin(), o.stops.end(), "") != o.stops.end())
    throw train::UsageError("--stop: expected a text, got an empty one");
  return true;
}

/// A text that grows by tokens until a stop text is in it.
struct Growing {
  std::string text;
  size_t printed = 0;
  bool begun = false, ended = false;

  /// False: the text has ended.
  bool add(const std::string& more, const std::vector<std::string>& stops) {
    const size_t before = text.size();
    text += more;
    size_t end = std::string::npos;
    for (const std::string& stop : stops)
      end = std::min(end, text.find(stop, before - std::min(before, stop.size() - 1)));
    ended = end != std::string::npos;
    if (ended) text.resize(end);
    return !ended;
  }
  /// The text that is no part of a stop text.
  std::string fresh(const std::vector<std::string>& stops, bool all) {
    size_t kept = 0;  // the longest beginning of a stop text at the end
    for (const std::string& stop : stops)
      for (size_t n = 1; !all && !ended && n < stop.size() && n <= text.size(); ++n)
        if (text.ends_with(stop.substr(0, n))) kept = std::max(kept, n);
    const size_t from = std::min(printed, text.size());
    printed = std::max(from, text.size() - kept);
    return text.substr(from, printed - from);
  }
};

/// A text to be continued, and its tokens; `shown` is printed first.
struct Prompt {
  std::string shown;
  std::vector<int64_t> tokens;
};

struct Sampler {
  const SampleOptions& o;
  std::filesystem::path folder = model_folder(o.weights);
  const nn::SkipInit loaded_below{};
  const GptConfig config = read_gpt_config(folder);
  const data::BytePair tokenizer = read_tokenizer(o.tokenizer, folder);
  std::optional<data::ChatTemplate> chat{};
  std::shared_ptr<nn::LanguageModel> model{};
  nn::GenerateOptions how{};

  explicit Sampler(const SampleOptions& options) : o(options) {
    require_room(tokenizer, config);
    const std::filesystem::path of_tokenizer = o.tokenizer == "auto" ? folder : model_folder(o.tokenizer);
    if (std::filesystem::is_directory(of_tokenizer)) chat = data::ChatTemplate::from_folder(of_tokenizer);
    if (o.chat) require_template();
    model = make_language_model(config);
    load_gpt(*model, folder);
    model->to(choose_device(o.device));
    model->eval();
    how = {.tokens = o.tokens,
           .temperature = o.temperature,
           .top_k = o.top_k,
           .end = config.end.value_or(of_text()),
           .below = tokenizer.size(),
           .top_p = o.top_p};
    const int64_t end = chat ? tokenizer.find(chat->end_token()) : -1;
    if (end >= 0 && !chat->end_token().empty()) how.end.push_back(end);
  }
  void require_template() const {
    WEFT_CHECK(chat,
               "--chat and messages: expected a tokenizer with a chat template (chat_template.jinja, or "
               "chat_template in tokenizer_config.json), got none");
  }
  std::vector<int64_t> of_text() const {
    return std::vector<int64_t>(tokenizer.end_of_text() < 0 ? 0 : 1, tokenizer.end_of_text());
  }

  Prompt plain(const std::string& text) const {
    std::vector<int64_t> tokens = tokenizer.encode(text);
    if (!tokens.empty() && tokenizer.begin_of_text() >= 0) tokens.insert(tokens.begin(), tokenizer.begin_of_text());
    if (tokens.empty() && config.begin && *config.begin >= 0 && *config.begin < tokenizer.size())
      tokens = {*config.begin};
    if (tokens.empty()) tokens = of_text().empty() ? tokenizer.encode("\n") : of_text();
    return {text, std::move(tokens)};
  }
  Prompt asking(const Json& messages, const Json& tools = {}) const {
    require_template();
    return {"", tokenizer.encode(chat->render(messages, true, tools))};
  }
  Json conversation() const {
    return o.system.empty() ? Json::array() : Json::array({{{"role", "system"}, {"content", o.system}}});
  }
  Prompt of_user(const std::string& text) const {
    if (!o.chat) return plain(text);
    Json messages = conversation();
    messages.push_back({{"role", "user"}, {"content", text}});
    return asking(messages);
  }

  std::vector<Prompt> prompts() const {
    std::vector<Prompt> all;
    for (const std::string& text : o.prompts) all.push_back(of_user(text));
    if (o.prompt_file.empty()) {
      try {
        if (all.empty()) all.push_back(plain(""));
      } catch (const Error&) {
        fail("--prompt: expected what the text begins with; the tokens of ", o.weights,
             " have no line break, with which it begins otherwise");
      }
      return all;
    }
    const std::vector<std::string> lines = read_lines(o.prompt_file);
    for (size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].empty()) continue;
      const Json line = lines[i].starts_with('{') && json_nesting(lines[i]) <= 64
                            ? Json::parse(lines[i], nullptr, /*allow_exceptions=*/false)
                            : Json();
      if (!line.is_object()) {
        all.push_back(of_user(lines[i]));
        continue;
      }
      try {
        if (line.contains("messages")) {
          all.push_back(asking(line["messages"], line.contains("tools") ? line["tools"] : Json()));
          continue;
        }
        WEFT_CHECK(line.contains("prompt") && line["prompt"].is_string(),
                   "expected a text, or an object with a prompt or messages, got ", printable(lines[i], 80));
        all.push_back(of_user(line["prompt"].get<std::string>()));
      } catch (const Error& error) {
        fail("--prompt-file ", o.prompt_file, ": line ", i + 1, ": ", error.what());
      }
    }
    WEFT_CHECK(!all.empty(), "--prompt-file ", o.prompt_file, ": expected a prompt in each line, got none");
    return all;
  }

  /// Continues the prompts; `prints`: the text appears while it grows.
  std::vector<std::string> write(const std::vector<Prompt>& some, int64_t sample, bool prints) const {
    manual_seed(static_cast<uint64_t>(o.seed + sample));
    std::vector<Growing> texts(some.size());
    std::vector<std::vector<int64_t>> ids;
    for (size_t i = 0; i < some.size(); ++i) {
      ids.push_back(some[i].tokens);
      texts[i].begun = !some[i].shown.empty();
    }
    nn::generate_batch(*model, ids, how, [&](size_t i, int64_t token) {
      const bool continues = std::exchange(texts[i].begun, true);
      const bool goes_on = texts[i].add(tokenizer.decode({&token, 1}, continues), o.stops);
      if (prints) std::cout << texts[i].fresh(o.stops, false) << std::flush;
      return goes_on;
    });
    std::vector<std::string> results;
    for (Growing& growing : texts) {
      if (prints) std::cout << growing.fresh(o.stops, true);
      results.push_back(growing.text);
    }
    return results;
  }

  /// A conversation on the standard input, a message a line.
  void talk() const {
    Json messages = conversation();
    for (std::string line; std::getline(std::cin, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (line.empty()) continue;
      messages.push_back({{"role", "user"}, {"content", line}});
      const std::string answer = write({asking(messages)}, 0, true)[0];
      std::cout << std::endl;
      messages.push_back({{"role", "assistant"}, {"content", answer}});
    }
  }
};

int run(int argc, char** argv) {
  SampleOptions o;
  if (!parse(argc, argv, o)) return train::kExitOk;
  const Sampler sampler(o);
  const Autocast low(train::precision_named(o.precision));
  if (o.chat && o.prompts.empty() && o.prompt_file.empty()) {
    sampler.talk();
    return train::kExitOk;
  }
  const std::vector<Prompt> prompts = sampler.prompts();
  bool first = true;
  const auto begin = [&](const Prompt& prompt) {
    if (!first) std::cout << "---------------\n";
    first = false;
    std::cout << prompt.shown;
  };
  for (int64_t i = 0; i < o.samples; ++i)
    for (size_t at = 0; at < prompts.size(); at += static_cast<size_t>(o.batch_size)) {
      const size_t end = std::min(prompts.size(), at + static_cast<size_t>(o.batch_size));
      const std::vector<Prompt> some(prompts.begin() + static_cast<std::ptrdiff_t>(at),
                                     prompts.begin() + static_cast<std::ptrdiff_t>(end));
      if (some.size() == 1) {
        begin(some[0]);
        sampler.write(some, i, true);
        std::cout << std::endl;
        continue;
      }
      const std::vector<std::string> texts = sampler.write(some, i, false);
      for (size_t j = 0; j < some.size(); ++j) {
        begin(some[j]);
        std::cout << texts[j] << std::endl;
      }
    }
  return train::kExitOk;
}

}  // namespace
}  // namespace weft::gpt

int main(int argc, char** argv) {
  return weft::train::guarded_main("sample_gpt", [&] { return weft::gpt::run(argc, argv); });
}
