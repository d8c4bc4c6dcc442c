package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// explained returns an error of a request with what to do about it.
func (s *source) explained(err error) error {
	var said *target.Explained
	var refused *client.Error
	var request *url.Error
	switch {
	case errors.Is(err, context.Canceled) || errors.As(err, &said):
		return err
	case errors.As(err, &refused):
		return s.refused(refused)
	case errors.As(err, &request):
		return &target.Explained{Text: fmt.Sprintf("%s cannot be reached: %v", s, s.unreachable(request)), Err: err, MayPass: true}
	}
	return &target.Explained{Text: fmt.Sprintf("%s: %v", s, err), Err: err, MayPass: true} // An answer that was cut.
}

// String names the manager in sentences.
func (s *source) String() string { return "the manager at " + s.url }

func (s *source) refused(err *client.Error) error {
	e := &target.Explained{Err: err, Text: fmt.Sprintf("%s answers: %v", s, err)}
	switch status := int(err.Status); {
	case status == http.StatusUnauthorized:
		e.Text += ". Your token is unknown, expired or revoked: set KUBEOP_TOKEN, or KUBEOP_TOKEN_FILE, to a valid one"
	case status == http.StatusNotFound && err.Code != "":
		e.Text += ". `kubeop get` shows what your token may see"
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		e.MayPass = true
		e.Text += ". Try again " + later(err.RetryAfter)
	}
	return e
}

func later(after time.Duration) string {
	if after == 0 {
		return "a little later"
	}
	return "in " + after.String()
}

func (s *source) unreachable(request *url.Error) error {
	var unknown x509.UnknownAuthorityError
	var name *net.DNSError
	switch {
	case errors.As(request, &unknown):
		return fmt.Errorf("its certificate is signed by an authority that this machine does not trust; name a file with the authority in --server-ca: %w", request.Err)
	case errors.As(request, &name):
		return fmt.Errorf("no address is known for %s: %w", name.Name, request.Err)
	case request.Timeout():
		return fmt.Errorf("it did not answer in time: %w", request.Err)
	}
	return request.Err
}
