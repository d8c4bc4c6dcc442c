// Package index keeps the index.yaml of Helm repositories, and finds charts and their versions in it.
package index

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// writer makes a Helm repository's index.yaml on disk, taken apart: a zip file in which each chart has an entry with its
// lines, as a list in YAML. So one chart is found without reading the others, the whole takes a tenth of the room, and
// what a full disk or a power cut left shows by its checksums.
type writer struct {
	file *os.File
	zip  *zip.Writer
	// part is the chart in hand, nil before the first and for one that nobody can ask for.
	part   io.Writer
	charts int
}

// Stamp is what a server gave to ask by whether its index has changed.
type Stamp struct {
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
}

// maxStamp is what fits into a zip file's comment, in bytes.
const maxStamp = 60 * limit.KiB

// Write writes an index to disk, whole or not at all.
func Write(path string, index io.Reader, from Stamp, doc int64) error {
	folder := filepath.Dir(path)
	file, err := disk.CreateIn(folder)
	if err != nil {
		return err
	}
	defer disk.Discard(file)
	on := &writer{file: file, zip: zip.NewWriter(file)}
	if err := takeApart(index, on, doc); err != nil {
		return disk.DownloadFailed("index.yaml", folder, err)
	}
	if err := on.close(from); err != nil {
		return disk.Writing(folder, err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return disk.Writing(folder, err)
	}
	return nil
}

// begin makes room for a chart.
func (s *writer) begin(chart string) error {
	s.part = nil
	if !IsName(chart) {
		return nil
	}
	if s.charts++; s.charts > maxIndexCharts {
		return failure.TooMany("the number of charts in the repository's index.yaml", maxIndexCharts)
	}
	part, err := s.zip.CreateHeader(&zip.FileHeader{Name: chart, Method: zip.Deflate})
	s.part = part
	return err
}

// line adds a line to the chart in hand.
func (s *writer) line(line []byte) error {
	if s.part == nil {
		return nil
	}
	if _, err := s.part.Write(line); err != nil {
		return err
	}
	_, err := s.part.Write([]byte("\n"))
	return err
}

// entry adds a version to the chart in hand; JSON is YAML.
func (s *writer) entry(entry indexEntry) error {
	entry.URLs = first(entry.URLs)
	size := len(entry.Version) + len(entry.Digest)
	for _, url := range entry.URLs {
		size += len(url)
	}
	if size >= maxIndexLine { // before it is written out
		return failure.TooLarge("a value in the repository's index.yaml", maxIndexLine)
	}
	text, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	if len(text) >= maxIndexLine {
		return failure.TooLarge("a value in the repository's index.yaml", maxIndexLine)
	}
	return s.line(append([]byte("- "), text...))
}

// clear takes everything off.
func (s *writer) clear() error {
	if err := s.file.Truncate(0); err != nil {
		return err
	}
	_, err := s.file.Seek(0, io.SeekStart)
	s.zip, s.part, s.charts = zip.NewWriter(s.file), nil, 0
	return err
}

func (s *writer) close(from Stamp) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	if len(text) < maxStamp {
		if err := s.zip.SetComment(string(text)); err != nil {
			return err
		}
	}
	return s.zip.Close()
}

// StampOf is the stamp of the index on disk; nothing when there is none, or one that cannot be read.
func StampOf(path string) Stamp {
	var from Stamp
	if kept, err := zip.OpenReader(path); err == nil {
		defer kept.Close()
		_ = json.Unmarshal([]byte(kept.Comment), &from)
	}
	return from
}

// LookUp reads the versions of a chart from an index on disk. One that is damaged is removed, to be downloaded again.
func LookUp(path, chart string, doc int64) ([]Version, error) {
	versions, err := lookUpIn(path, chart, doc)
	var ours *failure.Error
	if err == nil || errors.As(err, &ours) {
		return versions, err
	}
	_ = os.Remove(path)
	return nil, fmt.Errorf("reading the index.yaml that was kept, which is downloaded again: %w", err)
}

func lookUpIn(path, chart string, doc int64) ([]Version, error) {
	kept, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer kept.Close()
	// Not kept.Open, which fails when any name in it stands twice.
	at := slices.IndexFunc(kept.File, func(f *zip.File) bool { return f.Name == chart })
	if at < 0 {
		return nil, nil
	}
	part, err := kept.File[at].Open()
	if err != nil {
		return nil, err
	}
	defer part.Close()
	versions, err := readVersions(part, doc)
	// The checksum is at the end, and damage may pass for lines that make no sense.
	if _, damaged := io.Copy(io.Discard, part); damaged != nil {
		return nil, damaged
	}
	return versions, err
}
