# syntax=docker/dockerfile:1
# An image of paperwasp: see docs/reference/operations.md#in-a-container.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml CMakeLists.txt README.md LICENSE NOTICE ./
COPY tools/build_backend.py tools/
COPY src src
RUN python -m venv /opt/paperwasp
RUN /opt/paperwasp/bin/python -m pip install --no-cache-dir .

FROM python:${PYTHON}-slim
RUN groupadd --gid 10001 paperwasp && useradd --uid 10001 --gid 10001 --no-create-home paperwasp && install --directory --owner 10001 --group 10001 --mode 0750 /var/lib/paperwasp
COPY --from=build /opt/paperwasp /opt/paperwasp
ENV PATH=/opt/paperwasp/bin:$PATH
USER 10001:10001
WORKDIR /var/lib/paperwasp
VOLUME /var/lib/paperwasp
EXPOSE 8080 19071
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=120s --retries=3 CMD ["python", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 19071, timeout=5); c.request('GET', '/state/v1/health'); c.getresponse()"]
ENTRYPOINT ["paperwasp"]
CMD ["serve", "--host", "0.0.0.0", "--data-dir", "/var/lib/paperwasp"]
