#!/bin/sh
# Restarts brokers one after another, each only while it leads nothing and its partitions can be written without it:
#   rolling-restart.sh POLICY NAMESPACE 'COMMAND' BROKER...
# COMMAND is run with the broker's id as its last word and must return when the broker is up again.
set -eu

policy=$1 namespace=$2 command=$3
shift 3

for broker in "$@"; do
    bellwether drain "$broker" --policy "$policy" -n "$namespace" --for 30m --wait --timeout 10m --reason "rolling restart"
    $command "$broker"
    bellwether drain "$broker" --policy "$policy" -n "$namespace" --end --wait --timeout 20m
done
