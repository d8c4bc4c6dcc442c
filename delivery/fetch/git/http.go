package git

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

type httpSession struct {
	*remote
	base string
	refs *packp.AdvRefs
}

func (s *httpSession) advertised() *packp.AdvRefs { return s.refs }

// Close implements session; there is nothing to close, because each request is independent.
func (s *httpSession) Close() error { return nil }

func (r *remote) openHTTP(ctx context.Context) (session, error) {
	const list = "/info/refs"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url.String()+list+"?service="+r.service, nil)
	if err != nil {
		return nil, failure.New(failure.ErrInvalid, "the URL cannot be requested")
	}
	res, err := r.http.Do(req)
	if err != nil {
		return nil, transport.RequestError(err, r.url.Host)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, transport.StatusError(res, r.auth, "Git repository")
	}
	if res.Header.Get("Content-Type") != "application/x-"+r.service+"-advertisement" {
		return nil, failure.New(failure.ErrInvalid, "the server does not answer as a Git server does: check the URL in Git")
	}
	refs, err := r.decodeRefs(res.Body)
	if err != nil {
		return nil, err
	}
	// If the server redirected the listing, on the same host, send the other requests there, too.
	base := *res.Request.URL
	base.RawQuery, base.Path = "", strings.TrimSuffix(base.Path, list)
	base.RawPath = strings.TrimSuffix(base.RawPath, list)
	return &httpSession{remote: r, base: base.String(), refs: refs}, nil
}

func (s *httpSession) upload(ctx context.Context, request *packp.UploadPackRequest) (io.ReadCloser, error) {
	var body bytes.Buffer
	if err := encode(&body, request); err != nil {
		return nil, err
	}
	answer, err := s.send(ctx, body.Bytes())
	if err != nil {
		return nil, err
	}
	return s.packOf(answer, request)
}

// send implements session.
func (s *httpSession) send(ctx context.Context, request []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/"+s.service, bytes.NewReader(request))
	if err != nil {
		return nil, failure.New(failure.ErrInvalid, "the URL cannot be requested")
	}
	req.Header.Set("Content-Type", "application/x-"+s.service+"-request")
	req.Header.Set("Accept", "application/x-"+s.service+"-result")
	res, err := s.http.Do(req)
	if err != nil {
		return nil, transport.RequestError(err, s.url.Host)
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		return nil, transport.StatusError(res, s.auth, "Git repository")
	}
	return res.Body, nil
}
