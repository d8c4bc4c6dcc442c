package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// Lines are JSON values, each on a line.
type Lines []json.RawMessage

// sendForLines sends a request that is answered by JSON lines.
func sendForLines(ctx context.Context, r *request) (*Answer[Lines], error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	received, err := r.do(ctx, "application/x-ndjson, "+problemType)
	if err != nil {
		return nil, err
	}
	defer func() { _ = received.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(received.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s %s: %w", r.method, r.path, err)
	}
	answer := &Answer[Lines]{Status: received.StatusCode, Header: received.Header}
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); !json.Valid(line) {
			return nil, fmt.Errorf("reading the answer to %s %s: a line is no JSON", r.method, r.path)
		}
		answer.Body = append(answer.Body, line)
	}
	return answer, nil
}
