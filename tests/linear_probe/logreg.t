# --eval logreg: a logistic regression in the place of the phases.

  $ flags="--data random:44x32x32x3 --model vit_tiny4 --workers 1 --precision f32 -b 16 --overwrite --eval logreg"
  $ probe() { linear_probe $flags "$@" 2>&1; }
  $ probe --logreg-values 6 --logreg-iterations 60 --out run | grep 'logreg\|probe$'
  logreg C 1e-06: held-out accuracy …
  logreg C 0.000158489: held-out accuracy …
  logreg C 0.0251189: held-out accuracy …
  logreg C 3.98107: held-out accuracy …
  logreg C 630.957: held-out accuracy …
  logreg C 100000: held-out accuracy …
  logreg C …: validation accuracy …
  $ jq '.logreg_iterations > 0' run/summary.json; state run/logreg.safetensors | grep '^weight\|^bias'
  true
  bias F32 [10] …
  weight F32 [10, 192] …
  $ probe --logreg-values 1 --logreg-iterations 2 --logreg-precision f32 --out run | grep logreg
  logreg C 1: held-out accuracy …, loss …, 2 iterations (the limit)
  logreg C 1: validation accuracy …, loss …, 2 iterations (the limit)
  $ probe --eval knn --out run
  linear_probe: error: --eval: unknown value 'knn'. Known: none, logreg. (linear_probe --help lists the flags)
  [2]

A signal stops it: SIGINT ends the run, SIGTERM asks to submit it again.

  $ begin() { rm -f log; (exec linear_probe $flags --logreg-values 1000 --logreg-iterations 100000 --out run) > log 2>&1 & run=$!; until_true grep -q "'held-out accuracy'" log; }
  $ begin; kill -INT $run; wait $run; code=$?; tail -n 1 log; (exit $code)
  linear_probe: error: stopped by a signal after C …; the evaluation begins again
  [1]
  $ begin; kill -TERM $run; wait $run; code=$?; tail -n 1 log; (exit $code)
  SIGTERM outside of the training loop: nothing is lost, the next attempt does the rest
  [75]
