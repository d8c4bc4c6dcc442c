package pool

import (
	"errors"
	"net"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// ReachOf returns how far a fetch that ended with the error came to its host.
func ReachOf(err error) Reach {
	var connection *net.OpError
	switch {
	case errors.As(err, &connection) && connection.Op == "dial":
		return Unconnected
	case errors.Is(err, failure.ErrSlow):
		return Silent
	case errors.Is(err, failure.ErrUnavailable) && !errors.Is(err, failure.ErrServer):
		return Silent
	}
	return Answered
}
