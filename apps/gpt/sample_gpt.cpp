// SPDX-License-Identifier: Apache-2.0
// Writes text with a trained GPT; see docs/gpt.md.
#include <iostream>

#include "apps/gpt/gpt_files.h"
#include "apps/support/flags.h"
#include "core/autocast.h"
#include "core/choose_device.h"
#include "core/random.h"
#include "train/engine.h"
#include "train/exit.h"

namespace weft::gpt {
namespace {

struct SampleOptions {
  std::string weights = "gpt-run", tokenizer = "auto", prompt, precision = "f32", device = "auto";
  int64_t samples = 1, tokens = 200, top_k = 0, seed = 1337;
  double temperature = 1, top_p = 1;
};

bool parse(int argc, char** argv, SampleOptions& o) {
  support::Flags flags("sample_gpt", "Writes text with a trained GPT.");
  flags.add("weights", o.weights,
            "the folder of a run of train_gpt, or one under Hugging Face's names (config.json, model.safetensors, "
            "tokenizer.json, or vocab.json and merges.txt), or nanoGPT's ckpt.pt");
  flags.add("tokenizer", o.tokenizer, "the tokenizer's folder; auto: the folder of the weights");
  flags.add_text("prompt", o.prompt, "what the text begins with; default: the token that begins a text, or a new line");
  flags.add("samples", o.samples, "texts", {.min = 1, .max = 1e6});
  flags.add("tokens", o.tokens, "of each text, after the prompt", {.min = 1, .max = 1e9});
  flags.add("temperature", o.temperature, "below 1 likely tokens are drawn more often; 0: the likeliest always",
            {.min = 0, .max = 1e6});
  flags.add("top-k", o.top_k, "only so many of the likeliest tokens; 0: all", {.min = 0});
  flags.add("top-p", o.top_p, "only the likeliest tokens whose shares reach this sum; 1: all",
            {.min = 0, .max = 1, .above = true});
  flags.add("seed", o.seed, "of the draws: one seed gives one text", {.min = 0});
  flags.add_choice("precision", o.precision, {"f32", "bf16"}, "bf16: products in bf16");
  flags.add_device(o.device);
  flags.example("sample_gpt --weights gpt-run --prompt ROMEO: --tokens 300");
  flags.example("sample_gpt --weights gpt2 --prompt 'Once upon a time' --top-k 40 --temperature 0.8 --samples 3");
  return flags.parse(argc, argv);
}

int run(int argc, char** argv) {
  SampleOptions o;
  if (!parse(argc, argv, o)) return train::kExitOk;
  const std::filesystem::path folder = model_folder(o.weights);
  const nn::SkipInit loaded_below;
  const GptConfig config = read_gpt_config(folder);
  const data::BytePair tokenizer = read_tokenizer(o.tokenizer, folder);
  require_room(tokenizer, config);
  const auto model = make_language_model(config);
  load_gpt(*model, folder);
  model->to(choose_device(o.device));
  model->eval();
  const std::vector<int64_t> of_text(tokenizer.end_of_text() < 0 ? 0 : 1, tokenizer.end_of_text());
  std::vector<int64_t> prompt = tokenizer.encode(o.prompt);
  if (!prompt.empty() && tokenizer.begin_of_text() >= 0) prompt.insert(prompt.begin(), tokenizer.begin_of_text());
  if (prompt.empty() && config.begin && *config.begin >= 0 && *config.begin < tokenizer.size())
    prompt = {*config.begin};
  if (prompt.empty()) prompt = of_text.empty() ? tokenizer.encode("\n") : of_text;
  manual_seed(static_cast<uint64_t>(o.seed));
  const Autocast low(train::precision_named(o.precision));
  for (int64_t i = 0; i < o.samples; ++i) {
    if (i > 0) std::cout << "---------------\n";
    std::cout << o.prompt;
    nn::generate(*model, prompt,
                 {.tokens = o.tokens,
                  .temperature = o.temperature,
                  .top_k = o.top_k,
                  .end = config.end.value_or(of_text),
                  .below = tokenizer.size(),
                  .top_p = o.top_p},
                 [&](int64_t token) {
                   std::cout << tokenizer.decode({&token, 1}) << std::flush;
                 });
    std::cout << std::endl;
  }
  return train::kExitOk;
}

}  // namespace
}  // namespace weft::gpt

int main(int argc, char** argv) {
  return weft::train::guarded_main("sample_gpt", [&] { return weft::gpt::run(argc, argv); });
}
