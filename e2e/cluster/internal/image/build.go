// Package image builds container images from static binaries, without a container engine and without base images.
package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// user is the UID and GID of the process, the same as nonroot of distroless images.
const user = 65532

// hostCertificates is the path of Debian's certificate authorities. Images have them at the same path.
const hostCertificates = "/etc/ssl/certs/ca-certificates.crt"

// file is an entry of the layer. Nil content means a directory.
type file struct {
	name    string
	mode    int64
	content []byte
}

// FromBinary returns an image with one layer, and the binary as its entrypoint. others are additional binaries in the same folder. All must be
// static, because the image contains only them, an empty /tmp and the host's certificate authorities.
func FromBinary(path string, others ...string) (v1.Image, error) {
	files := []file{
		{name: "tmp/", mode: 0o1777},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "nonroot:x:%d:%[1]d::/tmp:/none\n", user)},
	}
	for _, path := range append([]string{path}, others...) {
		if err := CheckStatic(path); err != nil {
			return nil, err
		}
		binary, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the binary: %w", err)
		}
		files = append(files, file{name: filepath.Base(path), mode: 0o755, content: binary})
	}
	entrypoint := "/" + filepath.Base(path)
	// If the host has no authorities, the image has none either. Then only HTTPS from its containers fails.
	if certificates, err := os.ReadFile(hostCertificates); err == nil {
		files = append(files, file{name: hostCertificates[1:], mode: 0o644, content: certificates})
	}
	return build(files, v1.Config{
		Entrypoint: []string{entrypoint}, User: fmt.Sprintf("%d:%[1]d", user), WorkingDir: "/",
		Env: []string{"PATH=/", "HOME=/tmp", "SSL_CERT_FILE=" + hostCertificates},
	})
}

// CheckStatic returns an error if the binary needs a dynamic loader, because the images have none.
func CheckStatic(path string) error {
	binary, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s is no Linux binary: %w", path, err)
	}
	defer binary.Close()
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is not static: build it with CGO_ENABLED=0", path)
		}
	}
	return nil
}

func build(files []file, config v1.Config) (v1.Image, error) {
	data, err := archive(files)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}, tarball.WithCompressionLevel(1)) // images are pushed over loopback, so time matters more than size
	if err != nil {
		return nil, fmt.Errorf("making the layer: %w", err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	described, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image's configuration: %w", err)
	}
	described = described.DeepCopy()
	described.OS, described.Architecture, described.Config = "linux", runtime.GOARCH, config
	image, err = mutate.ConfigFile(image, described)
	if err != nil {
		return nil, fmt.Errorf("configuring the image: %w", err)
	}
	return image, nil
}

// archive returns a tar archive without times, so that the same binary always produces the same image.
func archive(files []file) ([]byte, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg}
		if f.content == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("writing %s to the layer: %w", f.name, err)
		}
		if _, err := writer.Write(f.content); err != nil {
			return nil, fmt.Errorf("writing %s to the layer: %w", f.name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("closing the layer: %w", err)
	}
	return buffer.Bytes(), nil
}
