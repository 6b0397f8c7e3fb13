# What the runner of transcripts accepts, and what it refuses.

A command that prints what is expected passes; what it prints may be longer than the line says, or near its number.

  $ play() { printf '%s\n' "$@" > a.t; "$WEFT"/tests/transcript/transcript.py a.t; }
  $ play '  $ echo one; echo two' '  one' '  two'
  a.t: 1 commands, 0 faults
  $ play '  $ seq 5' '  1' '  …' '  5' '  $ echo loss 0.45 of 3' '  loss ~0.5 of …' '  $ echo abc' '  a[bx]c (re)'
  a.t: 3 commands, 0 faults
  $ play '  $ x=3' '  $ cd /; (exit 4)' '  [4]' '  $ echo $x \' '  > $PWD' '  3 /'
  a.t: 3 commands, 0 faults
  $ play '  $ echo >&2 one' '  one' '  $ printf end' '  end'
  a.t: 2 commands, 0 faults

Lines in another order, lines too many or too few, another number, another exit code are faults.

  $ play '  $ echo one; echo two' '  two' '  one'
  a.t:1: $ echo one; echo two
  exit code 0, expected 0
  --- expected
  +++ printed
  …
  a.t: 1 commands, 1 faults
  [1]
  $ play '  $ seq 3' '  1' '  2' | grep '^[ +][23]'
   2
  +3
  [1]
  $ play '  $ seq 2' '  …' '  2' '  3' > out
  [1]
  $ play '  $ echo loss 0.3' '  loss ~0.5' > out
  [1]
  $ play '  $ echo; false' > out
  [1]
  $ play '  $ true' '  [1]' | sed -n 2p
  exit code 0, expected 1
  [1]

So are a shell that ends, a command that waits, a file without commands.

  $ play '  $ true' '  $ exit 3' '  $ true'
  a.t:2: the shell did not come to the end of this command
  …
  [1]
  $ printf '  $ sleep 60\n' > a.t; "$WEFT"/tests/transcript/transcript.py --seconds 1 a.t
  the time of 1 s is up
  a.t:1: the shell did not come to the end of this command
  …
  [1]
  $ play 'prose'
  a.t: no command
  [1]

A file that needs what is not there is skipped, and says so.

  $ printf 'needs: zip wings\n\n  $ false\n' > a.t; WEFT_PARTS='zip yaml' "$WEFT"/tests/transcript/transcript.py a.t
  a.t: SKIPPED, needs wings, which this build or machine lacks
  [77]
  $ printf 'needs: !zip\n\n  $ false\n' > a.t; WEFT_PARTS='zip yaml' "$WEFT"/tests/transcript/transcript.py a.t
  a.t: SKIPPED, needs !zip, but this build has it
  [77]
  $ printf 'needs: !wings\n\n  $ true\n' > a.t; WEFT_PARTS='zip yaml' "$WEFT"/tests/transcript/transcript.py a.t
  a.t: 1 commands, 0 faults
  $ printf 'needs: shared/no_such_data\n\n  $ false\n' > a.t; "$WEFT"/tests/transcript/transcript.py a.t
  a.t: SKIPPED, needs shared/no_such_data, which this build or machine lacks
  [77]

`--write` puts in what was printed.

  $ printf '  $ seq 2; false\n  1\n  [2]\nprose\n' > a.t; "$WEFT"/tests/transcript/transcript.py --write a.t > out; cat a.t
    $ seq 2; false
    1
    2
    [1]
  prose

On a page lines come in any order, each once; `…` allows more, and stderr may have more.

  $ page() { printf '%s\n' '```console' "$@" '```' > a.md; "$WEFT"/tests/transcript/transcript.py a.md; }
  $ page '$ echo a; echo b; echo progress >&2' 'b' 'a'
  a.md: 1 commands, 0 faults
  $ page '$ echo a; echo b' 'a' '…'
  a.md: 1 commands, 0 faults
  $ page '$ echo a; echo b' 'a' > out
  [1]
  $ page '$ echo a' 'a' 'a' > out
  [1]
  $ page '$ echo a; false' > out
  [1]
