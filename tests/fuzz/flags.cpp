// SPDX-License-Identifier: Apache-2.0
// Input: length of the command line, its words between zero bytes, config.toml. Understood flags must be the same after
// toml() has written and a second program has read them.
#include "apps/support/flags.h"

#include "tests/fuzz/fuzz.h"

using namespace weft;

namespace {

struct Program {
  int64_t epochs = 10;
  double lr = 0.1;
  std::string out = "runs/a", optimizer = "sgd";
  bool quick = false;
  std::vector<double> mean;
  support::Flags flags{"train", "Trains."};

  Program() {
    flags.add("epochs", epochs, "passes", {.min = 1, .max = 1e6});
    flags.add("lr", lr, "learning rate", {.min = 0, .above = true});
    flags.add("out", out, "folder");
    flags.add_choice("optimizer", optimizer, {"sgd", "adamw"}, "how weights are updated");
    flags.add("quick", quick, "fewer steps");
    flags.add("mean", mean, 3, "R,G,B");
  }
};

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  std::vector<std::string> words;
  std::string word;
  for (const uint8_t byte : input.take(input.byte())) {
    if (byte != 0) word += static_cast<char>(byte);
    if (byte == 0) words.push_back(std::move(word)), word.clear();
  }
  if (!word.empty()) words.push_back(word);
  // --help prints, and a --config of the input's own would read any file of this machine.
  std::erase_if(words,
                [](const std::string& w) { return w.starts_with("--c") || w.starts_with("-h") || w == "--help"; });
  words.insert(words.end(), {"--config", folder.write("config.toml", input.rest()).string()});
  fuzz::expect_value_or_error([&] {
    Program first, second;
    if (!first.flags.parse(words)) return;
    const std::string written = first.flags.toml();
    second.flags.parse({"--config", folder.write("written.toml", bytes_of(written)).string()});
    if (second.flags.toml() != written) std::abort();
  });
  return 0;
}
