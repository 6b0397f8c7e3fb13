#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh HOST NODES: multinode 50 10 as one rank on each of NODES nodes, of which HOST is node 0. mpirun starts it once per node:
#   mpirun -np 2 --map-by ppr:1:node run.sh $(hostname) 2
# MASTER_PORT (29500) is where the nodes meet; EPOCHS (50) and SAVE_EVERY (10) are what multinode is told.
set -euo pipefail
if [[ $# -ne 2 ]]; then
  echo "usage: mpirun -np NODES --map-by ppr:1:node ${0##*/} HOST NODES" >&2
  exit 2
fi
host=$1 nodes=$2 node=${OMPI_COMM_WORLD_RANK:?is not set: start run.sh with mpirun}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ $here == */libexec/weft/vista ]] && PATH=$here/../../../bin:$PATH  # as installed; elsewhere it is anybody's bin
export PATH=$here:$PATH
exec weft-run --nproc_per_node=1 --nnodes="$nodes" --node_rank="$node" --master_addr="$host" --master_port="${MASTER_PORT:-29500}" \
  "$(type -P multinode)" "${EPOCHS:-50}" "${SAVE_EVERY:-10}"
