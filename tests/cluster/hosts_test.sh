#!/usr/bin/env bash
# hosts_test.sh REDSPINE: three hosts, each a network namespace with its own host name and /dev/shm
# behind one switch. Training over them, data- and tensor-parallel, has the losses of one rank, and
# whatever one host fails of ends the whole job and is named.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
source "$here/sandbox.sh"
require mpirun ip
enter_sandbox "$@"

redspine=$1
cd "$scratch"

# The switch and three hosts, 10.77.0.1 .. 10.77.0.3.
ip netns add switch
ip -n switch link add bridge type bridge
ip -n switch link set bridge up
cp /etc/hosts hosts
for i in 0 1 2; do
  ip netns add h$i
  ip -n h$i link set lo up
  ip -n switch link add port$i type veth peer name eth0 netns h$i
  ip -n switch link set port$i master bridge up
  ip -n h$i addr add 10.77.0.$((i + 1))/24 dev eth0
  ip -n h$i link set eth0 up
  echo "10.77.0.$((i + 1)) h$i" >>hosts
done

# on_host HOST COMMAND [ARG ...]: what mpirun calls in place of ssh, which joins the arguments too.
# The host named in the file `blind` does not see the corpus.
cat >on_host <<EOF
#!/bin/sh
host=\$1
shift
exec ip netns exec "\$host" unshare --mount --uts sh -ec '
  hostname "\$0"
  mount -t tmpfs tmpfs /dev/shm
  mount --bind $scratch/hosts /etc/hosts
  if [ "\$(cat $scratch/blind)" = "\$0" ]; then mount -t tmpfs tmpfs $scratch/corpus; fi
  exec sh -c "\$1"' "\$host" "\$*"
EOF
chmod +x on_host
echo none >blind

# As in launch/train.sbatch.
keep_alive=(--mca oob_tcp_keepalive_time 5 --mca oob_tcp_keepalive_intvl 1
  --mca oob_tcp_keepalive_probes 3)

# train_on HOSTS ARG ...: a training run over HOSTS (mpirun's --host), started on h0.
train_on() {
  local hosts=$1 ranks
  shift
  ranks=$(tr ',' '\n' <<<"$hosts" | awk -F: '{ sum += $2 } END { print sum }')
  timeout --kill-after=5 60 ./on_host h0 exec mpirun -n "$ranks" --host "$hosts" --bind-to none \
    "${keep_alive[@]}" --mca plm rsh --mca plm_rsh_agent "$scratch/on_host" --mca btl self,vader,tcp \
    --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
    "$redspine" train --config config.yaml "$@"
}

make_corpus "$redspine" corpus
write_config config.yaml corpus 10
train_on h0:1 --set run.name=one >/dev/null

train_on h0:1,h1:1,h2:1 --set run.name=data >/dev/null
same_losses runs/data/metrics.jsonl runs/one/metrics.jsonl 10

train_on h0:2,h1:1,h2:1 --set run.name=tensor --set parallel.tensor=4 >/dev/null
same_losses runs/tensor/metrics.jsonl runs/one/metrics.jsonl 10

train_on h0:2,h1:1,h2:1 --set run.name=both --set parallel.tensor=2 >/dev/null
same_losses runs/both/metrics.jsonl runs/one/metrics.jsonl 10

# In exact mode runs are equal to the last bit, on one host or on several.
exact=(--set run.exact=true --set run.exact_leaves=12 --set run.exact_lanes=12)
lines() { sed -n 's/,"seconds":.*//; /"kind":"train"/p' "runs/$1/metrics.jsonl"; }
train_on h0:1 "${exact[@]}" --set run.name=exact_one >/dev/null
train_on h0:1,h1:1,h2:1 "${exact[@]}" --set run.name=exact_data >/dev/null
train_on h0:2,h1:1,h2:1 "${exact[@]}" --set run.name=exact_tensor --set parallel.tensor=4 >/dev/null
train_on h0:2,h1:1,h2:1 "${exact[@]}" --set run.name=exact_both --set parallel.tensor=2 >/dev/null
for name in data tensor both; do
  cmp <(lines exact_one) <(lines "exact_$name") || fail "exact runs differ: one, $name"
  "$redspine" checkpoint diff runs/exact_one/checkpoints/step_00000010 \
    "runs/exact_$name/checkpoints/step_00000010" >/dev/null || fail "exact weights differ: one, $name"
done

# expect_failure OUTPUT CODE PATTERN: a run that ended with CODE did so in time, and said why.
expect_failure() {
  if [ "$2" -eq 0 ] || [ $SECONDS -gt 30 ] || ! grep -qE "$3" "$1"; then
    tail -c 2000 "$1"
    fail "the run ended after $SECONDS s with exit code $2, or did not say $3"
  fi
}

echo h2 >blind
SECONDS=0
code=0
train_on h0:1,h1:1,h2:1 --set run.name=blind >blind.out 2>&1 || code=$?
expect_failure blind.out $code '^\[rank 2 @ h2\] .*tokens'
echo none >blind

# start_endless NAME: a run over the three hosts in the background, as $job; returns when it trains.
start_endless() {
  train_on h0:1,h1:1,h2:1 --set run.name="$1" --set train.steps=1000000 >"$1.out" 2>&1 &
  job=$!
  local tries
  for tries in $(seq 200); do
    [ -s "runs/$1/metrics.jsonl" ] && return
    sleep 0.1
  done
  tail -c 2000 "$1.out"
  fail "the run $1 did not start within 20 s"
}

# A rank that is killed.
start_endless killed
for pid in $(ip netns pids h1); do
  [ "$(readlink "/proc/$pid/exe")" != "$(readlink -f "$redspine")" ] || kill -KILL "$pid"
done
SECONDS=0
code=0
wait $job || code=$?
expect_failure killed.out $code 'rank 1 .*on node h1 exited on signal 9'

# A host that is cut off.
start_endless cut
ip -n switch link set port2 down
SECONDS=0
code=0
wait $job || code=$?
expect_failure cut.out $code 'h2'
echo "PASSED"
