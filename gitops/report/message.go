package report

import (
	"context"
	"errors"

	"github.com/kubeop/kubeop/gitops/host"
)

// Message is what a server is told. Of messages with the same key, the newest replaces the others.
type Message struct {
	// Key identifies what the message is about. The keys of one owner have the same beginning, for Drop and Hurry.
	Key string
	// Kind is a label of metrics.
	Kind Kind
	// Host is the server as name:port; Tenant is on whose behalf it is told.
	Host, Tenant string
	// Send sends it.
	Send func(context.Context) error
	// Done is called after each attempt, with its error; nil if the server accepted the message.
	Done func(error)
}

// Kind is what messages are about.
type Kind string

// CommitStatus is the status of a commit at its Git host.
const CommitStatus Kind = "commit_status"

func isLimited(err error) (*host.RateLimitError, bool) {
	var limit *host.RateLimitError
	return limit, errors.As(err, &limit)
}
