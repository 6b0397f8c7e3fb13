# Programs that call init(), below weft-run.

needs: ranks

  $ weft-run --nproc_per_node=3 dist_rank sum | sort
  rank 0 of 3, local 0 of 3, RANK and WORLD_SIZE, gloo, sum 6
  rank 1 of 3, local 1 of 3, RANK and WORLD_SIZE, gloo, sum 6
  rank 2 of 3, local 2 of 3, RANK and WORLD_SIZE, gloo, sum 6

A killed rank is started again, with all others.

  $ weft-run --nproc_per_node=2 --max_restarts=1 bash -c 'if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then exec dist_rank die; fi; exec dist_rank sum' &> out
  $ grep -c 'sum 3$' out; grep 'was ended' out
  4
  weft-run: rank 1 was ended by signal 9 (Killed)
