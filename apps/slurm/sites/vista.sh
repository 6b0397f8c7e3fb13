# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Vista (TACC): GH200 nodes, one GPU each, aarch64, InfiniBand NDR. Ranks are started by MPI.
module load ${WEFT_MODULES:-gcc/15.1.0 cuda openmpi}
export WEFT_LAUNCHER=${WEFT_LAUNCHER:-mpirun}
