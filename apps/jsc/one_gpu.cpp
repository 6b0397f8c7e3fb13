// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/run.h"

int main(int argc, char** argv) {
  return weft::jsc::run("one_gpu",
                        "Trains ResNet-18 from scratch to tell ants from bees (or the classes of your own folders), on "
                        "one device. Writes image_classification_model.pt and tb_logs/my_model/version_N here.",
                        true, argc, argv);
}
