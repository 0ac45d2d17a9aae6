# The service in a container. Build: docker build -t holue .   Run: see compose.yaml and docs/operations.md.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/holue \
    && /opt/holue/bin/pip install --no-cache-dir '.[serve,postgres]'

FROM python:3.13-slim
RUN groupadd --system --gid 10001 holue \
    && useradd --system --uid 10001 --gid holue --home-dir /var/lib/holue --create-home holue \
    && install --directory --owner=holue --group=holue /var/lib/holue/galleries
COPY --from=build /opt/holue /opt/holue
ENV PATH=/opt/holue/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/var/lib/holue/numba \
    HOLUE_SERVICE_HOST=0.0.0.0 \
    HOLUE_SERVICE_PORT=8075 \
    HOLUE_SERVICE_TLS_CERT=/run/tls/cert.pem \
    HOLUE_SERVICE_TLS_KEY=/run/tls/key.pem
USER 10001:10001
WORKDIR /var/lib/holue
VOLUME /var/lib/holue
EXPOSE 8075
# The certificate is not checked here: the request does not leave the container.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import ssl, urllib.request as u; u.urlopen('https://127.0.0.1:8075/readyz', timeout=4, context=ssl._create_unverified_context())"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["holue"]
CMD ["serve", "/var/lib/holue/galleries"]
