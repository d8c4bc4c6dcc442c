package chart

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/chart/index"
	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

// archive returns the archive of a version, and downloads it when it is missing. An archive is downloaded every time if neither the
// repository nor the source has a digest of it.
func (s *Store) archive(ctx context.Context, r request, v index.Version, get func(context.Context) (io.ReadCloser, error)) (Archive, error) {
	expected, err := expectedDigest(r.Digest, v.Digest)
	if err != nil {
		return Archive{}, fmt.Errorf("version %s: %w", few.Quote(v.Name), err)
	}
	download := func() (string, error) {
		body, err := get(ctx)
		if err != nil {
			return "", err
		}
		body = s.Disk.Meter(ctx, r.Tenant, body)
		defer body.Close()
		return s.keep(r.folder, expected, body)
	}
	sum := expected.hex
	if sum == "" {
		sum, err = s.downloads.Do(ctx, r.folder+" "+r.Name+" "+v.Name, r.arrived, download)
	} else {
		err = s.downloadOnce(ctx, r.folder, sum, download)
	}
	if err != nil {
		return Archive{}, fmt.Errorf("version %s: %w", few.Quote(v.Name), err)
	}
	found := Archive{Path: archivePath(r.folder, sum), Name: r.Name, Version: v.Name, Digest: "sha256:" + sum}
	s.Used.Mark(found.Path)
	s.Disk.Claim(r.Tenant, found.Path)
	return found, nil
}

func archivePath(folder, sum string) string { return filepath.Join(folder, sum+archiveEnd) }

const archiveEnd = ".tgz"

// downloadOnce downloads an archive with a known digest unless the store has it.
func (s *Store) downloadOnce(ctx context.Context, folder, sum string, download func() (string, error)) error {
	path := archivePath(folder, sum)
	unlock, err := s.Locks.Lock(ctx, path)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		// Under the lock, so that a sweep either sees the mark or has already removed the file.
		s.Used.Mark(path)
		return nil
	}
	_, err = download()
	return err
}

// expected is the digest that an archive must have, in hex; "" for any.
type expected struct {
	hex string
	// listed is set if the repository lists this digest.
	listed bool
}

// expectedDigest compares the digest that the source pins with the one that the repository lists; either may be empty.
func expectedDigest(pinned, listed string) (expected, error) {
	pinned = strings.TrimPrefix(pinned, "sha256:")
	listed = strings.ToLower(strings.TrimPrefix(listed, "sha256:"))
	if listed != "" && !disk.IsSHA256(listed) {
		return expected{}, failure.New(failure.ErrInvalid, "the repository lists the digest %q, which is not a SHA-256", few.Quote(listed))
	}
	if pinned != "" && listed != "" && pinned != listed {
		return expected{}, anotherDigest(listed, pinned)
	}
	return expected{hex: cmp.Or(listed, pinned), listed: listed != ""}, nil
}

func anotherDigest(got, pinned string) error {
	return failure.New(failure.ErrDigest, "its archive has the digest sha256:%s, and the app pins sha256:%s: find out why it changed, and write the new digest in Git if that is right", got, pinned)
}

// compare verifies the digest of an archive.
func (e expected) compare(got string) error {
	switch {
	case e.hex == "" || e.hex == got:
		return nil
	case e.listed:
		return failure.New(failure.ErrServer, "its content has the digest sha256:%s, and the repository lists sha256:%s: publish the version again under a new number", got, e.hex)
	}
	return anotherDigest(got, e.hex)
}

// keep writes an archive under its digest, atomically, and returns the digest.
func (s *Store) keep(folder string, want expected, body io.Reader) (string, error) {
	start := bufio.NewReader(limit.NewReader(body, s.limits.chart, chartTooLarge(s.limits.chart)))
	magic, err := start.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", disk.DownloadFailed("the chart", folder, err)
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return "", failure.New(failure.ErrInvalid, "what the repository serves as the chart is not a gzip archive: ask who publishes it, or name another version in Git")
	}
	file, err := disk.CreateIn(folder)
	if err != nil {
		return "", err
	}
	defer disk.Discard(file)
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, sum), start); err != nil {
		return "", disk.DownloadFailed("the chart", folder, err)
	}
	got := hex.EncodeToString(sum.Sum(nil))
	if err := want.compare(got); err != nil {
		return "", err
	}
	if want.hex == "" {
		if err := s.checkComplete(file); err != nil {
			return "", err
		}
	}
	if err := file.Sync(); err != nil {
		return "", disk.Writing(folder, err)
	}
	if err := os.Rename(file.Name(), archivePath(folder, got)); err != nil {
		return "", disk.Writing(folder, err)
	}
	return got, nil
}

// maxInflation is how many times its size an archive may inflate to before the search for its end stops.
const maxInflation = 20

// checkComplete checks that an archive without a digest is complete: some servers truncate an answer without an error.
func (s *Store) checkComplete(archive io.ReadSeeker) error {
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading the chart back: %w", err)
	}
	inflated, err := gzip.NewReader(archive)
	if err == nil {
		_, err = io.CopyN(io.Discard, inflated, maxInflation*s.limits.chart)
	}
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	if local := (*fs.PathError)(nil); errors.As(err, &local) {
		return fmt.Errorf("reading the chart back: %w", err)
	}
	return failure.New(failure.ErrServer, "what the repository serves as the chart is not a whole gzip archive: ask who publishes it, or name another version in Git")
}

// limits bound what one chart can cost. They are fields so that tests can lower them. Sizes are in bytes; exceeding a time limit is a
// transient error.
type limits struct {
	index    int64 // a Helm repository's index.yaml
	indexDoc int64 // what is parsed at once of an index.yaml: one version, or the whole file when Helm did not write it
	chart    int64 // a chart archive

	transport.Timeouts
}

func defaultLimits() limits {
	return limits{index: 64 * limit.MiB, indexDoc: 2 * limit.MiB, chart: 20 * limit.MiB, Timeouts: transport.DefaultTimeouts()}
}

func chartTooLarge(max int64) error {
	return failure.New(failure.ErrChartTooLarge, "the chart is larger than the limit of %s: leave out of it what it does not need, with .helmignore where it is made", failure.Size(max))
}
