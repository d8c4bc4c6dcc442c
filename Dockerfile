# The image of the operator and the manager: static binaries, certificates, no shell, not root. The operator starts decrypt; the chart starts the
# manager by the command /manager.
# docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=v0.1.0 -t <registry>/kubeop/operator:v0.1.0 .
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION=dev COMMIT=unknown
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -o /out/ -ldflags "-s -w \
      -X github.com/kubeop/kubeop/internal/version.Version=$VERSION -X github.com/kubeop/kubeop/internal/version.Commit=$COMMIT" \
    ./cmd/operator ./cmd/manager && \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -o /out/decrypt -ldflags "-s -w" ./cmd/decrypt

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/operator /out/decrypt /out/manager /
USER 65532:65532
ENTRYPOINT ["/operator"]
