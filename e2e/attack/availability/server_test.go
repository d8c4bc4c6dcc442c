//go:build e2e

package availability

import (
	"context"
	"net"
	"net/http"
	"time"
)

// servers are the attackers' hosts for Git, charts, artifacts and images, one path each. The administrators allow their address.
type servers struct {
	// address is host and port as the operator reaches them. silent is the address of those that are slow or never answer, because the operator
	// judges a host by all its answers.
	address, silent string
	mux             *http.ServeMux
}

// serveHostile serves until the context ends, at an address of this machine that pods can reach.
func serveHostile(ctx context.Context, host string) (*servers, error) {
	s := &servers{mux: http.NewServeMux()}
	s.serveGit()
	s.serveCharts()
	s.serveRegistry()
	server := &http.Server{Handler: s.mux, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	for _, address := range []*string{&s.address, &s.silent} {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return nil, err
		}
		*address = listener.Addr().String()
		go func() { _ = server.Serve(listener) }()
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return s, nil
}

// slowly delays its answer until the client disconnects or a while has passed.
func slowly(r *http.Request, long time.Duration) {
	select {
	case <-r.Context().Done():
	case <-time.After(long):
	}
}
