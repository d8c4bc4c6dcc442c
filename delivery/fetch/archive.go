package fetch

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

// archive returns the file with this digest ("sha256:<hex>"), downloading it when it is not there. Without a digest it
// is downloaded every time.
func (s *ChartStore) archive(ctx context.Context, folder, digest string, get func(context.Context) (io.ReadCloser, error)) (path, sum string, err error) {
	digest = strings.ToLower(strings.TrimPrefix(digest, "sha256:"))
	if digest != "" && !sha256Hex.MatchString(digest) {
		return "", "", fail(ErrInvalid, "the repository lists the digest %q, which is not a SHA-256", printable(digest))
	}
	path = filepath.Join(folder, digest+".tgz")
	if digest != "" {
		unlock, err := s.locks.lock(ctx, path)
		if err != nil {
			return "", "", err
		}
		defer unlock()
		if _, err := os.Stat(path); err == nil {
			return path, "sha256:" + digest, nil
		}
	}
	body, err := get(ctx)
	if err != nil {
		return "", "", err
	}
	defer body.Close()
	got, err := s.keep(folder, digest, body)
	if err != nil {
		return "", "", err
	}
	return filepath.Join(folder, got+".tgz"), "sha256:" + got, nil
}

// keep writes the archive under its digest, whole or not at all.
func (s *ChartStore) keep(folder, digest string, body io.Reader) (string, error) {
	start := bufio.NewReader(limit(body, "the chart", s.limits.chart))
	magic, err := start.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("downloading the chart: %w", err)
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return "", fail(ErrInvalid, "what the repository serves as the chart is not a gzip archive")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", writing(folder, err)
	}
	file, err := os.CreateTemp(folder, temporary)
	if err != nil {
		return "", writing(folder, err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, sum), start); err != nil {
		return "", fmt.Errorf("downloading the chart: %w", writingIfDisk(folder, err))
	}
	got := hex.EncodeToString(sum.Sum(nil))
	if digest != "" && got != digest {
		return "", fail(errServer, "the chart's content has the digest sha256:%s, and the repository lists sha256:%s: publish the version again under a new number", got, digest)
	}
	if err := file.Sync(); err != nil {
		return "", writing(folder, err)
	}
	if err := os.Rename(file.Name(), filepath.Join(folder, got+".tgz")); err != nil {
		return "", writing(folder, err)
	}
	return got, nil
}

// writingIfDisk explains an error of io.Copy that came from the file and not from the network.
func writingIfDisk(folder string, err error) error {
	var disk *os.PathError
	if errors.As(err, &disk) {
		return writing(folder, err)
	}
	return err
}
