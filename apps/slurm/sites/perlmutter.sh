# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Perlmutter (NERSC): nodes of four A100, Slingshot. Images are Shifter's: WEFT_CONTAINER=registry/name:tag.
module load ${WEFT_MODULES:-PrgEnv-gnu cudatoolkit nccl cray-hdf5}
export FI_MR_CACHE_MONITOR=userfaultfd     # libfabric and memory that goes and comes: otherwise hangs
export HDF5_USE_FILE_LOCKING=FALSE         # Lustre without locks
export NCCL_NET_GDR_LEVEL=PHB              # NICs read GPU memory
weft_container() {
  shifter --image="$WEFT_CONTAINER" --module=gpu,nccl-plugin "$@"
}
