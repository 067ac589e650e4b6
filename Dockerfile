# One image for every part: the first word after it says which one, as on the command line (`memproxy PART …`).
# Where PyTorch's builds for CPUs come from an index of their own: --build-arg PIP_EXTRA_INDEX_URL=…
# Another embedding model: --build-arg MEMPROXY_MEMORY_EMBEDDING_MODEL=…, and the same variable for the parts.
FROM python:3.11-slim AS build
ARG PIP_EXTRA_INDEX_URL=""
ENV PIP_EXTRA_INDEX_URL=${PIP_EXTRA_INDEX_URL} PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/memproxy
WORKDIR /src
COPY constraints.txt ./
RUN /opt/memproxy/bin/pip install "$(grep ^torch== constraints.txt)"
COPY pyproject.toml README.md LICENSE ./
COPY envoy/envoy.yaml envoy/envoy.yaml
COPY extproc extproc
COPY memory memory
# The small local model is left out: a deployment has a model server of its own.
RUN /opt/memproxy/bin/pip install -c constraints.txt .
ARG MEMPROXY_MEMORY_EMBEDDING_MODEL
RUN MEMPROXY_MODELS_DIR=/opt/memproxy/models /opt/memproxy/bin/memproxy prepare

FROM python:3.11-slim
COPY --from=build /opt/memproxy /opt/memproxy
# One user for all parts: they share a folder of sockets, and the turn log's files.
RUN useradd --uid 10001 --no-create-home memproxy \
    && install -d -o memproxy -g memproxy -m 0700 /var/lib/memproxy /run/memproxy
USER memproxy
WORKDIR /var/lib/memproxy
ENV PATH=/opt/memproxy/bin:$PATH PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false \
    MEMPROXY_DATA_DIR=/var/lib/memproxy MEMPROXY_RUN_DIR=/run/memproxy MEMPROXY_MODELS_DIR=/opt/memproxy/models
VOLUME ["/var/lib/memproxy", "/run/memproxy"]
ENTRYPOINT ["memproxy"]
CMD ["--help"]
