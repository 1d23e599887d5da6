#!/bin/sh
# Waits until every partition of a topic can be read and written:
#   wait.sh BOOTSTRAP TOPIC SECONDS
# Exit status: 0 when they can, else the doctor's last one: 3 while a partition has no leader.
set -u

bootstrap=$1 topic=$2 left=$3

while :; do
    bellwether doctor --bootstrap "$bootstrap" --topic "$topic"
    status=$?
    # 1: at risk, and led.
    [ "$status" -gt 1 ] || exit 0
    [ "$left" -gt 0 ] || exit "$status"
    left=$((left - 2))
    sleep 2
done
