# sandbox.sh: sourced first by the cluster tests.
# Runs the test in namespaces of its own: its ports, mounts, host names and processes cannot collide
# with another run's, and all of them are gone when the test ends, however it ends.

PATH=$PATH:/usr/sbin:/sbin

skip() {
  echo "SKIPPED: $*"
  exit 77 # SKIP_RETURN_CODE of the CTest registration
}

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

require() {
  local program
  for program in "$@"; do
    [ -n "$(type -P "$program")" ] ||
      skip "no $program here; ./launch/install.sh test installs what these tests need"
  done
}

# enter_sandbox "$@": continues the calling script inside. There, /run and $scratch are empty and
# private, and the loopback is up.
enter_sandbox() {
  if [ -z "${REDSPINE_SANDBOX:-}" ]; then
    require unshare ip
    local inside=(unshare --mount --net --ipc --uts --pid --fork --kill-child --mount-proc)
    "${inside[@]}" true 2>/dev/null || skip "this user may not make namespaces; run as root"
    REDSPINE_SANDBOX=1 exec "${inside[@]}" "$0" "$@"
  fi
  mount -t tmpfs tmpfs /run
  mount -t tmpfs tmpfs /mnt
  scratch=/mnt
  ip link set lo up
  # Slurm asks the resolver for names as seen from a host that has a network, and the resolver
  # takes any address but 127.0.0.1 for one.
  ip addr add 127.0.0.2/8 dev lo
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
}

# make_corpus REDSPINE FOLDER: a few thousand tokens of text that is not the same everywhere.
make_corpus() {
  mkdir -p "$2"
  seq -f 'The square of %g is not its double.' 1 400 >"$2/text.txt"
  "$1" tokenize --input "$2/text.txt" --output "$2/tokens"
}

# write_config FILE CORPUS STEPS: a model small enough to train anywhere in a second.
write_config() {
  cat >"$1" <<YAML
run: {name: cluster, output_dir: runs, seed: 7, device: cpu}
model:
  num_layers: 2
  hidden_size: 32
  num_heads: 4
  num_kv_heads: 4
  ffn_size: 64
  vocab_size: 257
  max_sequence_length: 32
data:
  train: [{path: $2/tokens}]
  validation: []
batch: {sequence_length: 32, global_batch_size: 12, micro_batch_size: 1}
schedule: {kind: constant, warmup_steps: 0}
train: {steps: $3, eval_interval: 0}
YAML
}

# same_losses A B STEPS: two metrics files hold the steps 1 .. STEPS with losses equal to 1e-5.
same_losses() {
  local losses='s/.*"kind":"train","step":\([0-9]*\),"loss":\([^,}]*\).*/\1 \2/p'
  paste -d' ' <(sed -n "$losses" "$1") <(sed -n "$losses" "$2") | awk -v steps="$3" '
    {
      difference = $2 - $4
      if (difference < 0) difference = -difference
      if (NF != 4 || $1 != NR || $3 != NR || !($2 > 0) || difference > 1e-5 * $2) {
        print "line " NR ": " $0
        wrong = 1
      }
    }
    END {
      if (NR != steps) print NR " steps instead of " steps
      exit wrong || NR != steps
    }' || fail "the losses of $1 and $2 differ"
}
