# Signals to weft-run.

needs: crypto

They are forwarded to the ranks; after SIGTERM nothing is started again.

  $ weft-run --nproc_per_node=2 --max_restarts=5 bash -c 'trap "echo rank $RANK saves" USR1; trap "echo rank $RANK dumps" USR2
  >   trap "echo rank $RANK stops; exit 64" TERM; echo ready; while true; do sleep 0.05; done' &> out &
  $ job=$!; until_true '[ $(grep -c ready out) = 2 ]'; kill -USR1 $job; until_true '[ $(grep -c saves out) = 2 ]'
  $ kill -USR2 $job; until_true '[ $(grep -c dumps out) = 2 ]'; kill -TERM $job; wait $job
  [64]
  $ grep -E '^(rank|ready)' out | sort
  rank 0 dumps
  rank 0 saves
  rank 0 stops
  rank 1 dumps
  rank 1 saves
  rank 1 stops
  ready
  ready

A rank that ends early after a forwarded SIGTERM does not cut short another one's checkpoint, even without any grace.

  $ weft-run --nproc_per_node=2 --grace=0 bash -c 'trap "if [ $RANK = 1 ]; then sleep 1; echo saved; fi; exit 64" TERM; echo ready; while true; do sleep 0.05; done' &> saves &
  $ job=$!; until_true '[ $(grep -c ready saves) = 2 ]'; kill -TERM $job; wait $job
  [64]
  $ grep saved saves
  saved

kill -9 of the launcher ends the ranks, and the children of a rank's shell.

  $ weft-run --nproc_per_node=2 bash -c 'sleep 600 & echo $$ $!; wait' > processes &
  $ job=$!; until_true '[ $(wc -l < processes) = 2 ]'; kill -KILL $job; wait $job 2> killed
  [137]
  $ for process in $(cat processes); do until_true ! kill -0 $process; done; wc -w < processes
  4

A second Ctrl-C ends ranks that do not obey the first, and is no success.

  $ env --default-signal=INT weft-run --nproc_per_node=2 bash -c 'trap "echo asked" INT; echo ready; while true; do sleep 0.05; done' &> twice &
  $ job=$!; until_true '[ $(grep -c ready twice) = 2 ]'; kill -INT $job; until_true '[ $(grep -c asked twice) = 2 ]'; kill -INT $job; wait $job
  [130]
  $ grep Ctrl-C twice
  weft-run: second Ctrl-C: ending all ranks
  weft-run: ended by a second Ctrl-C
