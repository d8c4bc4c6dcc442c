// Package problem has the errors of the management API: problem details of RFC 9457 with a stable code. docs/errors.md has a row for each code.
package problem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-logr/logr"
)

// ContentType is the media type of a Problem.
const ContentType = "application/problem+json"

// Problem is the body of every answer from 400 on.
type Problem struct {
	Type   string `json:"type" format:"uri" doc:"urn:kubeop:problem: and the code." example:"urn:kubeop:problem:not-found"`
	Title  string `json:"title" doc:"What the code means. It is the same in every answer with this code."`
	Status int    `json:"status" doc:"The status of the answer."`
	Code   Code   `json:"code" doc:"The stable code. Programs decide by it, not by the texts." example:"not-found"`
	Detail string `json:"detail,omitempty" doc:"What is wrong with this request, and what to do."`
	// RequestID is set when the answer is written.
	RequestID string  `json:"requestId,omitempty" doc:"The id of the request, which the log of the manager has too."`
	Errors    []Fault `json:"errors,omitempty" doc:"Each part of the request that is wrong."`
	// Versions is set for a conflict about a file.
	Versions *Versions `json:"versions,omitempty" doc:"Of a conflict about a file: both versions."`
	// Wait is how long to wait before the next request, for the header Retry-After; 0 if that is unknown.
	Wait time.Duration `json:"-"`
}

// Versions has both versions of a file in a conflict. The caller may read the file.
type Versions struct {
	File    string `json:"file" doc:"The path in the repository."`
	Commit  string `json:"commit" doc:"The newest commit."`
	Current string `json:"current,omitempty" doc:"The file in that commit. It is not there if the file is not."`
	Yours   string `json:"yours,omitempty" doc:"The file as the request would have it there."`
}

// Fault is one wrong part of a request. It does not repeat the value, which may be a secret.
type Fault struct {
	Location string `json:"location,omitempty" doc:"Where: path, query, header or body, and the field; or a file of the repository, with line and column." example:"body.scopes[0]"`
	Message  string `json:"message" doc:"What is wrong there."`
}

// New returns a Problem with a code. The caller reads the detail, so it must not name anything that the caller may not know.
func New(code Code, detail string, faults ...Fault) *Problem {
	about := codes[code]
	return &Problem{Type: "urn:kubeop:problem:" + string(code), Title: about.title, Status: about.status, Code: code, Detail: detail, Errors: faults}
}

// late returns the answer for an operation that exceeded its deadline.
func late(ctx context.Context, err error) *Problem {
	logr.FromContextOrDiscard(ctx).Error(err, "Ending an operation that took too long")
	return New(TookTooLong, "Look whether something was written before you send the request again.")
}

// Error implements error.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return ContentType }

// Write answers a request with the problem, outside of the operations of huma.
func (p *Problem) Write(w http.ResponseWriter, requestID string) {
	answer := *p
	answer.RequestID = requestID
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Del("Content-Length")
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	// It fails only if the client disconnected.
	_ = json.NewEncoder(w).Encode(&answer)
}

// UnreadableBody is the error if the body of a request cannot be read, such as because the client disconnected, or sent invalid chunks.
type UnreadableBody struct{ Err error }

// Error implements error.
func (u *UnreadableBody) Error() string { return "reading the body: " + u.Err.Error() }

// Unwrap returns why.
func (u *UnreadableBody) Unwrap() error { return u.Err }

// huma has these as variables of its package. With them, what huma itself refuses, such as a body that is not JSON, becomes a Problem too.
func init() {
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return fromHuma(context.Background(), status, message, errs)
	}
	huma.ErrorFormatter = withoutErrors
	// Otherwise huma accepts a field in any case, also twice, and uses the last one.
	huma.ValidateStrictCasing = true
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		return fromHuma(ctx.Context(), status, message, errs)
	}
}

// maxFaults and maxLocation limit the size of an answer: a body may have any number of unknown fields, with names of any length.
const (
	maxFaults   = 50
	maxLocation = 200
)

func fromHuma(ctx context.Context, status int, message string, errs []error) *Problem {
	if unreadable := new(UnreadableBody); errors.As(errors.Join(errs...), &unreadable) {
		return New(BadRequest, "The body cannot be read: it ends early, or its chunks are wrong.")
	}
	if err := errors.Join(errs...); errors.Is(err, context.DeadlineExceeded) {
		return late(ctx, err)
	}
	code, known := byStatus[status]
	if !known && status < http.StatusInternalServerError {
		code = BadRequest
	}
	if code == "" || code == Internal {
		// The text of an unexpected error goes to the log only: it may name what the caller may not know.
		logr.FromContextOrDiscard(ctx).Error(errors.Join(errs...), "Answering with an internal error", "message", message)
		return New(Internal, "")
	}
	p := New(code, message)
	// Other errors are left out, because they may repeat a value.
	for _, err := range errs[:min(len(errs), maxFaults)] {
		var detail huma.ErrorDetailer
		if !errors.As(err, &detail) {
			continue
		}
		location, message := detail.ErrorDetail().Location, detail.ErrorDetail().Message
		if strings.HasPrefix(message, unreadableValue) {
			message = unreadableValue
		}
		p.Errors = append(p.Errors, Fault{Location: strings.ToValidUTF8(location[:min(len(location), maxLocation)], ""), Message: message})
	}
	return p
}

// unreadableValue is the beginning of the text of huma if a parameter cannot be parsed. The rest of that text may repeat the value.
const unreadableValue = "invalid value"

// withoutErrors formats the text of huma about a value that does not fit its format. It leaves out the error of the parser, which repeats the value.
func withoutErrors(format string, values ...any) string {
	for _, value := range values {
		if _, is := value.(error); is {
			text, _, _ := strings.Cut(format, ": %v")
			return text
		}
	}
	return fmt.Sprintf(format, values...)
}

// maxValues is how many values a body may have: the same as a file of a repository. A value needs far more memory than its text.
const maxValues = 100_000

// Unreadable says why a type of this module cannot be read from JSON. The caller gets this text, so it must not repeat what the caller sent.
type Unreadable string

// Error implements error.
func (u Unreadable) Error() string { return string(u) }

// JSON parses bodies. Its errors say where a body is wrong, but do not repeat the value.
var JSON = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: func(data []byte, into any) error {
	if values(data) > maxValues {
		return fmt.Errorf("has more than %d values", maxValues)
	}
	err := huma.DefaultJSONFormat.Unmarshal(data, into)
	var syntax *json.SyntaxError
	var unfit *json.UnmarshalTypeError
	var unreadable Unreadable
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("is no JSON at byte %d", syntax.Offset)
	case errors.As(err, &unfit):
		return fmt.Errorf("has a value of another type at byte %d", unfit.Offset)
	case errors.As(err, &unreadable):
		return unreadable
	}
	return errors.New("has a value that cannot be read")
}}

// values returns an upper bound for the number of values in a JSON text: each but the first follows one of the characters "[", "{" and ",".
func values(data []byte) int {
	n, text := 1, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			text = !text
		case text && c == '\\':
			i++
		case !text && (c == '[' || c == '{' || c == ','):
			n++
		}
	}
	return n
}
