package service

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/kubeop/kubeop/delivery/message"
)

// Transport sends HTTP requests through the operator, and returns the operator's errors.
type Transport struct {
	// Ask sends a question to the operator.
	Ask func(question []byte) (answer []byte, err error)
}

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := request{Method: r.Method, URL: r.URL.String(), Header: r.Header}
	if r.Body != nil {
		defer r.Body.Close()
		body, err := io.ReadAll(io.LimitReader(r.Body, maxRequestBytes+1))
		if err != nil {
			return nil, fmt.Errorf("reading what is sent: %w", err)
		}
		asked.Body = body
	}
	question, err := message.Write(asked)
	if err != nil {
		return nil, fmt.Errorf("writing a request: %w", err)
	}
	text, err := t.Ask(question)
	if err != nil {
		return nil, err
	}
	var answer response
	if err := reader.Read(text, &answer); err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	return &http.Response{
		Status: fmt.Sprint(answer.Status, " ", http.StatusText(answer.Status)), StatusCode: answer.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.Header, Body: io.NopCloser(bytes.NewReader(answer.Body)), ContentLength: int64(len(answer.Body)), Request: r,
	}, nil
}
