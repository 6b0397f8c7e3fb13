# multinode on two ranks of mpirun: directly, and by run.sh.

needs: zip ranks mpi

  $ lines() { grep "^\[GPU$1\]" out | diff - <(seq -f "[GPU$1] Epoch %g | Batchsize: 32 | Steps: 32" "$2" "$3"); }
  $ mpi 2 multinode 11 10 > out 2> said; lines 0 0 10; lines 1 0 10; grep -v GPU out
  Epoch 0 | Training snapshot saved at snapshot.pt
  Epoch 10 | Training snapshot saved at snapshot.pt

The weights are those of one rank with 64 pairs; 6.9e-5 is the random walk of 10 x 2048 roundings of f32, four operations each.

  $ weights() { torch_file "$1" | jq .MODEL_STATE.weight.values; }
  $ mkdir alone; (cd alone; multinode 11 10 --batch_size 64 &> out); distance <(weights snapshot.pt) <(weights alone/snapshot.pt) | jq '. < 6.9e-5'
  true

run.sh is what mpirun starts on each node.

  $ rm snapshot.pt; script() { MASTER_PORT=$(free_port) WEFT_JOB_SECRET=known-to-two-ranks mpi 2 "$WEFT"/apps/vista/run.sh localhost 2 > out 2> said; }
  $ script; lines 0 0 49; lines 1 0 49; grep -v GPU out
  Epoch 0 | Training snapshot saved at snapshot.pt
  Epoch 10 | Training snapshot saved at snapshot.pt
  Epoch 20 | Training snapshot saved at snapshot.pt
  Epoch 30 | Training snapshot saved at snapshot.pt
  Epoch 40 | Training snapshot saved at snapshot.pt
  $ script; lines 0 40 49; lines 1 40 49; grep -v GPU out | sort
  Epoch 40 | Training snapshot saved at snapshot.pt
  Loading snapshot
  Loading snapshot
  Resuming training from snapshot at Epoch 40
  Resuming training from snapshot at Epoch 40
  $ torch_file snapshot.pt | jq .EPOCHS_RUN
  40
  $ "$WEFT"/apps/vista/run.sh localhost
  usage: mpirun -np NODES --map-by ppr:1:node run.sh HOST NODES
  [2]
  $ env -u OMPI_COMM_WORLD_RANK "$WEFT"/apps/vista/run.sh localhost 2
  … start run.sh with mpirun…
  [1]
