# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# JUWELS Booster (JSC): nodes of four A100, InfiniBand HDR. Hosts answer on InfiniBand under their name with an i appended;
# Weft knows that from SYSTEMNAME.
module load ${WEFT_MODULES:-Stages/2025 GCC CUDA NCCL OpenMPI HDF5}
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0,1,2,3}   # each task sees all four; LOCAL_RANK picks
export NCCL_IB_TIMEOUT=${NCCL_IB_TIMEOUT:-50}                  # a busy fabric
