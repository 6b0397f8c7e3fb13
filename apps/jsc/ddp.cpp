// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/run.h"

int main(int argc, char** argv) {
  return weft::jsc::run(
      "ddp",
      "Trains what one_gpu trains on all ranks that the launcher has started (`srun ddp`; mpirun, "
      "weft-run and torchrun's variables do too): each rank sees its part of the images, gradients "
      "are averaged. Rank 0 writes image_classification_model.pt and tb_logs/my_model/version_N here.",
      false, argc, argv);
}
