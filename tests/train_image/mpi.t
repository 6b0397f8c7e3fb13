# Ranks below mpirun. The order of sums is that of the ranks, whatever carries them: MPI and Gloo give the same bits.

needs: ranks mpi

  $ flags="--data random:100x8x8x3 --model resnet8 --augment cifar --epochs 2 --workers 0 --sync-batch-norm --lr 0.02 --batch-size 5"
  $ export ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1  # Open MPI's plugins leak
  $ on() { mpirun --mca mpi_yield_when_idle 1 --oversubscribe --bind-to none -np "$1" train_image $flags "${@:2}" > log 2>&1 || cat log; }
  $ on 3 --backend gloo --max-steps 3 --out three; grep '^ranks' log
  ranks   3 over gloo (Open MPI), ddp, 1 bucket, 7 batch norms over all ranks; 5 images each per step, 15 together
  $ for way in "3 --parallel ddp" "3 full_shard" "3 shard_grad_op" "4 hybrid_shard --fsdp-shard-size 2" "3 no_shard"; do
  >   case $way in *ddp) ;; *) way="${way/ / --fsdp-min-params 4000 --max-steps 20 --parallel fsdp --fsdp-strategy }" ;; esac
  >   rm -rf gloo mpi; for backend in gloo mpi; do on $way --backend $backend --out $backend; grep '^ranks' log; done
  >   same_state gloo/checkpoint_last.safetensors mpi/checkpoint_last.safetensors
  > done
  ranks   3 over gloo (Open MPI), ddp, 1 bucket, 7 batch norms over all ranks; 5 images each per step, 15 together
  ranks   3 over mpi (Open MPI), ddp, 1 bucket, 7 batch norms over all ranks; 5 images each per step, 15 together
  ranks   3 over gloo (Open MPI), fsdp full_shard, 6 units, 7 batch norms over all ranks; 5 images each per step, 15 together
  ranks   3 over mpi (Open MPI), fsdp full_shard, 6 units, 7 batch norms over all ranks; 5 images each per step, 15 together
  ranks   3 over gloo (Open MPI), fsdp shard_grad_op, 6 units, 7 batch norms over all ranks; 5 images each per step, 15 together
  ranks   3 over mpi (Open MPI), fsdp shard_grad_op, 6 units, 7 batch norms over all ranks; 5 images each per step, 15 together
  ranks   4 over gloo (Open MPI), fsdp hybrid_shard, 6 units, 7 batch norms over all ranks; 5 images each per step, 20 together
  ranks   4 over mpi (Open MPI), fsdp hybrid_shard, 6 units, 7 batch norms over all ranks; 5 images each per step, 20 together
  ranks   3 over gloo (Open MPI), fsdp no_shard, 6 units, 7 batch norms over all ranks; 5 images each per step, 15 together
  ranks   3 over mpi (Open MPI), fsdp no_shard, 6 units, 7 batch norms over all ranks; 5 images each per step, 15 together
