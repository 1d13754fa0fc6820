# The operator's image: a Python, one virtual environment with the operator and what it needs, all held to hashes, and
# nothing else: no shell, no pip, no compiler.
#
#   docker build --tag dispatch-operator:0.1.0 .
#
# A release names its base by digest: `make image`, and docs/release.md.
ARG BASE=python:3.13-slim
FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    ROOT=/image \
    VENV=/opt/dispatch-operator
WORKDIR /build
# Dependencies first: they change less often than the code, and are then taken from the layer cache. What builds the
# wheel has a virtual environment of its own, and the one that is kept has no pip.
COPY requirements/build.txt requirements/run.txt requirements/
RUN python -m venv tools && \
    tools/bin/pip install --require-hashes --requirement requirements/build.txt && \
    python -m venv --without-pip "$VENV" && \
    tools/bin/pip --python "$VENV/bin/python" install --require-hashes --requirement requirements/run.txt
COPY pyproject.toml README.md LICENSE ./
COPY operator operator
RUN tools/bin/pip wheel --no-build-isolation --no-deps --wheel-dir dist . && \
    tools/bin/pip --python "$VENV/bin/python" install --no-index --no-deps dist/*.whl && \
    tools/bin/pip --python "$VENV/bin/python" check && \
    "$VENV/bin/dispatch-operator" --help
COPY tools/image_tree.py ./
RUN python image_tree.py "$VENV" "$ROOT"

FROM scratch
ARG BASE
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="dispatch-operator" \
      org.opencontainers.image.description="Turns a neutral DispatchStart request into exactly one Kubeflow TrainJob, safely." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="$BASE" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.source="$SOURCE" \
      org.opencontainers.image.version="$VERSION"
# The Kubernetes client asks for the home and kopf for the name of a user that /etc/passwd does not know.
ENV HOME=/ \
    PATH=/opt/dispatch-operator/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    USER=dispatch-operator
COPY --from=build /image /
# As a number, so that the kubelet can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["dispatch-operator"]
# Which namespaces to serve is never decided by leaving it out: the chart says it, and so must everybody else.
CMD ["--help"]
