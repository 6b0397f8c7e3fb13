# Launchers that wait for other nodes.

needs: crypto

A missing node is named in time.

  $ export HOME=$PWD; port=$(free_port); weft-run --nnodes=3 --start_timeout=4 --rdzv_endpoint 127.0.0.1:$port true 2>&1 | sed "s/$port/PORT/"
  weft-run: error: not all nodes have come to 127.0.0.1:PORT: membership: 2 of 3 ranks did not join within 4 s: missing ranks 1 to 2…
  [1]
  $ weft-run --nnodes=2 --node_rank=1 --start_timeout=4 --master_addr=127.0.0.1 --master_port=$port true 2>&1 | sed "s/$port/PORT/"
  weft-run: error: store: node 1 on … has not found its job at 127.0.0.1:PORT within 4 s…
  [1]

Another cookie is another job.

  $ mkdir mine theirs; port=$(free_port); node() { HOME=$1 weft-run --nnodes=2 --node_rank $2 --start_timeout $3 --master_addr=127.0.0.1 --master_port=$port true; }
  $ listens() { (echo > /dev/tcp/127.0.0.1/$port) 2> /dev/null; }
  $ node mine 0 10 &> zero & until_true listens; node theirs 1 3 2>&1 | grep -o 'has another secret'
  has another secret
  [1]
  $ wait %1; echo $?; grep -o 'missing rank 1' zero
  1
  missing rank 1

A signal ends a launcher that waits for the others: SIGTERM with the code for a requeue.

  $ port=$(free_port); env --default-signal=INT weft-run --nnodes=2 --node_rank=0 --start_timeout=20 --rdzv_endpoint 127.0.0.1:$port echo begin &> out & until_true listens
  $ kill -TERM $!; wait $!
  [75]
  $ grep -c ^begin out; tail -n 1 out
  0
  weft-run: ended by signal 15 (Terminated) before the launchers had met
  $ port=$(free_port); env --default-signal=INT weft-run --nnodes=2 --node_rank=0 --start_timeout=20 --rdzv_endpoint 127.0.0.1:$port echo begin &> out & until_true listens
  $ kill -INT $!; wait $!
  [130]
  $ grep -c ^begin out; tail -n 1 out
  0
  weft-run: ended by signal 2 (Interrupt) before the launchers had met
