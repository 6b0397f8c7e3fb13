# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Any cluster with Slurm. Load here what the program was built with, or give the names: WEFT_MODULES="gcc/13 cuda/13 openmpi".
for module in ${WEFT_MODULES:-}; do module load "$module"; done
