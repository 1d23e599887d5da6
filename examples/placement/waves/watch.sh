#!/bin/sh
# Tells each step of a broker's way back, and returns when the last one has begun:
#   watch.sh POLICY NAMESPACE BROKER
set -eu

health="bh/$1-$3"
said=""
while :; do
    wave=$(kubectl -n "$2" get "$health" -o jsonpath='{.status.restoration.wave}')
    now=$(kubectl -n "$2" get "$health" -o jsonpath='{.status.conditions[?(@.type=="Demoted")].message}')
    if [ "$now" != "$said" ]; then
        echo "$now"
        said=$now
    fi
    [ -n "$wave" ] || exit 0
    sleep 1
done
