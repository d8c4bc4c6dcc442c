package git

import (
	"net/url"
	"testing"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestALoginIsOfTheUserInTheURL, or else of the user of all Git hosts.
func TestALoginIsOfTheUserInTheURL(t *testing.T) {
	signer, identity := sources.NewSSHKey(t)
	auth := transport.Auth{Identity: identity, KnownHosts: []byte("git.example.com " + string(cryptossh.MarshalAuthorizedKey(signer.PublicKey())))}
	for at, want := range map[string]string{
		"ssh://git.example.com/a.git":        "git",
		"ssh://git@git.example.com/a.git":    "git",
		"ssh://deploy@git.example.com/a.git": "deploy",
	} {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		l, err := (&remote{url: u, auth: auth}).login("git.example.com:22")
		if err != nil || l.User != want || len(l.Auth) != 1 || len(l.HostKeyAlgorithms) == 0 {
			t.Errorf("%s: %+v, %v", at, l, err)
		}
	}
	_, err := (&remote{url: &url.URL{Scheme: "ssh", Host: "git.example.com"}}).login("git.example.com:22")
	sources.WantError(t, err, failure.ErrInvalid, "an ssh URL needs a key")
}
