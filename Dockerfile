# The container image. Two targets: `operator` (the default: operator, probers, sampler and command line, no JVM) and
# `spark` (the same with a Java runtime and PySpark, for the jobs that measure loads and plan). docs/image.md tells how
# to build it; docs/decisions/0021 tells why it is built like this.
#
# Nothing of a build stage reaches an image but what is copied by name from /staged. Settings of the machine that
# builds (a mirror, a proxy, a certificate) come in as secrets, which no layer keeps.

ARG BASE_IMAGE=docker.io/library/debian:13.7-slim@sha256:a99cfc517144bc59b1978475ec53b46ecabec7e43635402ee5b77cc54cd1b20a

# The operating system: Debian's Python and tini, without a package manager, documents, or anything setuid.
FROM ${BASE_IMAGE} AS system
ARG PYTHON=python3.13
ENV PYTHON=${PYTHON} DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /
RUN --mount=type=secret,id=apt.conf,target=/etc/apt/apt.conf.d/zz-machine.conf \
    --mount=type=secret,id=certificates.pem,target=/run/machine/certificates.pem \
    apt-get update \
    && apt-get upgrade --yes \
    && apt-get install --yes --no-install-recommends ${PYTHON} ca-certificates netbase tini tzdata \
    && echo 'bellwether:x:10001:10001:Bellwether:/tmp:/usr/sbin/nologin' >>/etc/passwd \
    && echo 'bellwether:x:10001:' >>/etc/group \
    && find /usr/lib/python3* -name __pycache__ -prune -exec rm -rf {} + \
    && ${PYTHON} -m compileall -q -f --invalidation-mode unchecked-hash /usr/lib/${PYTHON}
# What stays behind: package managers, Perl, which only they need, documents but for licences, and what belongs to this machine.
RUN printf './%s\n' 'proc/*' 'sys/*' 'dev/*' 'run/*' 'tmp/*' 'root/.*' 'staged*' 'without' 'before' 'debootstrap' \
        'etc/apt' 'etc/hostname' 'etc/hosts' 'etc/resolv.conf' 'etc/machine-id' 'etc/*-' 'etc/.pwd.lock' \
        'usr/bin/*apt*' 'usr/bin/*dpkg*' 'usr/bin/perl*' 'usr/bin/sqv' 'usr/bin/gpgv' 'usr/bin/pydoc*' 'usr/lib/python3*/test' 'usr/sbin/*dpkg*' \
        'usr/lib/apt' 'usr/lib/dpkg' 'usr/lib/*/libapt-*' 'usr/lib/*/perl-base' 'usr/lib/*/gconv' \
        'usr/share/locale' 'usr/share/man' 'usr/share/info' 'usr/share/lintian' 'usr/share/bash-completion' \
        'usr/share/perl5' 'usr/share/debconf' 'usr/share/keyrings' 'usr/share/doc/*/[!c]*' 'usr/share/doc/*/changelog*' \
        'var/cache/*' 'var/log/*' 'var/tmp/*' 'var/lib/apt' 'var/lib/dpkg/info' 'var/lib/dpkg/*-old' \
        | sed 's|.*|&\n&/*|' >/without \
    && mkdir /staged \
    && tar --create --one-file-system --anchored --wildcards --wildcards-match-slash --exclude-from /without . \
    | tar --extract --preserve-permissions --directory /staged \
    && touch /staged/etc/hostname /staged/etc/hosts /staged/etc/resolv.conf \
    && find /staged -xdev -type f -perm /6000 -exec chmod a-s {} + \
    && find /staged -xdev -type d -perm -0002 ! -path /staged/tmp -exec chmod o-w {} +

# pip, and the locked build backend in an environment of its own. Both stay behind. pip compiles nothing: its bytecode
# holds the time of each source, which is another in the image, so that it would differ each time and never be used.
FROM system AS backend
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements/build.lock /requirements/
RUN --mount=type=secret,id=apt.conf,target=/etc/apt/apt.conf.d/zz-machine.conf \
    --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    --mount=type=secret,id=certificates.pem,target=/run/machine/certificates.pem \
    apt-get install --yes --no-install-recommends ${PYTHON}-venv python3-pip \
    && ${PYTHON} -m venv --without-pip /opt/build \
    && ${PYTHON} -m venv --without-pip /opt/bellwether \
    && rm -f /opt/bellwether/bin/*ctivate* \
    && pip --python /opt/build/bin/python install --no-compile --only-binary :all: --require-hashes --requirement /requirements/build.lock

# The operator's Python distributions, but for what nothing of ours imports: Arrow's Flight, the second, asynchronous
# half of the Kubernetes client, and the models of all AWS services but those that give credentials. Files that a wheel
# holds three times become links.
FROM backend AS distributions
COPY requirements/runtime.lock /requirements/
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    --mount=type=secret,id=certificates.pem,target=/run/machine/certificates.pem \
    pip --python /opt/bellwether/bin/python install --no-compile --only-binary :all: --require-hashes --requirement /requirements/runtime.lock \
    && cd /opt/bellwether/lib/${PYTHON}/site-packages \
    && rm -rf */tests kubernetes/aio pyarrow/include pyarrow/src pyarrow/*flight* pyarrow/*_cpp_tests* \
    && find botocore/data -mindepth 1 -maxdepth 1 -type d ! -name sts ! -name 'sso*' ! -name signin -exec rm -rf {} + \
    && find . \( -name '*.pxd' -o -name '*.pyx' -o -name '*.pyi' -o -path '*botocore/data*examples-*.json' \) -delete \
    && for whole in pyarrow/lib*.so.*.*.*; do for copy in "$whole" "${whole%%.so.*}.so"; do \
        cmp --silent "$copy" "${whole%.*.*}" && ln --symbolic --force "$(basename "${whole%.*.*}")" "$copy"; done; done \
    && ${PYTHON} -m compileall -q -f --invalidation-mode unchecked-hash .

# Bellwether itself, as a wheel.
FROM backend AS application
COPY . /source/
RUN pip --python /opt/build/bin/python wheel --no-index --no-deps --no-build-isolation --wheel-dir /wheels /source \
    && touch /before \
    && pip --python /opt/bellwether/bin/python install --no-compile --no-index --no-deps /wheels/*.whl \
    && ${PYTHON} -m compileall -q -f --invalidation-mode unchecked-hash /opt/bellwether/lib/${PYTHON}/site-packages \
    && mkdir /staged-application \
    && find opt/bellwether -cnewer /before ! -type d -print0 \
    | tar --create --null --no-recursion --files-from - \
    | tar --extract --directory /staged-application

# PySpark's distributions: what the environment lacks of spark.lock. PySpark comes as a source distribution; its wheel
# is made with the locked setuptools. RocksDB is for streams with state, of which we have none.
FROM distributions AS spark-distributions
COPY requirements/spark.lock /requirements/
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    --mount=type=secret,id=certificates.pem,target=/run/machine/certificates.pem \
    touch /before \
    && grep --extended-regexp --only-matching '^[a-zA-Z0-9._-]+==' /requirements/runtime.lock >/had \
    && awk 'NR == FNR { had[$1]; next } /^[^ ]/ { split($1, pin, "=="); wanted = !((pin[1] "==") in had) } wanted' \
        /had /requirements/spark.lock >/requirements/lacking.lock \
    && pip --python /opt/build/bin/python wheel --no-deps --no-build-isolation --require-hashes --wheel-dir /wheels \
        --requirement /requirements/lacking.lock \
    && pip --python /opt/bellwether/bin/python install --no-compile --no-index --no-deps /wheels/*.whl \
    && rm -rf /wheels \
    && cd /opt/bellwether/lib/${PYTHON}/site-packages \
    && rm -rf pyspark/examples pyspark/data pyspark/jars/rocksdbjni-*.jar pandas/tests \
    && find numpy scipy -type d -name tests -prune -exec rm -rf {} + \
    && find . \( -name '*.pxd' -o -name '*.pyx' -o -name '*.pyi' \) -delete \
    && find . -name '*.py' -cnewer /before | ${PYTHON} -m compileall -q -f --invalidation-mode unchecked-hash -i - \
    && mkdir /staged-spark-distributions \
    && cd / && find opt/bellwether -cnewer /before ! -type d -print0 \
    | tar --create --null --no-recursion --files-from - \
    | tar --extract --directory /staged-spark-distributions \
    && rm -rf /opt/bellwether

# The Java runtime: what its packages add to the system.
FROM system AS java
ARG JAVA=openjdk-21-jre-headless
RUN --mount=type=secret,id=apt.conf,target=/etc/apt/apt.conf.d/zz-machine.conf \
    --mount=type=secret,id=certificates.pem,target=/run/machine/certificates.pem \
    touch /before \
    && apt-get install --yes --no-install-recommends ${JAVA} procps \
    && ln -s "$(dirname "$(dirname "$(readlink -f /usr/bin/java)")")" /usr/lib/jvm/default \
    && mkdir /staged-java \
    && find . -xdev -cnewer /before ! -type d ! -path './staged*' -print0 \
    | tar --create --null --no-recursion --anchored --wildcards --wildcards-match-slash \
        --exclude-from /without --files-from - \
    | tar --extract --preserve-permissions --directory /staged-java \
    && find /staged-java -type f -perm /6000 -exec chmod a-s {} +

# Settings first: they cost nothing while there are no files yet. HOME is the one place that can be written.
FROM scratch AS operator
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="bellwether" \
      org.opencontainers.image.description="Moves leadership away from sick Apache Kafka brokers, and back when they are healthy." \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="The Bellwether authors" \
      org.opencontainers.image.source="https://github.com/bellwether-kafka/bellwether"
ENV PATH=/opt/bellwether/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/tmp \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /tmp
EXPOSE 9464 8080
STOPSIGNAL SIGTERM
# As process 1 a program ignores every signal that it has no handler for, and inherits orphans: tini is there for both.
ENTRYPOINT ["/usr/bin/tini", "--", "bellwether"]
CMD ["--help"]
COPY --from=system /staged /
COPY --from=distributions /opt/bellwether /opt/bellwether
COPY --from=application /staged-application /

FROM operator AS spark
LABEL org.opencontainers.image.title="bellwether-spark" \
      org.opencontainers.image.description="Bellwether's Spark jobs: measures loads and plans leadership."
ENV JAVA_HOME=/usr/lib/jvm/default
ENTRYPOINT ["/usr/bin/tini", "--", "spark-entrypoint"]
CMD ["--help"]
COPY --from=java /staged-java /
COPY --from=spark-distributions /staged-spark-distributions /
COPY --chmod=0755 spark/entrypoint.sh /opt/bellwether/bin/spark-entrypoint

# The last stage is what a build without a target makes.
FROM operator
