// Package index keeps the index.yaml of Helm repositories, and finds charts and their versions in it.
package index

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// writer stores a Helm repository's index.yaml on disk, split into a zip file with one entry per chart: its lines, as a list in YAML. So
// one chart is found without reading the others, the file takes a tenth of the space, and the checksums reveal what a full disk or a power
// cut damaged.
type writer struct {
	file *os.File
	zip  *zip.Writer
	// part is the current chart, nil before the first one and for one with an invalid name.
	part   io.Writer
	charts int
}

// Stamp has the headers with which to ask a server whether its index has changed.
type Stamp struct {
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
}

// maxStamp is the size of a zip file's comment, in bytes.
const maxStamp = 60 * limit.KiB

// begin starts a chart.
func (s *writer) begin(chart string) error {
	s.part = nil
	if !IsName(chart) {
		return nil
	}
	if s.charts++; s.charts > maxIndexCharts {
		return failure.TooMany("the number of charts in the repository's index.yaml", maxIndexCharts)
	}
	part, err := s.zip.CreateHeader(&zip.FileHeader{Name: chart, Method: zip.Deflate})
	if err != nil {
		return fmt.Errorf("writing the chart %s of the index.yaml: %w", chart, err)
	}
	s.part = part
	return nil
}

// line adds a line to the current chart.
func (s *writer) line(line []byte) error {
	if s.part == nil {
		return nil
	}
	for _, part := range [][]byte{line, []byte("\n")} {
		if _, err := s.part.Write(part); err != nil {
			return fmt.Errorf("writing a line of the index.yaml: %w", err)
		}
	}
	return nil
}

// entry adds a version to the current chart; JSON is YAML.
func (s *writer) entry(entry indexEntry) error {
	entry.URLs = first(entry.URLs)
	size := len(entry.Version) + len(entry.Digest)
	for _, url := range entry.URLs {
		size += len(url)
	}
	if size >= maxIndexLine { // before it is encoded
		return failure.TooLarge("a value in the repository's index.yaml", maxIndexLine)
	}
	text, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("encoding a version of the index.yaml: %w", err)
	}
	if len(text) >= maxIndexLine {
		return failure.TooLarge("a value in the repository's index.yaml", maxIndexLine)
	}
	return s.line(append([]byte("- "), text...))
}

// clear empties the file.
func (s *writer) clear() error {
	if err := s.file.Truncate(0); err != nil {
		return fmt.Errorf("emptying the file of the index.yaml: %w", err)
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("returning to the start of the file of the index.yaml: %w", err)
	}
	s.zip, s.part, s.charts = zip.NewWriter(s.file), nil, 0
	return nil
}

func (s *writer) close(from Stamp) error {
	text, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("encoding the stamp of the index.yaml: %w", err)
	}
	if len(text) < maxStamp {
		if err := s.zip.SetComment(string(text)); err != nil {
			return fmt.Errorf("adding the stamp of the index.yaml: %w", err)
		}
	}
	if err := s.zip.Close(); err != nil {
		return fmt.Errorf("finishing the file of the index.yaml: %w", err)
	}
	return nil
}
