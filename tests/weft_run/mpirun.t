# Programs that call init(), below mpirun.

needs: ranks mpi

  $ mpi 2 dist_rank sum 2> said | sort
  rank 0 of 2, local 0 of 2, Open MPI, mpi, sum 3
  rank 1 of 2, local 1 of 2, Open MPI, mpi, sum 3

The ranks of a weft-run below mpirun share an MPI identity: RANK wins, and MPI is left alone.

  $ mpi 1 weft-run --nproc_per_node=2 dist_rank sum 2> said | sort
  rank 0 of 2, local 0 of 2, RANK and WORLD_SIZE, gloo, sum 3
  rank 1 of 2, local 1 of 2, RANK and WORLD_SIZE, gloo, sum 3
