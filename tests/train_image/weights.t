# Weights in other formats and of other classes.

needs: zip spng

  $ train() { train_image --model resnet8 --batch-size 16 --data random:64x16x16x3 --overwrite --out run "$@" 2>&1; }
  $ train --epochs 1 --export a.safetensors | tail -n 1
  wrote   a.safetensors
  $ result() { train --eval-only --weights "$@" | grep -o 'val loss .* of'; }
  $ result a.safetensors > first; wc -l < first
  1

A checkpoint, or a PyTorch file under a prefix, evaluates as the exported weights do.

  $ diff first <(result run/checkpoint_last.safetensors --weights-key model)
  $ weft-weights convert --add-prefix backbone. a.safetensors a.pt; diff first <(result a.pt --weights-prefix backbone.)
  wrote   a.pt
          44 tensors, 296.0 KiB

Weights of three classes do not fit a network of ten, unless the classifier may start anew.

  $ "$WEFT"/tests/train_image/colours.py three cat=200,0,0 dog=0,200,0 eel=0,0,200
  $ train_image --model resnet8 --image-size 16 --batch-size 4 --data folder:three --epochs 1 --out three.run --export three.safetensors 2>&1 | tail -n 1
  wrote   three.safetensors
  $ "$WEFT"/tests/train_image/renamed.py three.safetensors b.safetensors
  $ train --eval-only --weights b.safetensors
  train_image: error: --weights b.safetensors: load_state_dict: the weights do not fit CifarResNet; wrong shape: linear.weight (expected [10,64], got [3,64]), linear.bias (expected [10], got [3])
  [1]
  $ train --eval-only --weights b.safetensors --weights-strict no | grep '^weights'
  weights b.safetensors: 42 tensors loaded; wrong shape: linear.weight (expected [10,64], got [3,64]), linear.bias (expected [10], got [3])

An evaluation normalises as the training did. Here the images of the validation part are brighter by far.

  $ "$WEFT"/tests/train_image/colours.py set train/0=10,10,10 train/1=50,50,50 val/0=140,140,140 val/1=180,180,180
  $ train() { train_image --model resnet8 --image-size 8 --batch-size 4 --workers 0 --device cpu --overwrite --data folder:set --out run "$@" 2>&1; }
  $ train --epochs 1 --export c.safetensors > log; result c.safetensors > first; train --eval-only --weights c.safetensors | grep -o 'normalised .*'
  normalised as those of c.safetensors
  $ diff <(grep -o 'val loss [0-9.]*' log | cut -c -14) <(cut -c -14 first); wc -l < first
  1
  $ python3 - << 'END'
  > import json
  > data = open("c.safetensors", "rb").read()
  > end = 8 + int.from_bytes(data[:8], "little")
  > header = json.loads(data[8:end])
  > del header["__metadata__"]
  > text = json.dumps(header).encode()
  > text += b" " * (-len(text) % 8)
  > open("bare.safetensors", "wb").write(len(text).to_bytes(8, "little") + text + data[end:])
  > END
  $ train --eval-only --weights bare.safetensors | grep -o 'normalised .*'; diff first <(result bare.safetensors)
  normalised as those of the training part

Without the training part its own mean counts, as the file or the checkpoint has it; weights without any are normalised otherwise.

  $ rm -r set/train; diff first <(result c.safetensors) && diff first <(result run/checkpoint_last.safetensors)
  $ train --eval-only --weights bare.safetensors | grep -o 'normalised .*'; result bare.safetensors > other; wc -l < other; cmp -s first other
  normalised as those of the validation part
  1
  [1]
