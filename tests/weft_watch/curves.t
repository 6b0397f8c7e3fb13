# The curves of runs in the terminal

`runs.sh` makes runs of 20 steps, whose losses fall as START / step.

  $ . "$WEFT"/tests/weft_watch/runs.sh
  $ weft-watch --help | grep -oE -e 'weft-watch runs/a runs/b --follow|--(html|smooth|metrics) |moving mean' | sort -u
  --html
  --metrics
  --smooth
  moving mean
  weft-watch runs/a runs/b --follow
  $ ended a 1; ended b 0.5

Losses, accuracies and throughput are shown unless others are asked for; in plain ASCII where the locale is not UTF-8.

  $ LC_ALL=C weft-watch a b --width 80 | grep .
  train_loss
   1.0+*
      | *
      | *
      |  *
      |   *
      |   *
   0.5++   *
      | ++  **
      |   +++ *******
      |      ++++    *******
      |          +++++++++++++++****************************
      |                         ++++++++++++++++++++++++++++++++++++++++++++++++++
      +----------------+------------------+-------------------+------------------+
                       5                 10                  15               step
  val_loss
   2.0+*
      | *
      | *
   1.5+  *
      |   *
      |   *
   1.0++   *
      | ++  **
   0.5+   +++ *******
      |      ++++    *******
      |          +++++++++++++++****************************
      |                         ++++++++++++++++++++++++++++++++++++++++++++++++++
      +----------------+------------------+-------------------+------------------+
                       5                 10                  15               step
  run     state     train_loss           val_loss
  *  a    finished  0.05 (0.05 at 20)    0.1 (0.1 at 20)
  +  b    finished  0.025 (0.025 at 20)  0.05 (0.05 at 20)
  $ LC_ALL=C weft-watch a b --width 80 | grep -cP '[^ -~]|^.{81}'
  0
  [1]
  $ LC_ALL=C weft-watch a --width 130 | sed -n 1p; LC_ALL=C COLUMNS=130 weft-watch a | sed -n 1p; LC_ALL=C weft-watch a | sed -n 1p
  train_loss                                                        val_loss
  train_loss                                                        val_loss
  train_loss
  $ LC_ALL=C weft-watch a --metrics grad,loss/val | grep -E '^(grad|[a-z]+_loss) '
  grad
  val_loss
  $ weft-watch a --list
  train_loss  20 points in 1 run
  val_loss  20 points in 1 run
  grad  20 points in 1 run

Where it is UTF-8, one run is drawn in dots. Two would look the same without colour.

  $ weft-watch a | grep -c '⠤'; LC_ALL= LC_CTYPE=de_DE.utf8 weft-watch a | grep -c '│'
  6
  18
  $ weft-watch a b | grep '+  b'; weft-watch a b --color always | grep -o $'\e\\[38;5;208m━━\e\\[0m b' | cat -v; weft-watch a b --symbols ascii | grep -c '│'
  +  b    finished  0.025 (0.025 at 20)  0.05 (0.05 at 20)
  ^[[38;5;208mM-bM-^TM-^AM-bM-^TM-^A^[[0m b
  0
  [1]

A folder of runs is all of them; a run may have a name of its own, and runs below it.

  $ ended sweep/lr=2 1; ended sweep/lr=10 1
  $ LC_ALL=C weft-watch sweep base=a | grep '^[*+o]  '
  *  lr=2   finished  0.05 (0.05 at 20)  0.1 (0.1 at 20)
  +  lr=10  finished  0.05 (0.05 at 20)  0.1 (0.1 at 20)
  o  base   finished  0.05 (0.05 at 20)  0.1 (0.1 at 20)
  $ ended tb 1; ended tb/loss_val 0.5; LC_ALL=C weft-watch tb --width 80 | grep '^[*+o]  '
  *  .         finished  0.05 (0.05 at 20)    0.1 (0.1 at 20)
  +  loss_val  finished  0.025 (0.025 at 20)  0.05 (0.05 at 20)

# Files that are not whole

  $ printf 'epoch,loss\n0,1.5\n' > log.txt; weft-watch log.txt --list
  note: log.txt: skipped 2 of 2 lines (line 1 is the first that is no JSON object)
  note: log.txt: no numbers yet
  $ printf 'rubbish\n{"step":21,"val_lo' >> b/metrics.jsonl; weft-watch b | grep note
  note: b/metrics.jsonl: skipped 2 of 22 lines (line 21 is the first that is no JSON object; the last one is half-written)

Values of many levels would overflow the stack.

  $ mkdir deep; python3 -c 'print("{\"step\":1,\"val_loss\":" + "[" * 200000 + "]" * 200000 + "}\n{\"step\":2,\"val_loss\":1}")' > deep/metrics.jsonl
  $ weft-watch deep | grep -c '^val_loss'
  1

A hundred thousand names are no reason to wait.

  $ mkdir many; python3 -c 'print("{\"step\":1," + ",".join(f"\"n{i}\":{i}" for i in range(100000)) + "}")' > many/metrics.jsonl
  $ timeout --foreground 60 weft-watch many | grep ^note; timeout --foreground 60 weft-watch many --list | wc -l
  note: 30 of 100000 curves are shown; --list names all, --metrics chooses
  note: 30 of 100000 curves are shown; --list names all, --metrics chooses
  100000

Names that would move the cursor are shown as text.

  $ mkdir moves; printf '{"step":1,"loss\\u001b[2J":1}\n' > moves/metrics.jsonl; weft-watch moves | cat -v | grep -c '\^\['
  0
  [1]

# Mistakes

  $ fails weft-watch; fails weft-watch none; fails weft-watch none --follow
  weft-watch: error: expected at least one RUN, the folder of a run (weft-watch --help lists the flags) [2]
  weft-watch: error: expected a run's folder, got nothing at none [1]
  weft-watch: error: expected a run's folder, got nothing at none [1]
  $ mkdir empty; weft-watch empty
  weft-watch: error: expected metrics.jsonl, a TensorBoard event file, metrics.csv or trainer_state.json, found none in empty and the folders below it. A .csv of another name can be given itself
  [1]
  $ fails weft-watch a --smoth 1; fails weft-watch a --smooth 1; fails weft-watch a --x steps; fails weft-watch a --metrics acc,foo
  weft-watch: error: unknown flag --smoth. Did you mean --smooth? (weft-watch --help lists the flags) [2]
  weft-watch: error: --smooth: expected a value at least 0 and at most 0.999, got 1 (weft-watch --help lists the flags) [2]
  weft-watch: error: --x: unknown value 'steps'. Did you mean 'step'? (weft-watch --help lists the flags) [2]
  weft-watch: error: --metrics: no curve is called 'acc'. There are: train_loss, val_loss, grad (weft-watch --help lists the flags) [2]
  $ fails weft-watch a --html no/page.html
  weft-watch: error: page: expected an existing folder for no/page.html, got none at no [1]
  $ weft-watch a --list > /dev/full
  weft-watch: error: standard output: not all lines could be written. Is the disk full?
  [1]
