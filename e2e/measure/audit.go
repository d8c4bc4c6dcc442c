// Package measure counts what an operator costs: requests in the API server's audit log, its own metrics, CPU and memory.
package measure

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/e2e/stage"
)

// Request is a kind of request that an API server answered.
type Request struct {
	// Verb is the API server's verb, with the prefix "dry-run" for dry runs, or an HTTP method in lower case.
	Verb string
	// Resource is the resource with its subresource, or the document of discovery.
	Resource string
}

func (r Request) String() string { return r.Verb + " " + r.Resource }

// Writes reports whether the request changes stored objects. Dry runs and reviews, such as SubjectAccessReviews, do not.
func (r Request) Writes() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection", "post", "put":
		return !strings.HasSuffix(r.Resource, "accessreviews") && !strings.HasSuffix(r.Resource, "tokenreviews")
	}
	return false
}

// Counts are requests by kind. Requests that no app causes are counted separately: watches, which are reopened regularly, and renewals of the
// leader's lease.
type Counts struct {
	Requests map[Request]int
	// Refused are the requests with an answer of 400 or more. They are also in Requests.
	Refused map[Request]int
	Watches map[Request]int
	Leases  int
}

// NewCounts returns empty counts.
func NewCounts() Counts {
	return Counts{Requests: map[Request]int{}, Refused: map[Request]int{}, Watches: map[Request]int{}}
}

func (c Counts) clone() Counts {
	return Counts{Requests: maps.Clone(c.Requests), Refused: maps.Clone(c.Refused), Watches: maps.Clone(c.Watches), Leases: c.Leases}
}

// Since returns the difference from earlier counts.
func (c Counts) Since(earlier Counts) Counts {
	return Counts{
		Requests: minus(c.Requests, earlier.Requests), Refused: minus(c.Refused, earlier.Refused),
		Watches: minus(c.Watches, earlier.Watches), Leases: c.Leases - earlier.Leases,
	}
}

// All returns the number of all requests, as the client counts them.
func (c Counts) All() int { return c.Cost() + sum(c.Watches) + c.Leases }

// Cost returns the number of requests without watches and leases.
func (c Counts) Cost() int { return sum(c.Requests) }

func minus(later, earlier map[Request]int) map[Request]int {
	rest := map[Request]int{}
	for r, n := range later {
		if n > earlier[r] {
			rest[r] = n - earlier[r]
		}
	}
	return rest
}

func sum(byKind map[Request]int) int {
	total := 0
	for _, n := range byKind {
		total += n
	}
	return total
}

// AuditLog counts the requests of some users in an API server's audit log while it is written. It follows the log when the API server rotates
// it, if Read is called at least once between two rotations.
type AuditLog struct {
	path string
	// users are user names, or prefixes of names if they end in ":". An impersonated request counts for the impersonated user.
	users []string

	file    *os.File
	reader  *bufio.Reader
	partial []byte
	counts  Counts
}

// FollowAudit opens the log and begins at its end.
func FollowAudit(path string, users []string) (*AuditLog, error) {
	l := &AuditLog{path: path, users: users, counts: NewCounts()}
	if err := l.open(); err != nil {
		return nil, err
	}
	if _, err := l.file.Seek(0, io.SeekEnd); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return l, nil
}

func (l *AuditLog) open() error {
	file, err := os.Open(l.path)
	if err != nil {
		return fmt.Errorf("opening the audit log: %w", err)
	}
	l.file, l.reader = file, bufio.NewReaderSize(file, 1<<20)
	return nil
}

// Close closes the file.
func (l *AuditLog) Close() { _ = l.file.Close() }

// Read counts what was written since the last read.
func (l *AuditLog) Read() (Counts, error) {
	for {
		// Check before the read. Then the read contains all lines of the old file if the log was moved.
		moved, err := l.moved()
		if err == nil {
			err = l.readFile()
		}
		if err != nil {
			return Counts{}, err
		}
		if !moved {
			return l.counts.clone(), nil
		}
		l.file.Close()
		if err := l.open(); err != nil {
			return Counts{}, err
		}
	}
}

// moved reports whether the path names another file than the one being read.
func (l *AuditLog) moved() (bool, error) {
	now, err := os.Stat(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // the old file was renamed, and the new one does not exist yet
	}
	if err != nil {
		return false, fmt.Errorf("reading the audit log: %w", err)
	}
	open, err := l.file.Stat()
	if err != nil {
		return false, fmt.Errorf("reading the audit log: %w", err)
	}
	return !os.SameFile(now, open), nil
}

func (l *AuditLog) readFile() error {
	for {
		part, err := l.reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			l.partial = append(l.partial, part...)
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the audit log: %w", err)
		}
		if err := l.count(append(l.partial, part...)); err != nil {
			return err
		}
		l.partial = nil
	}
}

// auditEvent has the fields of audit.k8s.io/v1 that counting needs.
type auditEvent struct {
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Namespace   string `json:"namespace"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// election reports whether the request is part of the leader election: it is for the lease, or creates the event about the leader. Only these
// events are in the operator's namespace.
func (e *auditEvent) election() bool {
	return e.ObjectRef.APIGroup == "coordination.k8s.io" || e.ObjectRef.Resource == "events" && e.ObjectRef.Namespace == stage.Namespace
}

// count counts one line. Most lines are of other users and are not parsed.
func (l *AuditLog) count(line []byte) error {
	if !slices.ContainsFunc(l.users, func(user string) bool { return bytes.Contains(line, []byte(user)) }) {
		return nil
	}
	var e auditEvent
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("reading a line of the audit log: %w", err)
	}
	if !l.counted(e.User.Username) || e.Stage == "RequestReceived" || e.Stage == "ResponseComplete" && e.long() {
		return nil
	}
	r := e.request()
	switch {
	case e.election() && e.Verb != "watch":
		l.counts.Leases++
		return nil
	case e.Verb == "watch":
		l.counts.Watches[r]++
		return nil
	}
	l.counts.Requests[r]++
	if e.ResponseStatus.Code >= 400 {
		l.counts.Refused[r]++
	}
	return nil
}

func (l *AuditLog) counted(user string) bool {
	return slices.ContainsFunc(l.users, func(one string) bool {
		return user == one || strings.HasSuffix(one, ":") && strings.HasPrefix(user, one)
	})
}

// long reports whether the API server logs the request twice, at the beginning and at the end of the answer.
func (e *auditEvent) long() bool {
	return e.Verb == "watch" || slices.Contains([]string{"log", "attach", "exec", "portforward", "proxy"}, e.ObjectRef.Subresource)
}

func (e *auditEvent) request() Request {
	verb := e.Verb
	if strings.Contains(e.RequestURI, "dryRun=All") {
		verb = "dry-run " + verb
	}
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	if resource == "" {
		resource = document(e.RequestURI)
	}
	return Request{Verb: verb, Resource: resource}
}

// document returns the name of a document that is no object: discovery, OpenAPI, the version.
func document(uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	switch first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); first {
	case "api", "apis":
		return "(discovery)"
	default:
		return "(" + first + ")"
	}
}
