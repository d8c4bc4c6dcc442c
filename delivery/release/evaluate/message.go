package evaluate

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/kubeop/kubeop/delivery/message"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// reader bounds a message. Values of charts are nested as deep as their YAML may be.
var reader = message.NewReader(message.Limits{Items: 16 << 20, Depth: 10_000})

// Limits of an answer. An answer is compressed, because it may wait in memory: an evaluation needs no worker, but the step after it does.
const (
	// maxEvaluated is the maximum size of an answer, in bytes.
	maxEvaluated = 16 << 20
	// maxPacked is the maximum size of a compressed answer, with fast compression. A release record has 1 MiB for everything, with the best
	// compression.
	maxPacked = 3 << 20
)

// pack encodes the answer of an evaluation. An answer larger than maxEvaluated is encoded as well; the parent refuses it and reports its
// limit.
func pack(out *Output) ([]byte, error) {
	text, err := message.Write(out)
	if err != nil || len(text) > maxEvaluated {
		return text, err
	}
	var packed bytes.Buffer
	to, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := to.Write(text); err != nil {
		return nil, err
	}
	if err := to.Close(); err != nil {
		return nil, err
	}
	if packed.Len() > maxPacked {
		return pack(failedWith(fault.Render(manifest.ErrTooLargeToRecord)))
	}
	return packed.Bytes(), nil
}

// Unpack decodes an answer.
func Unpack(answer []byte, out *Output) error {
	from, err := gzip.NewReader(bytes.NewReader(answer))
	if err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(from, maxEvaluated+1))
	if err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	if len(text) > maxEvaluated {
		return fmt.Errorf("reading an answer: it is larger than %d MiB", maxEvaluated>>20)
	}
	return reader.Read(text, out)
}

// failedWith returns the answer with an error.
func failedWith(err error) *Output {
	tooLarge := errors.Is(err, fault.ErrTooLarge) || errors.Is(err, yamlcheck.ErrTooLarge)
	rendering, cause := fault.RenderCause(err)
	return &Output{Error: cause.Error(), Rendering: rendering, Render: errors.Is(err, fault.ErrRender), TooLarge: tooLarge}
}
