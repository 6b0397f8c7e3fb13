// SPDX-License-Identifier: Apache-2.0
// Input: which file of Hugging Face's folders (config.json of a BERT or a GPT-2, trainer_state.json), the file.
#include "apps/finetune/configuration.h"
#include "apps/finetune/trainer_state.h"
#include "apps/gpt/gpt_files.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

namespace {

constexpr int64_t kMost = 1 << 24;

void expect_sizes(std::initializer_list<int64_t> sizes) {
  for (const int64_t size : sizes)
    if (size < 1 || size > kMost) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  const int kind = input.byte() % 3;
  const auto file = folder.write("config.json", input.rest());
  fuzz::expect_value_or_error([&] {
    if (kind == 0) {
      const nn::BertOptions o = finetune::read_configuration(folder.path(), {}, /*with_dropout=*/true).sizes;
      expect_sizes({o.width, o.depth, o.heads, o.hidden, o.positions, o.token_types + 1});  // DistilBERT has none
    } else if (kind == 1) {
      const nn::GptOptions o = gpt::read_gpt_config(folder.path()).sizes;
      expect_sizes({o.vocabulary, o.positions, o.width, o.depth, o.heads});
    } else {
      const finetune::TrainerState state = finetune::read_trainer_state(file);
      finetune::write_trainer_state(file, state, {});
      const finetune::TrainerState again = finetune::read_trainer_state(file);
      if (again.step != state.step || again.history != state.history) std::abort();
    }
  });
  return 0;
}
