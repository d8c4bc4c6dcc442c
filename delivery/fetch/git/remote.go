package git

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// session is one connection to a service of a remote.
type session interface {
	// advertised returns the refs that the server listed when the session began.
	advertised() *packp.AdvRefs
	// upload requests a pack of uploadPack and returns it. Call it at most once.
	upload(ctx context.Context, request *packp.UploadPackRequest) (io.ReadCloser, error)
	// send sends a request and returns the answer. Call it at most once.
	send(ctx context.Context, request []byte) (io.ReadCloser, error)
	io.Closer
}

// The services of a Git server.
const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// remote is a Git repository on a server.
type remote struct {
	url    *url.URL
	auth   transport.Auth
	limits limits
	// service is uploadPack or receivePack.
	service string
	// network connects to the server.
	network *transport.Network
	// meter counts what is received for the tenant's share of the disk.
	meter func(io.ReadCloser) io.ReadCloser
	// scratch is a folder for temporary files.
	scratch string
	// http is nil for SSH.
	http *http.Client
}

// parseGitURL checks the URL of a repository. It refuses credentials in it, because status and logs show the URL.
func parseGitURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Hostname() == "" {
		if _, _, scp := strings.Cut(raw, ":"); scp && !strings.Contains(raw, "://") {
			return nil, failure.New(failure.ErrInvalid, "the URL has no scheme: write in Git ssh://git@host/path instead of git@host:path")
		}
		return nil, failure.New(failure.ErrInvalid, "the URL is not of the form https://host/path, http://host/path or ssh://user@host/path")
	}
	password := false
	if u.User != nil {
		_, password = u.User.Password()
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh":
		return nil, failure.New(failure.ErrInvalid, "the scheme %q is not supported: use https, http or ssh in the URL in Git", u.Scheme)
	case password || (u.User != nil && u.Scheme != "ssh"):
		return nil, failure.New(failure.ErrInvalid, "the URL holds credentials: move them to a Secret and name it in secretRef in Git")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, failure.New(failure.ErrInvalid, "the URL has a query or fragment: write in Git the URL that git clone takes")
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
