# The operator's image: a Python, and one virtual environment with the operator and what it needs, all held to hashes.
#
#   docker build --tag dispatch-operator:0.1.0 .

FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
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

FROM python:3.13-slim
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="dispatch-operator" \
      org.opencontainers.image.description="Turns a neutral DispatchStart request into exactly one Kubeflow TrainJob, safely." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"
# The Kubernetes client asks for the home and kopf for the name of a user that /etc/passwd does not know.
ENV HOME=/ \
    PATH=/opt/dispatch-operator/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    USER=dispatch-operator
COPY --from=build /opt/dispatch-operator /opt/dispatch-operator
# As a number, so that the kubelet can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["dispatch-operator"]
# Which namespaces to serve is never decided by leaving it out: the chart says it, and so must everybody else.
CMD ["--help"]
