# The same entry as on a machine of your own: `make run`. Built with the demo lake inside, so that it starts at once.
#
#   docker build -t lakeview .
#   docker run --rm -p 127.0.0.1:8501:8501 lakeview
#   docker run --rm -p 127.0.0.1:8501:8501 -v /data/lake:/lake:ro -e LAKEVIEW_ROOTS=/lake lakeview
FROM python:3.12-slim

RUN apt-get update \
    && apt-get install -y --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home --uid 1000 lakeview \
    && install -d -o lakeview -g lakeview /app
USER lakeview
WORKDIR /app

# Packages first: they change less often than the code.
COPY --chown=lakeview:lakeview Makefile requirements.txt ./
COPY --chown=lakeview:lakeview .ci .ci
RUN make install

COPY --chown=lakeview:lakeview . .
RUN make demo

# Inside the container every interface; which of them the world sees is decided by `docker run -p`.
ENV ADDRESS=0.0.0.0 PORT=8501
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD [".venv/bin/python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['PORT'] + '/_stcore/health', timeout=4)"]

CMD ["make", "run"]
