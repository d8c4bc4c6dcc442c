package client

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// problemType is the media type of a Problem.
const problemType = "application/problem+json"

// maxProblem bounds what is read of an answer that refuses.
const maxProblem = 256 << 10

// Error is an answer that refuses.
type Error struct {
	// Problem is what the manager said. Of an answer that something else gave, such as a proxy, it has the Status, and no Code.
	Problem
	// RetryAfter is how long to wait before the same is asked again; 0 if the answer does not say.
	RetryAfter time.Duration
}

// Error implements error.
func (e *Error) Error() string {
	text := e.Title
	if e.Detail != "" {
		text = strings.TrimSuffix(text, ".") + ": " + e.Detail
	}
	for _, fault := range e.Errors {
		text += fmt.Sprintf(" %s: %s.", fault.Location, strings.TrimSuffix(fault.Message, "."))
	}
	about := strconv.Itoa(int(e.Status))
	if e.Code != "" {
		about += " " + string(e.Code)
	}
	if e.RequestID != "" {
		about += ", request " + e.RequestID
	}
	return strings.TrimSuffix(text, ".") + " (" + about + ")"
}

// refusalOf reads an answer from 300 on.
func refusalOf(answer *http.Response) error {
	refused := &Error{}
	if kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type")); err == nil && kind == problemType {
		text, err := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
		if err != nil {
			return fmt.Errorf("reading why it answers %d: %w", answer.StatusCode, err)
		}
		if err := json.Unmarshal(text, &refused.Problem); err != nil {
			return fmt.Errorf("reading why it answers %d: %w", answer.StatusCode, err)
		}
	}
	if refused.Code == "" {
		refused.Title, refused.Detail = http.StatusText(answer.StatusCode), "This is no answer of the management API: something before it gave it, or its URL is another one."
		if answer.StatusCode < http.StatusBadRequest {
			refused.Detail = "Redirections are not followed, because the token would go along: use the URL that the manager has."
		}
	}
	// What decides is the status that was received, not what a body says about it.
	refused.Status = int64(answer.StatusCode)
	if seconds, err := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 31); err == nil {
		refused.RetryAfter = time.Duration(seconds) * time.Second
	}
	return refused
}
