#!/bin/sh
# Waits until every partition of a topic can be read and written:
#   wait.sh BOOTSTRAP TOPIC SECONDS
# Exit status: 0 when they can, else the doctor's last one: 5 while a partition has no leader.
set -u

bootstrap=$1 topic=$2 left=$3

while :; do
    bellwether doctor --bootstrap "$bootstrap" --topic "$topic"
    status=$?
    # 4: at risk, and every partition has a leader.
    case $status in 0 | 4) exit 0 ;; esac
    [ "$left" -gt 0 ] || exit "$status"
    left=$((left - 2))
    sleep 2
done
