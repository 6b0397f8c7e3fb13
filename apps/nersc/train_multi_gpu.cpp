// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc/trainer.h"

int main(int argc, char** argv) { return weft::nersc::train(argc, argv, /*several=*/true); }
