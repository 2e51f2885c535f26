# Makes the kaas executable, then an image that holds it and the C library, and nothing else: no shell, no Node, no Deno.
FROM node:24-bookworm-slim AS build
RUN npm install --global deno@2.9.6
WORKDIR /build
COPY deno.json deno.lock main.ts ./
COPY cli cli
COPY lib lib
RUN deno task compile && mkdir data

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /build/kaas /usr/local/bin/kaas
# The data folder belongs to the image's own user, so that a new volume mounted there does too.
COPY --from=build --chown=65532:65532 /build/data /data
USER 65532:65532
VOLUME /data
EXPOSE 9092
ENTRYPOINT ["/usr/local/bin/kaas"]
CMD ["broker", "--data", "/data", "--listen", "0.0.0.0:9092"]
