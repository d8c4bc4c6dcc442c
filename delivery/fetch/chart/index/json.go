package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// maxNesting bounds how deep values of an index in JSON are nested; Helm's have less than five levels.
const maxNesting = 64

// jsonIndex reads an index in JSON without keeping what it has read.
type jsonIndex struct {
	*json.Decoder
	window *window
}

// writeJSON writes the charts of an index in JSON.
func writeJSON(index io.Reader, on *writer) error {
	w := &window{r: index, max: maxIndexLine}
	j := jsonIndex{Decoder: json.NewDecoder(w), window: w}
	err := j.object(func(key string) error {
		if key != "entries" {
			return j.skip()
		}
		return j.object(func(chart string) error {
			if err := on.begin(chart); err != nil {
				return err
			}
			return j.versions(on)
		})
	})
	if w.failed != nil {
		return w.failed
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errOtherLayout) {
		return unreadable()
	}
	return err
}

// token returns the next token, and frees what came before.
func (j jsonIndex) token() (json.Token, error) {
	j.window.seen = 0
	token, err := j.Token()
	if err != nil {
		return nil, fmt.Errorf("reading the index.yaml: %w", err)
	}
	return token, nil
}

// object calls value for each key of the next object, or of a null in its place.
func (j jsonIndex) object(value func(key string) error) error {
	open, err := j.token()
	if err != nil || open == nil {
		return err
	}
	if open != json.Delim('{') {
		return errOtherLayout
	}
	for j.More() {
		key, err := j.token()
		if err != nil {
			return err
		}
		if err := value(key.(string)); err != nil {
			return err
		}
	}
	_, err = j.token()
	return err
}

func (j jsonIndex) versions(on *writer) error {
	open, err := j.token()
	if err != nil || open == nil {
		return err
	}
	if open != json.Delim('[') {
		return errOtherLayout
	}
	for j.More() {
		var entry indexEntry
		j.window.seen = 0
		if err := j.Decode(&entry); err != nil {
			return fmt.Errorf("reading a version in the index.yaml: %w", err)
		}
		if err := on.entry(entry); err != nil {
			return err
		}
	}
	_, err = j.token()
	return err
}

// skip skips one value.
func (j jsonIndex) skip() error {
	for depth := 0; ; {
		token, err := j.token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
		if depth > maxNesting {
			return errOtherLayout
		}
	}
}

// window fails once more than max bytes were read since seen was set to 0, because such a value would be held in memory.
type window struct {
	r         io.Reader
	max, seen int64
	// failed is why reading ended early.
	failed error
}

func (w *window) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if w.seen += int64(n); w.seen > w.max {
		err = failure.TooLarge("a value in the repository's index.yaml", w.max)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		w.failed = err
	}
	return n, err
}
