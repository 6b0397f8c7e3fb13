// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"

namespace weft::tests {

inline Outcome finetune(const std::string& arguments, const TemporaryFolder& folder, const std::string& out = "run") {
  return shell("OMP_WAIT_POLICY=passive " FINETUNE " " + arguments + " --out " + (folder / out));
}

inline void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

inline Outcome finetune_on(int ranks, const std::string& arguments, const TemporaryFolder& folder,
                           const std::string& out) {
  return shell("OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 " WEFT_RUN " --nproc_per_node " + std::to_string(ranks) +
               " " FINETUNE " " + arguments + " --out " + (folder / out));
}

inline Outcome finetune_on_two(const std::string& arguments, const TemporaryFolder& folder, const std::string& out) {
  return finetune_on(2, arguments, folder, out);
}

/// Sentences whose class is one word, in SST-2's layout.
inline void write_sentences(const std::string& folder) {
  const char* const subjects[] = {"the film", "this story", "an actor", "the plot", "her voice"};
  const char* const verbs[] = {"is", "was", "seems", "remains"};
  const char* const words[2][3] = {{"bad", "dull", "awful"}, {"good", "moving", "fine"}};
  std::string train = "sentence\tlabel\n", dev = train;
  int number = 0;
  for (const char* subject : subjects)
    for (const char* verb : verbs)
      for (int label = 0; label < 2; ++label)
        for (const char* word : words[label]) {
          const std::string line = std::string(subject) + ' ' + verb + ' ' + word + '\t' + std::to_string(label) + '\n';
          (number++ % 5 == 4 ? dev : train) += line;
        }
  write(folder + "/train.tsv", train);
  write(folder + "/dev.tsv", dev);
}

}  // namespace weft::tests
