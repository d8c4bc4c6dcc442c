package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// The transports are ours, over go-git's protocol messages. go-git's own SSH reads ~/.ssh/config, asks an agent and
// cannot be interrupted during the handshake; its HTTP re-sends credentials by rules of its own; both hide what the
// server can do (multi_ack, without which Azure DevOps refuses every fetch: go-git issue 64); and its Remote.Fetch
// cannot fetch into a shallow store reliably (issues 305 and 1443).

// session is one conversation with git-upload-pack of a remote.
type session interface {
	// advertised are the refs the server listed when the session began.
	advertised() *packp.AdvRefs
	// upload asks for a pack and returns it. Call it at most once.
	upload(ctx context.Context, request *packp.UploadPackRequest) (io.ReadCloser, error)
	io.Closer
}

// remote is a Git repository on a server.
type remote struct {
	url    *url.URL
	auth   transport.Auth
	limits limits
	// network is the way to the server.
	network *transport.Network
	// room holds what is received to the tenant's part of the disk.
	room func(io.ReadCloser) io.ReadCloser
	// scratch is a folder for temporary files.
	scratch string
	// http is nil for SSH.
	http *http.Client
}

// parseGitURL checks the URL of a repository. Credentials are refused in it, because a URL is shown in status and logs.
func parseGitURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Hostname() == "" {
		if _, _, scp := strings.Cut(raw, ":"); scp && !strings.Contains(raw, "://") {
			return nil, failure.New(failure.ErrInvalid, "the URL has no scheme: write ssh://git@host/path instead of git@host:path")
		}
		return nil, failure.New(failure.ErrInvalid, "the URL is not of the form https://host/path, http://host/path or ssh://user@host/path")
	}
	password := false
	if u.User != nil {
		_, password = u.User.Password()
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh":
		return nil, failure.New(failure.ErrInvalid, "the scheme %q is not supported: use https, http or ssh", u.Scheme)
	case password || (u.User != nil && u.Scheme != "ssh"):
		return nil, failure.New(failure.ErrInvalid, "the URL holds credentials: move them to a Secret and name it in secretRef")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, failure.New(failure.ErrInvalid, "the URL has a query or fragment: use the URL git clone takes")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

// open starts a session and lists the refs, which proves that the credentials may read the repository.
func (r *remote) open(ctx context.Context) (session, error) {
	if r.url.Scheme == "ssh" {
		return r.openSSH(ctx)
	}
	return r.openHTTP(ctx)
}

type httpSession struct {
	*remote
	base string
	refs *packp.AdvRefs
}

func (s *httpSession) advertised() *packp.AdvRefs { return s.refs }

// Close implements session; each request is on its own.
func (s *httpSession) Close() error { return nil }

func (r *remote) openHTTP(ctx context.Context) (session, error) {
	const list = "/info/refs"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url.String()+list+"?service=git-upload-pack", nil)
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
	if res.Header.Get("Content-Type") != "application/x-git-upload-pack-advertisement" {
		return nil, failure.New(failure.ErrInvalid, "the server does not answer as a Git server does: check the URL")
	}
	refs, err := r.decodeRefs(res.Body)
	if err != nil {
		return nil, err
	}
	// A server that redirected the listing, on the same host, wants the rest there too.
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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/git-upload-pack", &body)
	if err != nil {
		return nil, failure.New(failure.ErrInvalid, "the URL cannot be requested")
	}
	req.Header.Set("Content-Type", "application/x-git-upload-pack-request")
	req.Header.Set("Accept", "application/x-git-upload-pack-result")
	res, err := s.http.Do(req)
	if err != nil {
		return nil, transport.RequestError(err, s.url.Host)
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		return nil, transport.StatusError(res, s.auth, "Git repository")
	}
	return s.packOf(res.Body, request)
}

// decodeRefs reads the list of refs.
func (r *remote) decodeRefs(from io.Reader) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	err := refs.Decode(limit.NewReader(from, r.limits.refs, limit.TooLarge("the list of the repository's refs", r.limits.refs)))
	var refused *pktline.ErrorLine
	switch {
	case errors.As(err, &refused):
		return nil, failure.New(failure.ErrNotFound, "the server says: %s", failure.Printable(r.auth.Redact(refused.Text)))
	case errors.Is(err, packp.ErrEmptyAdvRefs):
		return packp.NewAdvRefs(), nil
	case err != nil:
		return nil, fmt.Errorf("listing the refs: %w", err)
	}
	return refs, nil
}

// newRequest asks for the wanted objects. haves are shallow commits that are in the store with their whole trees; depth
// 0 asks for the whole history.
func newRequest(server *capability.List, wants, haves []plumbing.Hash, depth int) (*packp.UploadPackRequest, error) {
	request := packp.NewUploadPackRequest()
	request.Wants = wants
	asked := []capability.Capability{capability.OFSDelta, capability.NoProgress}
	for _, alternatives := range [][]capability.Capability{
		{capability.MultiACKDetailed, capability.MultiACK},
		{capability.Sideband64k, capability.Sideband},
	} {
		for _, c := range alternatives {
			if server.Supports(c) {
				asked = append(asked, c)
				break
			}
		}
	}
	if server.Supports(capability.Shallow) {
		asked = append(asked, capability.Shallow)
		request.Depth = packp.DepthCommits(depth)
		request.Haves, request.Shallows = haves, haves
	}
	if len(request.Haves) > 0 {
		// Without it git leaves nothing out of a shallow pack: what we have is only looked at to find thin bases.
		asked = append(asked, capability.ThinPack)
	}
	for _, c := range asked {
		if c != capability.Shallow && !server.Supports(c) {
			continue
		}
		if err := request.Capabilities.Set(c); err != nil {
			return nil, fmt.Errorf("asking for %s: %w", c, err)
		}
	}
	return request, nil
}

func encode(w io.Writer, request *packp.UploadPackRequest) error {
	if err := request.UploadRequest.Encode(w); err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	if err := request.UploadHaves.Encode(w, false); err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	if err := pktline.NewEncoder(w).EncodeString("done\n"); err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	return nil
}

// errRefused means that the server answered, and did not want to give what was asked for.
var errRefused = errors.New("refused by the server")

// packOf reads the answer up to where the pack begins and returns the pack. Closing it closes the answer.
func (r *remote) packOf(answer io.ReadCloser, request *packp.UploadPackRequest) (io.ReadCloser, error) {
	response := packp.NewUploadPackResponse(request)
	answer = r.room(answer)
	bounded := readCloser{limit.NewReader(answer, r.limits.pack, limit.TooLarge("the commit's pack", r.limits.pack)), answer}
	if err := response.Decode(bounded); err != nil {
		_ = answer.Close()
		var refused *pktline.ErrorLine
		if errors.As(err, &refused) {
			return nil, failure.New(errRefused, "the server says: %s", failure.Printable(r.auth.Redact(refused.Text)))
		}
		return nil, fmt.Errorf("reading the server's answer: %w", err)
	}
	var pack io.Reader = response
	switch {
	case request.Capabilities.Supports(capability.Sideband64k):
		pack = sideband.NewDemuxer(sideband.Sideband64k, response)
	case request.Capabilities.Supports(capability.Sideband):
		pack = sideband.NewDemuxer(sideband.Sideband, response)
	}
	return readCloser{pack, answer}, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}
