#!/bin/bash
# What the `spark` image starts. Spark on Kubernetes starts its executors with the one argument `executor` and tells them
# the rest in the environment, by the names below (Spark's KubernetesExecutorBackend); all else goes to bellwether_load.
set -euo pipefail

if [[ ${1:-} != executor ]]; then
	exec python -m bellwether_load "$@"
fi

jars="$(python -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent / "jars")')"
options=()
while IFS= read -r name; do # SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, ... in this order
	options+=("${!name}")
done < <(compgen -A variable SPARK_JAVA_OPT_ | sort --version-sort || true)

exec "$JAVA_HOME/bin/java" "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
	-cp "${SPARK_CONF_DIR:-/opt/spark/conf}:${SPARK_CLASSPATH:-}:$jars/*" \
	org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
	--driver-url "$SPARK_DRIVER_URL" \
	--executor-id "$SPARK_EXECUTOR_ID" \
	--cores "$SPARK_EXECUTOR_CORES" \
	--app-id "$SPARK_APPLICATION_ID" \
	--hostname "$SPARK_EXECUTOR_POD_IP" \
	--resourceProfileId "${SPARK_RESOURCE_PROFILE_ID:-0}" \
	--podName "$SPARK_EXECUTOR_POD_NAME"
