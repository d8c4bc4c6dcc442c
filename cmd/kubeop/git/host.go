package git

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/gitops/host"
)

// Host has the flags for connecting to the Git host of a clone.
type Host struct {
	// Type of the host; "" to recognize it by its name. TokenFile has a token for its API; "" for the credentials that Git has for the host.
	Type, TokenFile string
}

// AddFlags adds the flags.
func (h *Host) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&h.Type, "git-host", "", "type of the Git host, if its name does not say it: github, gitlab, gitea, bitbucket, bitbucketserver")
	flags.StringVar(&h.TokenFile, "token-file", "", "file with a token for the API of the Git host (default: the credentials that Git has)")
}

// Open returns a client of the repository at a URL. Close it after use.
func (h *Host) Open(ctx context.Context, at string, now func() time.Time) (*host.Repository, error) {
	auth, err := h.auth(ctx, at)
	if err != nil {
		return nil, err
	}
	everywhere := &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
	return host.Open(everywhere, host.Place{URL: at, Type: host.Type(h.Type)}, auth, now)
}

func (h *Host) auth(ctx context.Context, at string) (transport.Auth, error) {
	if h.TokenFile == "" {
		user, token, err := Credentials(ctx, at)
		return transport.Auth{Username: user, Password: token}, err
	}
	token, err := os.ReadFile(h.TokenFile)
	if err != nil {
		return transport.Auth{}, fmt.Errorf("--token-file: %w", err)
	}
	return transport.Auth{BearerToken: strings.TrimSpace(string(token))}, nil
}

// RemoteURL returns the URL to which a clone pushes: that of the remote of the current branch, or of origin.
func RemoteURL(ctx context.Context, folder string) (string, error) {
	remote := "origin"
	if local, err := Line(ctx, folder, "symbolic-ref", "--quiet", "--short", "HEAD"); err == nil {
		if of, err := Line(ctx, folder, "config", "branch."+local+".remote"); err == nil && of != "." {
			remote = of
		}
	}
	return urlOf(ctx, folder, remote)
}
