package index

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// StampOf returns the stamp of the index on disk; zero when there is none, or one that cannot be read.
func StampOf(path string) Stamp {
	var from Stamp
	if kept, err := zip.OpenReader(path); err == nil {
		defer kept.Close()
		_ = json.Unmarshal([]byte(kept.Comment), &from)
	}
	return from
}

// LookUp reads the versions of a chart from an index on disk. It deletes a damaged index, so that it is downloaded again.
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
	// Not kept.Open, which fails when any name in the archive occurs twice.
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
	// The checksum is at the end, and damaged lines may look like invalid YAML.
	if _, damaged := io.Copy(io.Discard, part); damaged != nil {
		return nil, damaged
	}
	return versions, err
}
