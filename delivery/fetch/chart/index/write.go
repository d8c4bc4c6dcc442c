package index

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// Write writes an index to an empty file. On an error the content of the file is unusable. Errors: ErrInvalid and ErrTooLarge; those of the
// reader and of the file.
func Write(file *os.File, index io.Reader, from Stamp, doc int64) error {
	on := &writer{file: file, zip: zip.NewWriter(file)}
	if err := split(index, on, doc); err != nil {
		return err
	}
	return on.close(from)
}

// split writes the charts of an index.yaml one by one. It reads JSON token by token. An index with another layout than Helm's is parsed
// as a whole, if it is small.
func split(index io.Reader, on *writer, doc int64) error {
	in := bufio.NewReaderSize(index, 64*limit.KiB)
	start, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(start, byteOrderMark), " \t\r\n"), []byte("{")) {
		return writeJSON(in, on)
	}
	// Kept while it is small enough to be parsed as a whole.
	read := &limit.Beginning{Max: int(doc) + 1}
	err = writeLines(io.TeeReader(in, read), on)
	if !errors.Is(err, errOtherLayout) {
		return err
	}
	rest := io.MultiReader(bytes.NewReader(read.Bytes()), in)
	if int64(len(read.Bytes())) > doc {
		return failure.TooLarge("an index.yaml that is not laid out as Helm writes it", doc)
	}
	over := failure.TooLarge("an index.yaml that is not laid out as Helm writes it", doc)
	return writeWhole(limit.NewReader(rest, doc, over), on)
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// writeWhole parses an index as a whole.
func writeWhole(index io.Reader, on *writer) error {
	text, err := io.ReadAll(index)
	if err != nil {
		return err
	}
	var whole struct {
		Entries map[string][]indexEntry `yaml:"entries"`
	}
	if len(text) == 0 {
		return unreadable()
	}
	if err := readIndexed(text, &whole); err != nil {
		return err
	}
	if err := on.clear(); err != nil {
		return err
	}
	for chart, entries := range whole.Entries {
		if err := on.begin(chart); err != nil {
			return err
		}
		for _, entry := range entries {
			if err := on.entry(entry); err != nil {
				return err
			}
		}
	}
	return nil
}
