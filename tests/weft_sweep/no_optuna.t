# A Bayesian search without Optuna is one error

  $ PATH=$WEFT/tests/weft_sweep:$PATH; mkdir hidden planted; echo "raise ImportError('none')" > hidden/optuna.py; export PYTHONPATH=$PWD/hidden
  $ bayes() { weft-sweep --bayes x=int:1..4 --trials 2 --metric val_loss --out "$1" -- train --out={run}; }
  $ bayes sweep
  weft-sweep: error: --bayes: expected Optuna 3 or newer for python3, got none. apt-get install python3-optuna, or pip install optuna; --random needs neither
  [1]
  $ ls sweep/starts
  ls: cannot access 'sweep/starts': No such file or directory
  [2]

Modules in the working folder may be anybody's: none is loaded.

  $ for name in json optuna; do echo "open('ran', 'w')" > planted/$name.py; done; cd planted; bayes ../sweep > log 2>&1; ls
  json.py
  log
  optuna.py
