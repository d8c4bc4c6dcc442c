package report

import (
	"context"
	"errors"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/pool"
)

// Message is what a server gets. Of messages with the same key, the newest replaces the others.
type Message struct {
	// Key identifies what the message is about. The keys of one owner have the same beginning, for Drop and Hurry.
	Key string
	// Kind is a label of metrics.
	Kind Kind
	// Host is the server as name:port; Tenant is the tenant for which it is sent.
	Host, Tenant string
	// Send sends it.
	Send func(context.Context) error
	// Done is called after each attempt, with its error; nil if the server accepted the message.
	Done func(error)
}

// Kind is what messages are about.
type Kind string

// CommitStatus is the status of a commit at its Git host, Notification a message about apps of a tenant, WriteBack a change that kubeop writes to
// Git, and PullRequest the list of pull requests or the plan of one.
const (
	CommitStatus Kind = "commit_status"
	Notification Kind = "notification"
	WriteBack    Kind = "write_back"
	PullRequest  Kind = "pull_request"
)

// priority of messages at the pool: tenants name the receivers of notifications, so the failures of one's count for no other.
func (k Kind) priority() pool.Priority {
	if k == Notification {
		return pool.App
	}
	return pool.Repository
}

// limit is an error of a server that wants no more requests for a while.
type limit interface {
	error
	RetryAfter() time.Duration
}

func isLimited(err error) (limit, bool) {
	var l limit
	return l, errors.As(err, &l)
}
