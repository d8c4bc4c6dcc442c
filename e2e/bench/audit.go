package main

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

// request is a kind of request that an API server answered.
type request struct {
	// Verb is the API server's, with "dry-run" before those that change nothing; or an HTTP method in small letters.
	Verb string
	// Resource is the resource with its subresource, or what of discovery was read.
	Resource string
}

func (r request) String() string { return r.Verb + " " + r.Resource }

// writes reports whether the request changes what is stored. A dry run changes nothing, and neither does a review, which
// is a question in the form of an object.
func (r request) writes() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection", "post", "put":
		return !strings.HasSuffix(r.Resource, "accessreviews") && !strings.HasSuffix(r.Resource, "tokenreviews")
	}
	return false
}

// counts are requests by kind. What is no cost of an app is kept apart: watches, which are opened again by the clock, and
// the renewals of the leader's lease.
type counts struct {
	Requests map[request]int
	// Refused are requests that were answered with 400 or more; they are in Requests too.
	Refused map[request]int
	Watches map[request]int
	Leases  int
}

func newCounts() counts {
	return counts{Requests: map[request]int{}, Refused: map[request]int{}, Watches: map[request]int{}}
}

func (c counts) clone() counts {
	return counts{Requests: maps.Clone(c.Requests), Refused: maps.Clone(c.Refused), Watches: maps.Clone(c.Watches), Leases: c.Leases}
}

// since returns what came after the earlier counts.
func (c counts) since(earlier counts) counts {
	return counts{
		Requests: minus(c.Requests, earlier.Requests), Refused: minus(c.Refused, earlier.Refused),
		Watches: minus(c.Watches, earlier.Watches), Leases: c.Leases - earlier.Leases,
	}
}

// all is every request, as the client counts them.
func (c counts) all() int { return c.cost() + sum(c.Watches) + c.Leases }

// cost is every request that is somebody's work.
func (c counts) cost() int { return sum(c.Requests) }

func minus(later, earlier map[request]int) map[request]int {
	rest := map[request]int{}
	for r, n := range later {
		if n > earlier[r] {
			rest[r] = n - earlier[r]
		}
	}
	return rest
}

func sum(byKind map[request]int) int {
	total := 0
	for _, n := range byKind {
		total += n
	}
	return total
}

// auditLog counts the requests of some users in an API server's audit log while it is written. The API server moves a
// large log away and begins a new one; the log is followed there, as long as it is read again before that happens twice.
type auditLog struct {
	path string
	// users are names or, where they end in ":", the beginnings of names. Who acts as somebody else is counted as who they
	// are.
	users []string

	file    *os.File
	reader  *bufio.Reader
	partial []byte
	counts  counts
}

// followAudit begins at the end of the log.
func followAudit(path string, users []string) (*auditLog, error) {
	l := &auditLog{path: path, users: users, counts: newCounts()}
	if err := l.open(); err != nil {
		return nil, err
	}
	if _, err := l.file.Seek(0, io.SeekEnd); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return l, nil
}

func (l *auditLog) open() error {
	file, err := os.Open(l.path)
	if err != nil {
		return fmt.Errorf("opening the audit log: %w", err)
	}
	l.file, l.reader = file, bufio.NewReaderSize(file, 1<<20)
	return nil
}

// close closes the file.
func (l *auditLog) close() { _ = l.file.Close() }

// read counts what was written since the last read.
func (l *auditLog) read() (counts, error) {
	for {
		// Asked before the read: what is written to the old file after this is none of a new file's.
		moved, err := l.moved()
		if err == nil {
			err = l.readFile()
		}
		if err != nil {
			return counts{}, err
		}
		if !moved {
			return l.counts.clone(), nil
		}
		l.file.Close()
		if err := l.open(); err != nil {
			return counts{}, err
		}
	}
}

// moved reports whether the path names another file than the one being read.
func (l *auditLog) moved() (bool, error) {
	now, err := os.Stat(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // between the old file's renaming and the new one's making
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

func (l *auditLog) readFile() error {
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

// auditEvent is what counting needs of audit.k8s.io/v1.
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

// election reports whether the request is part of electing a leader: its lease, and the event that says who leads, the only
// ones in the operator's namespace.
func (e *auditEvent) election() bool {
	return e.ObjectRef.APIGroup == "coordination.k8s.io" || e.ObjectRef.Resource == "events" && e.ObjectRef.Namespace == stage.Namespace
}

// count counts one line. Most lines are other users', and are not parsed.
func (l *auditLog) count(line []byte) error {
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

func (l *auditLog) counted(user string) bool {
	return slices.ContainsFunc(l.users, func(one string) bool {
		return user == one || strings.HasSuffix(one, ":") && strings.HasPrefix(user, one)
	})
}

// long reports whether the API server tells of the request twice: when the answer begins, and when it ends, which may be
// much later. The first is counted.
func (e *auditEvent) long() bool {
	return e.Verb == "watch" || slices.Contains([]string{"log", "attach", "exec", "portforward", "proxy"}, e.ObjectRef.Subresource)
}

func (e *auditEvent) request() request {
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
	return request{Verb: verb, Resource: resource}
}

// document names what is no object: discovery, the OpenAPI documents, the version.
func document(uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	switch first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); first {
	case "api", "apis":
		return "(discovery)"
	default:
		return "(" + first + ")"
	}
}
