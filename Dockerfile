# Lexiscope in a container; models, indexes and caches are in the volume /data.
#   docker build -t lexiscope .
#   docker run --rm -it -v lexiscope:/data lexiscope precompute gpt2
#   docker run --rm -p 8000:8000 -v lexiscope:/data lexiscope
# With a GPU: docker run --gpus all ...
# For Ray (deploy/rayservice.yaml): docker build --build-arg EXTRAS=precompute,ray -t lexiscope:ray .
# With a folder of yours for the volume, add: --user "$(id -u):$(id -g)"
FROM python:3.11-slim

# Where to find a PyTorch build other than the default one (which carries CUDA): the address of an index with CPU wheels
# makes an image a tenth of the size, --build-arg TORCH_INDEX=...
ARG TORCH_INDEX=

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore

WORKDIR /src

# torch is a layer of its own, so that a change of the code does not fetch it again.
COPY constraints.txt ./
RUN pip install --no-deps ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$(grep '^torch==' constraints.txt)" \
    && pip install --constraint constraints.txt torch

ARG EXTRAS=precompute

COPY pyproject.toml README.md LICENSE ./
COPY app ./app
COPY docs/reading ./docs/reading
COPY lexiscope ./lexiscope
COPY precompute ./precompute
COPY static ./static
COPY templates ./templates
RUN pip install --constraint constraints.txt ".[$EXTRAS]"
# KubeRay uses wget to check a container.
RUN case "$EXTRAS" in *ray*) \
      apt-get update && apt-get install --yes --no-install-recommends wget && rm -rf /var/lib/apt/lists/* ;; \
    esac

RUN useradd --create-home --uid 10001 lexiscope \
    && install --directory --owner=lexiscope --group=lexiscope /data

ENV LEXISCOPE_DATA=/data \
    HF_HOME=/data/.cache/huggingface \
    NUMBA_CACHE_DIR=/data/.cache/numba

USER lexiscope
WORKDIR /data
VOLUME /data
ENTRYPOINT ["lexiscope"]
EXPOSE 8000
CMD ["serve", "--host", "0.0.0.0"]
